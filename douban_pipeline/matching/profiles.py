"""Profiles: how the points of a comparison become the score that decides.

``plan`` takes the literal sum of the points. ``calibrated`` takes the share earned of what could be compared, so
that a record without people is not punished for what nobody knows; the acceptance gate then asks whether enough
was compared at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from douban_pipeline.matching.scoring import (
    DEFAULT_THRESHOLDS,
    DEFAULT_WEIGHTS,
    Comparison,
    ItemOutcome,
    Thresholds,
    Weights,
)

PROFILES = ("plan", "calibrated")
"""Names of all profiles."""

ENOUGH = 60.0
"""Weight that has to be compared, by default that of title and year: what is missing of it counts as not earned."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A way to decide.

    Attributes:
        name: One of :data:`PROFILES`.
        weights: Points of the items.
        thresholds: Where verdicts change; they hold for this profile's score.
    """

    name: str = "plan"
    weights: Weights = DEFAULT_WEIGHTS
    thresholds: Thresholds = DEFAULT_THRESHOLDS

    def score(self, comparison: Comparison) -> float:
        """Return the score of a comparison in this profile, 0 to 102 points or 0 to 100 per cent."""
        if self.name == "plan":
            return comparison.score
        # A rating is no evidence; a title can always be compared, an almost equal one is not unknown.
        earned = possible = 0.0
        for item in comparison.items[:-1]:
            if item.points or item.outcome is not ItemOutcome.UNKNOWN:
                earned += item.points
                possible += item.weight
        return round(100 * earned / max(ENOUGH, possible), 2)


PLAN = Profile()
"""The plan's weights and thresholds, taken literally."""


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
