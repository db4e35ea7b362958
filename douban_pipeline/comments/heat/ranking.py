"""Ranks a section by heat: combines factors, parts of the score and rules."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from douban_pipeline.comments.heat import score
from douban_pipeline.comments.heat.factors import GRAPH
from douban_pipeline.comments.heat.graph import Column, Columns
from douban_pipeline.comments.heat.recall import Recalled, recall
from douban_pipeline.comments.heat.rules import RuleSet
from douban_pipeline.comments.heat.score import HeatWeights

SHOWN_PARTS = (*score.PARTS, "rules", "pin")
"""Parts that a score is the sum of, including those of rules."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Ranking policy of a section.

    Attributes:
        variant: Experiment and its variant; empty outside of experiments.
    """

    weights: HeatWeights = field(default_factory=HeatWeights)
    rules: RuleSet = field(default_factory=RuleSet)
    variant: str = ""

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors that are needed."""
        return tuple(sorted({*score.FACTORS, *self.rules.factors}))


@dataclass(frozen=True, slots=True)
class HeatRanking:
    """All comments of a section, hottest first.

    Attributes:
        heat: Their scores in millionths, descending.
        parts: Their parts by name, see `SHOWN_PARTS`.
    """

    ids: Column
    heat: Column
    parts: dict[str, Column]
    rows: Column
    recalled: Recalled

    def __len__(self) -> int:
        """Return the number of comments."""
        return len(self.ids)


def columns_to_read(policy: Policy) -> frozenset[str]:
    """Return the columns that `rank` needs under ``policy``; texts only where a rule uses them."""
    return GRAPH.read_for(policy.factors)


def rank(ids: Column, read: Columns, policy: Policy) -> HeatRanking:
    """Return the order by heat; deterministic, whatever order the comments come in.

    Args:
        read: At least `columns_to_read`.

    Raises:
        FactorGraphError: A column is missing or has another length than the ids.
    """
    factors = GRAPH.compute(policy.factors, read)
    count = len(ids)
    parts = score.parts(factors, policy.weights)
    recalled = recall(policy.rules, factors, count)
    del factors
    parts["rules"] = recalled.moved.astype(np.float32)
    parts["pin"] = recalled.pinned.astype(np.float32)
    heat = score.total(parts)
    rows = score.ordered(ids, heat)
    ordered_parts: dict[str, Column] = {}
    for name in SHOWN_PARTS:
        ordered_parts[name] = parts.pop(name)[rows]
    return HeatRanking(ids[rows], heat[rows], ordered_parts, rows, recalled)
