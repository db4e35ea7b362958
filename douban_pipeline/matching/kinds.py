"""Kinds of works, which of them exclude each other, and their genres in Douban's words.

Film, series and variety are formats. Animation, documentary and short describe how a work is made, not its format:
a site's category 动漫 contains both films and series, so for these the episodes or the length decide.
"""

from __future__ import annotations

from functools import lru_cache

from douban_pipeline.cms.vocabulary import genres_of
from douban_pipeline.matching.facts import Kind, Subject, Video

FEATURE_MINUTES = 60
"""Minutes from which a work of one part counts as a film."""

_SERIAL = frozenset({Kind.SERIES, Kind.VARIETY})
_VARIETY_ANIMATED = frozenset({Kind.VARIETY, Kind.ANIMATION})


def serial(work: Video | Subject) -> bool | None:
    """Return whether a work has episodes; None when unknown."""
    if isinstance(work, Subject) and work.serial is not None:
        return work.serial
    if work.kind in _SERIAL or (work.episodes or 0) > 1:
        return True
    if work.kind is Kind.FILM or (work.duration_minutes or 0) >= FEATURE_MINUTES:
        return False
    if isinstance(work, Subject) and work.episodes == 1:
        return False
    return None


def agree(video: Video, subject: Subject) -> bool | None:
    """Return True for the same kind, False for kinds that exclude each other, None when undecided.

    Series and variety are undecided, because Douban files variety shows under television.
    """
    a, b = video.kind, subject.kind
    if a is not b and {a, b} == _VARIETY_ANIMATED:
        return False
    mine, theirs = serial(video), serial(subject)
    if mine is not None and theirs is not None and mine is not theirs:
        return False
    if a is not None and a is b:
        return True
    return True if mine is not None and mine is theirs and {a, b} != _SERIAL else None


def animated(kind: Kind | None, genres: frozenset[str]) -> bool | None:
    """Return whether a work is animated; None when its kind is not animation and it has no genres (Douban's words)."""
    if kind is Kind.ANIMATION or "动画" in genres:
        return True
    return False if genres else None


@lru_cache(maxsize=16384)
def read_genres(words: tuple[str, ...]) -> frozenset[str]:
    """Return the genres among the words; category names are ignored."""
    return genres_of(words)
