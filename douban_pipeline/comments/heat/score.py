"""The score, version 1: a sum of parts, each of which can be displayed.

    wilson(likes, dislikes + k·reports) · length · level     approval by readers
    + a · ln(1 + replies)                                     discussion
    + b · like rate, weighted towards the last day and week   response of recent readers
    + c · the owner's like, c · the owner's answer
    − g · ln(age in hours + 2)                                time decay

plus the points of rules (`recall`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np

from douban_pipeline.comments.heat.factors import wilson
from douban_pipeline.comments.heat.graph import Column, Columns
from douban_pipeline.core.errors import ProblemsError

VERSION = 1
FACTORS = (
    "likes",
    "dislikes",
    "reports",
    "replies",
    "length",
    "level",
    "age_hours",
    "like_rate",
    "like_rate_day",
    "like_rate_week",
    "owner_liked",
    "owner_replied",
)
"""Factors that the score is computed from."""
PARTS = ("approval", "replies", "rate", "owner", "decay")
"""Names of the parts, in display order."""
HEAT = 1_000_000
"""Scores are sorted as whole millionths, so that machines whose floats differ in the last bit agree on ties."""
_MOST_LEVEL = 6


@dataclass(frozen=True, slots=True)
class HeatWeights:
    """Weights of the parts; each is 0 or more.

    Attributes:
        rate_day: Share of the last day in the like rate; the remaining share is that of all time.
        short: Multiplier of the approval of a text of one character; it is 1 from `full_length` on.
    """

    report_dislikes: float = 3.0
    replies: float = 0.1
    rate: float = 0.6
    rate_day: float = 0.5
    rate_week: float = 0.3
    owner: float = 0.1
    decay: float = 0.12
    short: float = 0.75
    full_length: float = 15.0
    level: float = 0.02

    def __post_init__(self) -> None:
        """Reject weights that yield no valid order.

        Raises:
            ProblemsError: Some weights are out of range; one sentence for each.
        """
        problems = [
            f"权重 {name} 应为不小于 0 的数，现为 {value}"
            for name, value in asdict(self).items()
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0
        ]
        if not problems and self.rate_day + self.rate_week > 1:
            problems.append("权重 rate_day 与 rate_week 之和不得超过 1")
        if not problems and self.short > 1:
            problems.append("权重 short 不得超过 1：短评不应比长评更占优")
        if not problems and self.full_length < 1:
            problems.append("权重 full_length 不得小于 1")
        if problems:
            raise ProblemsError(problems)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the default weights, overridden by those in ``given``.

        Raises:
            ProblemsError: A weight is unknown or out of range.
        """
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ProblemsError([f"没有名为 {name} 的权重；可用：{'、'.join(sorted(known))}" for name in unknown])
        return cls(**given)


def parts(factors: Columns, weights: HeatWeights) -> dict[str, Column]:
    """Return the parts of each comment's score, in points, as columns of 32-bit floats.

    Args:
        factors: At least `FACTORS`.
    """
    approval = wilson(factors["likes"], factors["dislikes"] + weights.report_dislikes * factors["reports"])
    approval *= length_weight(factors["length"], weights)
    approval *= level_weight(factors["level"], weights)
    rest = 1.0 - weights.rate_day - weights.rate_week
    rate = weights.rate_day * factors["like_rate_day"]
    rate += weights.rate_week * factors["like_rate_week"]
    rate += rest * factors["like_rate"]
    rate *= weights.rate
    columns = {
        "approval": approval,
        "replies": weights.replies * np.log1p(factors["replies"]),
        "rate": rate,
        "owner": weights.owner * np.add(factors["owner_liked"], factors["owner_replied"], dtype=np.float32),
        "decay": -weights.decay * np.log(np.maximum(factors["age_hours"], 0.0) + 2.0),
    }
    return {name: columns[name].astype(np.float32) for name in PARTS}


def length_weight(length: Column, weights: HeatWeights) -> Column:
    """Return the multiplier of approval for the length of a text, from ``short`` to 1."""
    reached = np.clip((np.asarray(length, dtype=np.float64) - 1.0) / max(weights.full_length - 1.0, 1.0), 0.0, 1.0)
    return weights.short + (1.0 - weights.short) * reached


def level_weight(level: Column, weights: HeatWeights) -> Column:
    """Return the multiplier of approval for the author's level."""
    return 1.0 + weights.level * np.clip(np.asarray(level, dtype=np.float64), 0.0, _MOST_LEVEL)


def total(columns: Columns) -> Column:
    """Return the sums of parts in whole millionths of a point (`HEAT`)."""
    summed = np.zeros(len(next(iter(columns.values()))), dtype=np.float64)
    for column in columns.values():
        summed += column
    summed *= HEAT
    return np.rint(summed).astype(np.int64)


def ordered(ids: Column, heat: Column) -> Column:
    """Return the positions of all comments by heat, hottest first; ties by id, newest first.

    The order depends only on ids and heat, not on the order of the input.
    """
    return np.lexsort((ids, heat))[::-1]
