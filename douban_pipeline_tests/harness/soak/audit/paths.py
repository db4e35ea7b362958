"""Whether a heap of recorded writes leads from what stood at the beginning to what stands at the end.

Values of one column are places, writes are ways from one to another. Nobody needs to know their order: they can have
happened one after the other, from the first value to the last, if and only if every value is left as often as it is
reached (but the first once more, the last once less) and all ways hang together with the first value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from douban_pipeline_tests.harness.soak.values import NO_ROW

Edge = tuple[str, str]
Act = Mapping[str, Edge]
"""A write of several columns at once: what it changes, old and new."""

_MOST_IN_DOUBT = 12
"""Writes of unknown fate of one video that are tried in all combinations."""


def why_no_path(first: str, last: str, edges: Sequence[Edge]) -> str:
    """Return why ``edges`` cannot have led from ``first`` to ``last``, each once and no other; empty if they can."""
    surplus: Counter[str] = Counter()
    for old, new in edges:
        surplus[old] += 1
        surplus[new] -= 1
    surplus[first] -= 1
    surplus[last] += 1
    left = sorted(value for value, count in surplus.items() if count > 0)
    reached = sorted(value for value, count in surplus.items() if count < 0)
    if left or reached:
        shown = []
        if reached:
            shown.append(f"nothing leads on from {_listed(reached)}")
        if left:
            shown.append(f"nothing leads to {_listed(left)}")
        return " and ".join(shown)
    apart = _apart(first, edges)
    return f"writes between {_listed(apart)} hang on nothing that ever stood" if apart else ""


def explanation(
    columns: Mapping[str, Edge], acts: Sequence[Act], doubtful: Sequence[Act]
) -> tuple[tuple[int, ...] | None, dict[str, str]]:
    """Find which of the ``doubtful`` writes must have happened for everything to be explained.

    Args:
        columns: First and last value of each column of one video.
        acts: The writes that happened.
        doubtful: The writes that may have happened; each did with all its columns, or with none.

    Returns:
        Which of the doubtful ones happened, the fewest possible, and nothing; or None, and by column why not.
    """
    tried = doubtful[:_MOST_IN_DOUBT]
    reasons: dict[str, str] = {}
    for count in range(len(tried) + 1):
        for chosen in combinations(range(len(tried)), count):
            found = _reasons(columns, [*acts, *(tried[place] for place in chosen)])
            if not found:
                return chosen, {}
            reasons = reasons or found
    return None, reasons


def _reasons(columns: Mapping[str, Edge], acts: Sequence[Act]) -> dict[str, str]:
    edges: dict[str, list[Edge]] = {}
    for act in acts:
        for column, edge in act.items():
            if edge[0] != edge[1]:
                edges.setdefault(column, []).append(edge)
    found = {}
    for column in {*columns, *edges}:
        first, last = columns.get(column, (NO_ROW, NO_ROW))
        why = why_no_path(first, last, edges.get(column, ()))
        if why:
            found[column] = why
    return found


def _apart(first: str, edges: Sequence[Edge]) -> list[str]:
    """Return the values that no chain of ``edges`` joins to ``first``."""
    beside: dict[str, set[str]] = {}
    for old, new in edges:
        beside.setdefault(old, set()).add(new)
        beside.setdefault(new, set()).add(old)
    seen, waiting = {first}, [first]
    while waiting:
        for value in beside.get(waiting.pop(), ()):
            if value not in seen:
                seen.add(value)
                waiting.append(value)
    return sorted(set(beside) - seen)


def _listed(values: Sequence[str]) -> str:
    return ", ".join(repr(value) for value in values[:3]) + (" …" if len(values) > 3 else "")
