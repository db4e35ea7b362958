"""Whether every difference in the CMS is one that the log or the journal tells of, and every write is signed.

Values of one column are places, writes are ways from one to another. Nobody needs to know their order: they can have
happened one after the other, from the first value to the last, if and only if every value is left as often as it is
reached (but the first once more, the last once less) and all ways hang together with the first value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from douban_pipeline_tests.harness.soak.audit.records import Case, Change, Records
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding, stream
from douban_pipeline_tests.harness.soak.journal import NO_ROW, Entry

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


PERMITTED = frozenset(
    {
        *("vod_douban_id", "vod_douban_score", "vod_score", "vod_total", "vod_content", "vod_blurb"),
        *("vod_name", "vod_sub", "vod_class", "vod_tag", "vod_pic", "vod_actor", "vod_director", "vod_writer"),
        *("vod_area", "vod_lang", "vod_year", "vod_version", "vod_state", "vod_pubdate", "vod_duration"),
    }
)
"""Columns that the pipeline may write at all, as its documentation promises."""


def every_change_is_explained(evidence: Evidence, records: Records) -> Finding:
    """Check that log and journal together lead from the first value of every column to the last."""
    case = Case("every difference in the CMS is explained by the change log or the outsiders' journal")
    initial, columns = evidence.initial, evidence.initial.columns
    by_entry: dict[int, list[Entry]] = {}
    for entry in evidence.journal.entries():
        if entry.happened or entry.doubtful:
            by_entry.setdefault(entry.vod_id, []).append(entry)
    writes = 0
    needed: list[str] = []
    for vod_id, last in _finals(evidence, records, {*initial.rows, *by_entry, *records.by_video}):
        case.checked += 1
        changes, entries = records.by_video.get(vod_id, []), by_entry.get(vod_id, [])
        first = initial.rows.get(vod_id)
        for change in changes:
            foreign = set(change.written) - PERMITTED
            if foreign and change.happened:
                case.breaks(f"video {vod_id}: {change.named} writes {', '.join(sorted(foreign))}")
        if first == last and not changes and not entries:
            continue
        nowhere = (NO_ROW,) * len(columns)
        ends = {name: (a, b) for name, a, b in zip(columns, first or nowhere, last or nowhere, strict=True)}
        sure: list[Act] = [change.written for change in changes if change.happened and not change.doubtful]
        sure += [_act(entry, columns) for entry in entries if entry.happened]
        doubts: list[tuple[str, Act]] = [(change.named, change.written) for change in changes if change.doubtful]
        doubts += [(_named(entry), _act(entry, columns)) for entry in entries if entry.doubtful]
        # What the log says of a change whose run died is believed first.
        doubts = [doubt for doubt in doubts if doubt[1]]
        writes += len(sure) + len(doubts)
        chosen, reasons = explanation(ends, sure, [act for _, act in doubts])
        if chosen is not None:
            needed += [f"{doubts[place][0]} of video {vod_id}" for place in chosen]
            continue
        explanations = "; ".join(f"{column}: {why}" for column, why in sorted(reasons.items())[:3])
        case.breaks(f"video {vod_id}: {explanations} — {_history(changes, entries, reasons)}")
    case.notes.append(f"{writes} writes")
    if needed:
        case.notes.append(f"{len(needed)} of unknown fate must have happened: {', '.join(needed[:5])}")
    return case.finding()


def _finals(evidence: Evidence, records: Records, known: set[int]) -> Iterator[tuple[int, tuple[str, ...] | None]]:
    gone = set(known)
    for vod_id, last in stream(records.engine, records.prefix, evidence.initial.columns):
        gone.discard(vod_id)
        yield vod_id, last
    for vod_id in sorted(gone):
        yield vod_id, None


def every_write_is_signed(_evidence: Evidence, records: Records) -> Finding:
    """Check that every change in the log says why, who, under which rules, in which batch and run, and when."""
    case = Case("every write has a reason, an operator, a rule version, a batch and a run")
    for change in records.changes:
        case.checked += 1
        wanted = {
            "reason": change.reason,
            "operator": change.operator,
            "rule version": change.rule_version,
            "batch": change.batch_id,
            "run": change.run_id,
            "time": change.applied_at if change.happened else "not written",
        }
        if change.seen_only:
            del wanted["rule version"], wanted["run"]
        missing = [name for name, value in wanted.items() if not value]
        if missing:
            case.breaks(f"{change.named} of video {change.vod_id} has no {', no '.join(missing)}")
    return case.finding()


def _act(entry: Entry, columns: tuple[str, ...]) -> dict[str, Edge]:
    edges = {}
    for name, (old, new) in entry.edges().items():
        if name in columns:
            edges[name] = (NO_ROW if old is None else old, NO_ROW if new is None else new)
    return edges


def _named(entry: Entry) -> str:
    return f"journal {entry.number} ({entry.who} {entry.what}, {entry.fate})"


def _history(changes: list[Change], entries: list[Entry], columns: Mapping[str, str]) -> str:
    found = []
    for change in changes:
        for name, (old, new) in change.written.items():
            if name in columns:
                found.append((change.prepared_at, f"{change.named}: {name} {old!r} → {new!r}"))
    for entry in entries:
        for name, (before, after) in entry.edges().items():
            if name in columns:
                found.append((entry.at, f"{_named(entry)}: {name} {before!r} → {after!r}"))
    return (
        " | ".join(f"{at:%H:%M:%S.%f} {explanations}" for at, explanations in sorted(found)[:12])
        or "nothing was recorded"
    )
