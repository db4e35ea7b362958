"""A video and a subject, field by field: what agrees, what differs, what nobody can tell. No points yet."""

from __future__ import annotations

from typing import NamedTuple

from douban_pipeline.matching import genres, kinds, lengths, people, regions, years
from douban_pipeline.matching.facts import Kind, Subject, Video
from douban_pipeline.matching.similarity import TitleMatch


class Fields(NamedTuple):
    """Every field compared. What is None nobody can tell.

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
    year: years.YearGap | None
    kind: bool | None
    region: bool | None
    region_named: bool
    director: bool | None
    cast: people.Overlap
    genres: tuple[frozenset[str], frozenset[str]]
    length: lengths.LengthMatch


SAME_CAST = 3
"""Common actors from which two far transliterations of the director may well be one person."""


def local_years(video: Video, title: TitleMatch) -> tuple[int, ...]:
    """Years the video claims: its own field, else the one its title states."""
    return (video.year,) if video.year is not None else title.local_years


def compare_fields(video: Video, subject: Subject, title: TitleMatch, year: years.YearGap | None) -> Fields:
    """Compare a video with one subject, field by field; names and years are compared already."""
    region, named = regions.agree(video.regions, subject.regions)
    cast = people.overlap(video.actors, subject.actors)
    return Fields(
        title=title,
        year=year,
        kind=kinds.agree(video, subject),
        region=region,
        region_named=named,
        director=_director(video, subject, cast),
        cast=cast,
        genres=(genres.read(video.genres), genres.read(subject.genres)),
        length=lengths.compare_lengths(
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
