"""Profiles: how a comparison becomes the deciding score and the displayed points.

``plan`` is the plan's literal sum: unknown fields have points too. ``calibrated`` is the share of points earned by
evidence among the fields that could be compared, so that a record without people is not penalised for unknown fields.
In both, the acceptance gate then checks whether enough agrees; a score alone never confirms.
"""

from __future__ import annotations

from dataclasses import dataclass

from douban_pipeline.matching.plan_points import UNKNOWN_SHARES
from douban_pipeline.matching.scoring import Comparison, Item, ItemOutcome
from douban_pipeline.matching.weights import (
    DEFAULT_THRESHOLDS,
    DEFAULT_WEIGHTS,
    ITEMS,
    PROFILES,
    TIE_BREAK,
    Thresholds,
    Weights,
)

ENOUGH = 60.0
"""Least weight that must be compared, by default that of title and year: missing weight counts as not earned."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A scoring profile.

    Attributes:
        name: One of :data:`PROFILES`.
        weights: Points of the items.
        thresholds: Thresholds of the verdicts, for this profile's score.
    """

    name: str = "plan"
    weights: Weights = DEFAULT_WEIGHTS
    thresholds: Thresholds = DEFAULT_THRESHOLDS

    @property
    def most(self) -> float:
        """The highest possible score."""
        return self.weights.total if self.name == "plan" else 100.0

    def score(self, comparison: Comparison) -> float:
        """Return the score of a comparison in this profile: the plan's points, or 0 to 100 per cent."""
        return comparison.score if self.name == "plan" else _share_earned(comparison)

    def score_without(self, comparison: Comparison, item: str) -> float:
        """Return the score as if the field of an item were unknown on one side."""
        if self.name != "plan":
            return _share_earned(comparison, without=item)
        place = ITEMS.index(item)
        points, most = comparison.plan_points[place], comparison.most[place]
        return round(comparison.score - points + most * UNKNOWN_SHARES[item], 2)

    def points(self, comparison: Comparison) -> float:
        """Return the points in which the lead of one candidate over another is measured."""
        return comparison.score if self.name == "plan" else comparison.earned

    def items(self, comparison: Comparison) -> tuple[Item, ...]:
        """Return the items with this profile's points, for display.

        Where the score is a share of the compared fields, the other fields have no weight.
        """
        if self.name == "plan":
            pairs = zip(comparison.items, comparison.plan_points, strict=True)
            return tuple(item._replace(points=points) for item, points in pairs)
        return tuple(item if _counts(item) else item._replace(weight=0.0) for item in comparison.items)


_COMPARED = tuple(name for name in ITEMS if name != TIE_BREAK)
"""The items of the score, which come before the tie-break."""


def _share_earned(comparison: Comparison, without: str = "") -> float:
    """Return the earned share of the points of compared fields, in per cent; a rating is no evidence."""
    earned = possible = 0.0
    # Same condition as `_counts`; written out for speed, since this runs for every candidate.
    outcomes, earnings = comparison.results
    for name, outcome, points, most in zip(_COMPARED, outcomes, earnings, comparison.most, strict=False):
        if (points or outcome is not ItemOutcome.UNKNOWN) and name != without:
            earned += points
            possible += most
    return round(100 * earned / max(ENOUGH, possible), 2)


def _counts(item: Item) -> bool:
    """Return whether a field could be compared; a title always can, since an almost equal one earns points."""
    return bool(item.points) or item.outcome is not ItemOutcome.UNKNOWN


PLAN = Profile()
"""The plan's literal weights and thresholds."""


def make_profile(
    name: str, *, weights: Weights = DEFAULT_WEIGHTS, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> Profile:
    """Return the profile of that name.

    Raises:
        ValueError: There is no such profile.
    """
    if name not in PROFILES:
        raise ValueError(f"no profile {name!r}; there are {', '.join(PROFILES)}")
    return Profile(name, weights, thresholds)
