"""The plan's points: the share of an item's weight that each outcome earns.

The plan also gives points for unknown fields, so that a record without people can reach the review threshold. These
points are no evidence: `scoring` determines what agrees, disagrees or is unknown, and the acceptance gate counts only
agreements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from douban_pipeline.matching.fields import Fields, LengthMatch, YearGap

UNKNOWN_SHARES: Mapping[str, float] = {
    "year": 8 / 15,
    "region": 5 / 10,
    "director": 6 / 12,
    "actors": 4 / 8,
    "genre": 2 / 5,
}
"""Share of an item that is unknown on one side. The plan gives nothing for an unknown length."""

_YEARS: Mapping[int, float] = {0: 1.0, 1: 10 / 15, 2: 5 / 15}
_WEAK_REGION = 4 / 10
_ONE_ACTOR = 6 / 8
_CLOSE_MINUTES, _NEAR_MINUTES = 10, 20
_NEAR_LENGTH = 3 / 5
_CLOSE_EPISODES = 4 / 5


def year_share(gap: YearGap | None) -> float:
    """Return the share for years, measured to the work's own year: a re-release is another year of the same work."""
    return UNKNOWN_SHARES["year"] if gap is None else _YEARS.get(gap.work, 0.0)


def length_share(length: LengthMatch) -> float:
    """Return the share for minutes or episodes; 0 where they are unknown.

    Minutes earn all within 10, three fifths within 20. For episodes the plan states only "near, 3 to 5": the same
    number is 5 points, a difference of a tenth (or one episode) 4, of a fifth (or two) 3.
    """
    if length.minutes is not None:
        if length.minutes <= _CLOSE_MINUTES:
            return 1.0
        return _NEAR_LENGTH if length.minutes <= _NEAR_MINUTES else 0.0
    if length.episodes is None:
        return 0.0
    gap, most = max(length.episodes) - min(length.episodes), max(length.episodes)
    if not gap:
        return 1.0
    if gap <= max(1.0, most / 10):
        return _CLOSE_EPISODES
    return _NEAR_LENGTH if gap <= max(2.0, most / 5) else 0.0


def _region(found: Fields) -> float:
    if found.region.agree is None:
        return _WEAK_REGION if found.region.weak else UNKNOWN_SHARES["region"]
    return float(found.region.agree)


def _director(found: Fields) -> float:
    if found.director:
        return 1.0
    return 0.0 if found.no_director_common else UNKNOWN_SHARES["director"]


def _actors(found: Fields) -> float:
    if not found.cast.matched:
        return UNKNOWN_SHARES["actors"] if found.cast.agree is None else 0.0
    return 1.0 if found.cast.matched >= 2 else _ONE_ACTOR


def _genre(found: Fields) -> float:
    mine, theirs = found.genres
    if not mine or not theirs:
        return UNKNOWN_SHARES["genre"]
    return float(bool(mine & theirs))


_SHARES: Mapping[str, Callable[[Fields], float]] = {
    "title": lambda found: found.title.by_title,
    "year": lambda found: year_share(found.year),
    "region": _region,
    "director": _director,
    "actors": _actors,
    "genre": _genre,
    "length": lambda found: length_share(found.length),
}


def plan_share(item: str, found: Fields) -> float:
    """Return the share, 0 to 1, of its points that the plan gives an item; :class:`KeyError` for an unknown one."""
    return _SHARES[item](found)
