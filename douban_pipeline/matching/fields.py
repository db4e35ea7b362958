"""A video and a subject, field by field: what agrees, what differs, what is unknown. No points yet.

Years, regions (which agree where they overlap, because a third of all films are co-productions) and lengths are
compared here; names in `similarity`, people in `people`, kinds in `kinds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from douban_pipeline.cms.vocabulary import Regions, compatible, regions_of
from douban_pipeline.matching import kinds, people
from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.similarity import TitleMatch

# --- years ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class YearGap:
    """The distance between two works in years.

    Attributes:
        gap: Whole years, never negative.
        own: Whether it was measured to the subject's own year, not to the year of some release. A re-release
            puts an old film into the year of its remake, so such a gap is no evidence.
    """

    gap: int
    own: bool


def year_gap(local: Sequence[int], year: int | None, release_years: Sequence[int] = ()) -> YearGap | None:
    """Return the smallest gap between the local years and the subject's; None when a side is unknown.

    The subject's own year decides unless it is more than two years off and a release is nearer.
    """
    if not local or (year is None and not release_years):
        return None
    releases = min((abs(a - b) for a in local for b in release_years), default=None)
    if year is not None:
        own = min(abs(a - year) for a in local)
        if own <= 2 or releases is None or own <= releases:
            return YearGap(own, True)
    assert releases is not None
    # Without a year field the first release is the best that is known of the work itself.
    if year is None and (first := min(abs(a - min(release_years)) for a in local)) == releases:
        return YearGap(first, True)
    return YearGap(releases, False)


# --- regions ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _read_regions(words: tuple[str, ...]) -> Regions:
    return regions_of(words)


@lru_cache(maxsize=16384)
def regions_agree(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[bool | None, bool]:
    """Compare two lists of region words.

    Returns:
        True, False or None as :func:`~douban_pipeline.cms.vocabulary.compatible` says, and whether the
        agreement is firm: of regions named one by one. A group (欧美, 其它) agrees softly and never disagrees
        with its members.
    """
    left, right = _read_regions(a), _read_regions(b)
    outcome = compatible(left, right)
    firm = outcome is True and not left.wildcards and not right.wildcards
    return outcome, firm or (outcome is True and bool(left.codes & right.codes))


# --- lengths ----------------------------------------------------------------------------------------------------------

CLOSE_LENGTH = 0.06
"""Minutes within this share (at least three minutes) agree: cuts, frame rates, end titles."""

FAR_LENGTH = 0.25
"""Beyond this share it is another work or another cut."""


@dataclass(frozen=True, slots=True)
class LengthMatch:
    """What two lengths say: agree, disagree or unknown, in words for a reviewer."""

    agree: bool | None
    note: str
    far: bool = False


def compare_lengths(
    kind: Kind | None, minutes: tuple[int | None, int | None], episodes: tuple[int | None, int | None]
) -> LengthMatch:
    """Compare (local, subject) minutes and episodes.

    Series are compared by episodes, since all have episodes of 24 or 45 minutes; works of one episode by
    minutes. A merged record may hold several seasons, so differing episodes are far only from one and a half times.
    """
    mine, theirs = episodes
    if mine and theirs and max(mine, theirs) > 1:
        if mine == theirs:
            return LengthMatch(True, f"同为 {mine} 集")
        far = max(mine, theirs) > 1.5 * min(mine, theirs)
        return LengthMatch(False, f"集数不同：本地 {mine} / 豆瓣 {theirs}", far)
    if kind in (Kind.SERIES, Kind.VARIETY) or max(mine or 0, theirs or 0) > 1:
        return LengthMatch(None, "")
    mine, theirs = minutes
    if not mine or not theirs:
        return LengthMatch(None, "")
    gap = abs(mine - theirs)
    longer = max(mine, theirs)
    if gap <= max(3, CLOSE_LENGTH * longer):
        return LengthMatch(True, f"片长相差 {gap} 分钟")
    note = f"片长不同：本地 {mine} 分钟 / 豆瓣 {theirs} 分钟"
    return LengthMatch(False, note, True) if gap > FAR_LENGTH * longer else LengthMatch(None, note)


# --- all fields -------------------------------------------------------------------------------------------------------


class Fields(NamedTuple):
    """Every field compared; None means unknown.

    Attributes:
        title: The names that matched best.
        year: Distance in years.
        kind: Whether the kinds agree.
        region: Whether the regions agree.
        region_named: Whether they were named one by one on both sides, not as a group.
        director: Whether a director is common.
        cast: How the lists of actors overlap.
        genres: The video's and the subject's genres, in Douban's words.
        length: What minutes or episodes say.
    """

    title: TitleMatch
    year: YearGap | None
    kind: bool | None
    region: bool | None
    region_named: bool
    director: bool | None
    cast: people.Overlap
    genres: tuple[frozenset[str], frozenset[str]]
    length: LengthMatch


SAME_CAST = 3
"""Common actors from which two far transliterations of the director may well be one person."""


def local_years(video: Video, title: TitleMatch) -> tuple[int, ...]:
    """Years the video claims: its own field, else the one its title states."""
    return (video.year,) if video.year is not None else title.local_years


def compare_fields(video: Video, subject: Subject, title: TitleMatch, year: YearGap | None) -> Fields:
    """Compare a video with one subject, field by field; names and years are compared already."""
    region, named = regions_agree(video.regions, subject.regions)
    cast = people.overlap(video.actors, subject.actors)
    return Fields(
        title=title,
        year=year,
        kind=kinds.agree(video, subject),
        region=region,
        region_named=named,
        director=_director(video, subject, cast),
        cast=cast,
        genres=(kinds.read_genres(video.genres), kinds.read_genres(subject.genres)),
        length=compare_lengths(
            subject.kind or video.kind,
            (video.duration_minutes, subject.duration_minutes),
            (video.episodes, subject.episodes),
        ),
    )


def _director(video: Video, subject: Subject, cast: people.Overlap) -> bool | None:
    found = people.overlap(video.directors, subject.directors)
    if found.agree is not False:
        return found.agree
    is_film = Kind.FILM in (video.kind, subject.kind)
    # Series change directors by episode, so lists of several need not meet.
    changing = not is_film and max(len(video.directors), len(subject.directors)) > 2
    return None if changing or (found.transliterated and cast.matched >= SAME_CAST) else False
