"""Years: how far a video's year is from a subject's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
