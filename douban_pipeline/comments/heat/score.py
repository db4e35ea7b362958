"""The score, version 1: parts that add up, each of which can be shown.

    wilson(likes, dislikes + k·reports) · length · level     what readers think of it
    + a · ln(1 + replies)                                     what it sets going
    + b · like rate, most of it of the last day and week      what it does to those who see it now
    + c · the owner's like, c · the owner's answer
    − g · ln(age in hours + 2)                                so that the old do not stay on top

and what rules add (`recall`).
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
"""What the score is made of."""
PARTS = ("approval", "replies", "rate", "owner", "decay")
"""The names of the parts, in the order in which they are shown."""
HEAT = 1_000_000
"""Scores are ordered by in whole millionths, so that machines that differ in the last bit of a float agree on ties."""
_MOST_LEVEL = 6


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts; every one of them is 0 or more.

    Attributes:
        report_dislikes: As how many dislikes a report counts (k).
        replies: Of a part that grows with the logarithm of replies (a).
        rate: Of the like rate (b).
        rate_day: Share of the last day in the like rate; the rest is that of all time.
        rate_week: Share of the last week in the like rate.
        owner: For a like of the section's owner, and once more for an answer (c).
        decay: Of the logarithm of age (g).
        short: What the approval of a text of one character is multiplied by; at `full_length` it is 1.
        full_length: Characters from which a text is not short.
        level: Added to the multiplier for each level of the author.
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
        """Refuse what makes no order.

        Raises:
            ProblemsError: A sentence for each weight that is out of range.
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
        """Return the default weights with those in ``given`` in their place.

        Raises:
            ProblemsError: A weight is unknown or out of range.
        """
        known = {each.name for each in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ProblemsError([f"没有名为 {name} 的权重；可用：{'、'.join(sorted(known))}" for name in unknown])
        return cls(**given)


def parts(factors: Columns, weights: Weights) -> dict[str, Column]:
    """Return the parts of each comment's score, in points, as columns of 32-bit floats.

    Args:
        factors: At least `FACTORS`.
        weights: How much each part counts.
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


def length_weight(length: Column, weights: Weights) -> Column:
    """Return what approval is multiplied by for the length of a text: ``short`` to 1, and not more for the longest."""
    reached = np.clip((np.asarray(length, dtype=np.float64) - 1.0) / max(weights.full_length - 1.0, 1.0), 0.0, 1.0)
    return weights.short + (1.0 - weights.short) * reached


def level_weight(level: Column, weights: Weights) -> Column:
    """Return what approval is multiplied by for the author's level."""
    return 1.0 + weights.level * np.clip(np.asarray(level, dtype=np.float64), 0.0, _MOST_LEVEL)


def total(columns: Columns) -> Column:
    """Return the sums of parts in whole millionths of a point (`HEAT`)."""
    summed = np.zeros(len(next(iter(columns.values()))), dtype=np.float64)
    for column in columns.values():
        summed += column
    summed *= HEAT
    return np.rint(summed).astype(np.int64)


def ordered(ids: Column, heat: Column) -> Column:
    """Return the positions of all comments in the order of heat: the hottest first, of equal ones the newest.

    It is the order of the comments' ids and heat alone, whatever order they came in.
    """
    return np.lexsort((ids, heat))[::-1]
