"""What a score is made of: weights, thresholds and profiles by name, which settings are checked against."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

PROFILES = ("plan", "calibrated")
"""Names of all profiles."""

DEFAULT_PROFILE: Literal["plan", "calibrated"] = "calibrated"
"""Profile of an installation that has not chosen one: it links several times as many videos, with no more errors."""

TIE_BREAK = "tie_break"
"""The item that only orders candidates of equal scores."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Most points each item can earn, the plan's by default.

    ``tie_break`` is for having a rating: it orders candidates of equal scores and is not part of the score.
    """

    title: float = 45.0
    year: float = 15.0
    region: float = 10.0
    director: float = 12.0
    actors: float = 8.0
    genre: float = 5.0
    length: float = 5.0
    tie_break: float = 2.0

    @property
    def each(self) -> tuple[float, ...]:
        """All weights, in this order."""
        return (
            *(self.title, self.year, self.region, self.director),
            *(self.actors, self.genre, self.length, self.tie_break),
        )

    @property
    def total(self) -> float:
        """The highest possible score."""
        return float(sum(self.each[:-1]))


DEFAULT_WEIGHTS = Weights()
ITEMS = tuple(item.name for item in fields(Weights))
"""The names of the items, in order."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the verdicts.

    Attributes:
        confirm: Points from which a candidate may be confirmed.
        review: Points from which a person reviews it.
        lead: Points by which the best must lead every other work.
        title_floor: Similarity, 0 to 1, under which a title is rejected.
        year_gap: Years from which a year is rejected.
    """

    confirm: float = 85.0
    review: float = 70.0
    lead: float = 8.0
    title_floor: float = 0.55
    year_gap: int = 3


DEFAULT_THRESHOLDS = Thresholds()
