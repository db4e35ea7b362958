"""Kinds of works: which exclude each other.

Film, series and variety are formats. Animation, documentary and short say how a work is made, not its format:
a site's 动漫 holds films and series alike.
"""

from __future__ import annotations

from douban_pipeline.matching.facts import Kind

_CONFLICTS = frozenset(
    frozenset(pair)
    for pair in (
        (Kind.FILM, Kind.SERIES),
        (Kind.FILM, Kind.VARIETY),
        (Kind.VARIETY, Kind.ANIMATION),
    )
)


def agree(a: Kind | None, b: Kind | None) -> bool | None:
    """Return True for the same kind, False for kinds that exclude each other, None when that cannot be said.

    Series and variety leave it open: Douban files variety shows under television.
    """
    if a is None or b is None:
        return None
    if a is b:
        return True
    return False if frozenset((a, b)) in _CONFLICTS else None


def animated(kind: Kind | None, genres: frozenset[str]) -> bool | None:
    """Say whether a work is animated; None when neither its kind nor its genres (Douban's words) tell."""
    if kind is Kind.ANIMATION or "动画" in genres:
        return True
    return False if genres else None
