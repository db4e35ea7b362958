"""A section in the order of heat: factors, parts of the score and rules put together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from douban_pipeline.comments.heat import score
from douban_pipeline.comments.heat.factors import GRAPH
from douban_pipeline.comments.heat.graph import Column, Columns, FactorGraph
from douban_pipeline.comments.heat.recall import Recalled, recall
from douban_pipeline.comments.heat.rules import RuleSet
from douban_pipeline.comments.heat.score import Weights

SHOWN_PARTS = (*score.PARTS, "rules", "pin")
"""The parts that a score adds up from, those of rules among them."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a section is ordered by.

    Attributes:
        weights: Of the parts of the score.
        rules: What people decided.
        variant: Experiment and variant of it; empty outside of experiments.
    """

    weights: Weights = field(default_factory=Weights)
    rules: RuleSet = field(default_factory=RuleSet)
    variant: str = ""

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors that are needed, by name."""
        return tuple(sorted({*score.FACTORS, *self.rules.factors}))


@dataclass(frozen=True, slots=True)
class Ranking:
    """All comments of a section, the hottest first.

    Attributes:
        ids: Their ids.
        heat: Their scores in millionths, falling.
        parts: Their parts, by name; `SHOWN_PARTS`.
        rows: Where each of them stood in the columns that the ranking was made from.
        recalled: What rules did, by place in those columns.
    """

    ids: Column
    heat: Column
    parts: dict[str, Column]
    rows: Column
    recalled: Recalled

    def __len__(self) -> int:
        """Return how many comments there are."""
        return len(self.ids)


def columns_to_read(policy: Policy, graph: FactorGraph = GRAPH) -> frozenset[str]:
    """Return the columns that `rank` wants under ``policy``; the text of comments only where a rule asks for it."""
    return graph.read_for(policy.factors)


def rank(ids: Column, read: Columns, policy: Policy, graph: FactorGraph = GRAPH) -> Ranking:
    """Return the order of heat: the same for everybody and whatever order the comments come in.

    Args:
        ids: The comments' ids, each once.
        read: At least `columns_to_read`.
        policy: What they are ordered by.
        graph: The factors.

    Raises:
        FactorGraphError: A column is missing or has another length than the ids.
    """
    factors = graph.compute(policy.factors, read)
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
    return Ranking(ids[rows], heat[rows], ordered_parts, rows, recalled)
