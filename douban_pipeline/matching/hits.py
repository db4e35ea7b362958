"""Selects which search hits are requested from Douban, and decides when to stop.

Requests are the scarce resource. A hit contains a title, often a year, sometimes that it has episodes; hits that these
rule out need no request.
"""

from __future__ import annotations

import enum

from douban_pipeline.matching import kinds
from douban_pipeline.matching.facts import Subject, Video
from douban_pipeline.matching.fields import local_years, year_gap
from douban_pipeline.matching.scoring import compare
from douban_pipeline.matching.similarity import NumberMatch, match_titles
from douban_pipeline.matching.weights import DEFAULT_THRESHOLDS, Thresholds

SEQUEL_YEARS = 8
"""Years within which another work of the same name may have the same cast."""


class Likeness(enum.IntEnum):
    """How likely a hit is the video's subject, the likeliest first."""

    NAMESAKE = 0
    """Same name as the video, without a known conflict."""
    FIRST_SEASON = 1
    """First season or part of the exact year, where one of the two states no number."""
    NEAR = 2
    """Same name, but two years apart or with a number only on one side."""
    ALIKE = 3
    """Similar name."""
    GUESS = 4
    """Different name; the search may have found an alias."""
    OTHER_YEAR = 5
    """Same name, but years apart; common people would make it worth a review."""
    RULED_OUT = 6
    """Not the video's subject, regardless of Douban's data."""


def likeness(video: Video, subject: Subject, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Likeness:
    """Return how likely a subject is the video's, from the data of a search hit or from its full data."""
    title = match_titles(video, subject)
    gap = year_gap(local_years(video, title), subject.year, subject.release_years)
    if kinds.agree(video, subject) is False:
        return Likeness.RULED_OUT
    if gap is not None and gap.gap >= thresholds.year_gap:
        nobody = not video.directors and not video.actors
        apart = not title.near_exact or title.numbers is not NumberMatch.NEITHER
        return Likeness.RULED_OUT if nobody or apart else Likeness.OTHER_YEAR
    if title.near_exact:
        if title.numbers is NumberMatch.CONFLICT:
            return Likeness.RULED_OUT
        if title.numbers is NumberMatch.ONE_SIDED:
            first = {title.local_number, title.subject_number} == {1, None}
            exact = gap is not None and gap.own and gap.gap == 0
            return Likeness.FIRST_SEASON if first and exact else Likeness.NEAR
        if gap is not None and gap.gap > 1:
            return Likeness.NEAR
        return Likeness.NAMESAKE
    if title.same_base and title.numbers is NumberMatch.CONFLICT:
        return Likeness.RULED_OUT
    if gap is not None and gap.gap > 1:
        return Likeness.RULED_OUT
    return Likeness.ALIKE if title.similarity >= thresholds.title_floor else Likeness.GUESS


def ends_search(video: Video, subject: Subject) -> bool:
    """Return whether a fetched subject is so certain to be the video's that no other hit needs a request.

    It must have the same name, a director or actors in common, and no conflict.
    """
    found = compare(video, subject)
    if not found.title.near_exact or found.rejects or found.conflicts:
        return False
    return found.agrees("director") or found.agrees("actors")


def may_match_too(video: Video, settled: Subject, other: Subject) -> bool:
    """Return whether an unfetched namesake may be the video as well as the subject that people support.

    If the video has a year, the people decide. If not, a sequel with the same name and cast is equally likely, and
    sequels follow within a few years.
    """
    if video.year is not None or settled.year is None or other.year is None:
        return False
    return abs(settled.year - other.year) <= SEQUEL_YEARS
