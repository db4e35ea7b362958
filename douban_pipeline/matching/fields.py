"""Compares a video and a subject field by field: agree, disagree or unknown. Gives no points.

Years, regions (which agree where they overlap, because a third of all films are co-productions) and lengths are
compared here; names in `similarity`, people in `people`, kinds in `kinds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from douban_pipeline.cms.vocabulary import Regions, compatible, regions_of
from douban_pipeline.cms.vocabulary_words import ANY
from douban_pipeline.matching import kinds, people
from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.similarity import TitleMatch

# --- years ------------------------------------------------------------------------------------------------------------


class YearGap(NamedTuple):
    """The distance between two works in years.

    Attributes:
        gap: Whole years, never negative.
        own: Whether it was measured to the subject's own year, not to the year of a release. A re-release
            puts an old film into the year of its remake, so such a gap is no evidence.
        work: Whole years to the work's own year, which is its first release where it has none.
    """

    gap: int
    own: bool
    work: int


def year_gap(local: Sequence[int], year: int | None, release_years: Sequence[int] = ()) -> YearGap | None:
    """Return the smallest gap between the local years and the subject's; None when a side is unknown.

    The subject's own year decides unless it is more than two years off and a release is nearer.
    """
    if not local or (year is None and not release_years):
        return None
    # Without a year field the first release is the best estimate of the work's own year.
    own = min(release_years) if year is None else year
    work = min([abs(a - own) for a in local])
    if not release_years or (year is not None and work <= 2):
        return YearGap(work, True, work)
    releases = min([abs(a - b) for a in local for b in release_years])
    if year is not None and work <= releases:
        return YearGap(work, True, work)
    return YearGap(releases, year is None and work == releases, work)


# --- regions ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def read_regions(words: tuple[str, ...]) -> Regions:
    """Return the regions that words name; those of the latest lists are cached."""
    return regions_of(words)


class RegionMatch(NamedTuple):
    """Result of comparing two lists of region words.

    Attributes:
        agree: True, False or None, as returned by :func:`~douban_pipeline.cms.vocabulary.compatible`.
        firm: Whether they agree in regions named individually. A group (欧美, 其它) agrees only weakly and never
            disagrees with its members.
        weak: Whether both sides name regions and share none, but one names a group (欧美), so that they may be the
            same: too little for an agreement, too much for unknown.
    """

    agree: bool | None
    firm: bool
    weak: bool


@lru_cache(maxsize=16384)
def compare_regions(a: tuple[str, ...], b: tuple[str, ...]) -> RegionMatch:
    """Compare two lists of region words."""
    left, right = read_regions(a), read_regions(b)
    outcome = compatible(left, right)
    firm = outcome is True and not left.wildcards and not right.wildcards
    # 其它 and unknown words name no region: alone they are no evidence.
    weak = outcome is None and all(side.codes or side.wildcards - {ANY} for side in (left, right))
    return RegionMatch(outcome, firm or (outcome is True and bool(left.codes & right.codes)), weak)


# --- lengths ----------------------------------------------------------------------------------------------------------

CLOSE_LENGTH = 0.06
"""Lengths within this share (at least three minutes) agree: cuts, frame rates and end titles differ."""

FAR_LENGTH = 0.25
"""Lengths that differ by more than this share belong to another work or another cut."""


class LengthMatch(NamedTuple):
    """Result of comparing two lengths.

    Attributes:
        agree: Whether they agree; None is unknown, or too far to agree and too near to disagree.
        note: The same in words for a reviewer.
        far: Whether they differ so much that it is another work or another cut.
        minutes: Difference in minutes, where minutes were compared.
        episodes: The local and the subject's number of episodes, where episodes were compared.
    """

    agree: bool | None
    note: str
    far: bool = False
    minutes: int | None = None
    episodes: tuple[int, int] | None = None


_NO_LENGTH = LengthMatch(None, "")


def compare_lengths(
    kind: Kind | None, minutes: tuple[int | None, int | None], episodes: tuple[int | None, int | None]
) -> LengthMatch:
    """Compare (local, subject) minutes and episodes.

    Series are compared by episodes, since all have episodes of 24 or 45 minutes; works of one episode by
    minutes. A merged record may hold several seasons, so episode numbers are far apart only from a ratio of 1.5.
    """
    mine, theirs = episodes
    if mine and theirs and max(mine, theirs) > 1:
        if mine == theirs:
            return LengthMatch(True, f"同为 {mine} 集", episodes=(mine, theirs))
        far = max(mine, theirs) > 1.5 * min(mine, theirs)
        return LengthMatch(False, f"集数不同：本地 {mine} / 豆瓣 {theirs}", far, episodes=(mine, theirs))
    if kind in (Kind.SERIES, Kind.VARIETY) or max(mine or 0, theirs or 0) > 1:
        return _NO_LENGTH
    mine, theirs = minutes
    if not mine or not theirs:
        return _NO_LENGTH
    gap = abs(mine - theirs)
    longer = max(mine, theirs)
    if gap <= max(3, CLOSE_LENGTH * longer):
        return LengthMatch(True, f"片长相差 {gap} 分钟", minutes=gap)
    note = f"片长不同：本地 {mine} 分钟 / 豆瓣 {theirs} 分钟"
    far = gap > FAR_LENGTH * longer
    return LengthMatch(False if far else None, note, far, minutes=gap)


# --- all fields -------------------------------------------------------------------------------------------------------


class Fields(NamedTuple):
    """Every field compared; None means unknown.

    Attributes:
        title: The names that matched best.
        year: Distance in years.
        kind: Whether the kinds agree.
        region: Result for the regions.
        director: Whether a director is common.
        no_director_common: Whether both sides name comparable directors and none is common, even where
            ``director`` is None because that is excused.
        cast: How the lists of actors overlap.
        genres: The video's and the subject's genres, in Douban's words.
        length: Result for minutes or episodes.
    """

    title: TitleMatch
    year: YearGap | None
    kind: bool | None
    region: RegionMatch
    director: bool | None
    no_director_common: bool
    cast: people.Overlap
    genres: tuple[frozenset[str], frozenset[str]]
    length: LengthMatch


SAME_CAST = 3
"""Common actors from which two distant transliterations of the director may be one person."""


def local_years(video: Video, title: TitleMatch) -> tuple[int, ...]:
    """Return the years the video claims: its own field, else the one its title states."""
    return (video.year,) if video.year is not None else title.local_years


def compare_fields(video: Video, subject: Subject, title: TitleMatch, year: YearGap | None) -> Fields:
    """Compare a video with one subject, field by field; names and years are already compared."""
    cast = people.overlap(video.actors, subject.actors)
    directors = people.overlap(video.directors, subject.directors)
    common = directors.agree
    return Fields(
        title=title,
        year=year,
        kind=kinds.agree(video, subject),
        region=compare_regions(video.regions, subject.regions),
        director=common or _director(video, subject, directors, cast, year),
        no_director_common=common is False,
        cast=cast,
        genres=(kinds.read_genres(video.genres), kinds.read_genres(subject.genres)),
        length=compare_lengths(
            subject.kind or video.kind,
            (video.duration_minutes, subject.duration_minutes),
            (video.episodes, subject.episodes),
        ),
    )


def _director(
    video: Video, subject: Subject, found: people.Overlap, cast: people.Overlap, year: YearGap | None
) -> bool | None:
    """Return whether a director is common, where no name is."""
    if found.agree is None:
        # Many names sound alike, but few directors of works of one year have such names.
        of_year = year is not None and year.own and year.gap <= 1
        return (of_year and people.heard(video.directors, subject.directors)) or None
    is_film = Kind.FILM in (video.kind, subject.kind)
    # Directors of series change by episode, so lists of several may have no one in common.
    changing = not is_film and max(len(video.directors), len(subject.directors)) > 2
    return None if changing or (found.transliterated and cast.matched >= SAME_CAST) else False
