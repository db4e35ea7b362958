"""Which hits of a search are worth a request to Douban, and when enough has been asked.

Requests are the scarce thing. A hit says a title, often a year, sometimes that it has episodes; what these rule
out need not be asked about.
"""

from __future__ import annotations

import enum

from douban_pipeline.matching import kinds
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.fields import local_years, year_gap
from douban_pipeline.matching.scoring import DEFAULT_THRESHOLDS, Thresholds, compare
from douban_pipeline.matching.similarity import Numbers, match_titles

SEQUEL_YEARS = 8
"""Within this many years a work of the same name may have the same cast."""


class Likeness(enum.IntEnum):
    """How likely a hit is the video's subject, the likeliest first."""

    NAMESAKE = 0
    """Named like the video, and nothing known against it."""
    FIRST_SEASON = 1
    """The first season or part of the exact year, where one of the two states no number."""
    NEAR = 2
    """Named like it, but two years off or with a number only on one side."""
    ALIKE = 3
    """Named somewhat like it."""
    GUESS = 4
    """Named otherwise; an alias may be what the search found."""
    OTHER_YEAR = 5
    """Named like it, but years off; people in common would be worth a person's look."""
    RULED_OUT = 6
    """Not the video's subject, whatever Douban may say of it."""


def likeness(video: Video, subject: Subject, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Likeness:
    """Return how likely a subject is the video's, by what a hit says of it or by all that is known of it."""
    title = match_titles(video, subject)
    gap = year_gap(local_years(video, title), subject.year, subject.release_years)
    if kinds.agree(video, subject) is False:
        return Likeness.RULED_OUT
    if gap is not None and gap.gap >= thresholds.year_gap:
        nobody = not video.directors and not video.actors
        apart = not title.near_exact or title.numbers is not Numbers.NEITHER
        return Likeness.RULED_OUT if nobody or apart else Likeness.OTHER_YEAR
    if title.near_exact:
        if title.numbers is Numbers.CONFLICT:
            return Likeness.RULED_OUT
        if title.numbers is Numbers.ONE_SIDED:
            first = {title.local_number, title.subject_number} == {1, None}
            exact = gap is not None and gap.own and gap.gap == 0
            return Likeness.FIRST_SEASON if first and exact else Likeness.NEAR
        if gap is not None and gap.gap > 1:
            return Likeness.NEAR
        return Likeness.NAMESAKE
    if title.same_base and title.numbers is Numbers.CONFLICT:
        return Likeness.RULED_OUT
    if gap is not None and gap.gap > 1:
        return Likeness.RULED_OUT
    return Likeness.ALIKE if title.similarity >= thresholds.title_floor else Likeness.GUESS


def ends_search(video: Video, subject: Subject) -> bool:
    """Say whether a fetched subject is so surely the video's that no other hit needs to be asked about.

    That is one of the same name, with a director or actors in common, and nothing against it.
    """
    found = compare(video, subject)
    if not found.title.near_exact or found.rejects or found.conflicts:
        return False
    return found.agrees("director") or found.agrees("actors")


def may_match_too(video: Video, settled: Subject, other: Subject) -> bool:
    """Say whether a namesake nobody asked about may be the video as well as the subject that people speak for.

    With a year the people decide. Without one a sequel of the same name and cast is as good, and comes soon.
    """
    if video.year is not None or settled.year is None or other.year is None:
        return False
    return abs(settled.year - other.year) <= SEQUEL_YEARS
