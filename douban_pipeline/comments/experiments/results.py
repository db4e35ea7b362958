"""Evaluates experiments: sections per variant, and their impressions, likes and comments since the start."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import Connection, func, select

from douban_pipeline.comments.heat.experiments import Experiment, variant_of
from douban_pipeline.comments.heat.factors import wilson
from douban_pipeline.comments.ids import first_of
from douban_pipeline.comments.store.tables import comment, impression, section

USUAL = "—"
"""Name for the sections in an experiment's scope that have none of its variants."""


@dataclass(slots=True)
class VariantResult:
    """Result of one variant.

    Attributes:
        name: Name of the variant; `USUAL` for sections with the default order.
    """

    name: str
    sections: int = 0
    shown: int = 0
    liked: int = 0
    comments: int = 0

    @property
    def rate(self) -> float:
        """Likes per impression; 0 without any."""
        return self.liked / self.shown if self.shown else 0.0

    @property
    def bound(self) -> float:
        """Lower bound of that rate, as in the score: few impressions are weak evidence."""
        liked = np.array([max(self.liked, 0)])
        return float(wilson(liked, np.maximum(self.shown - liked, 0))[0])


def assigned(connection: Connection, experiment: Experiment) -> dict[int, str]:
    """Return the name of the variant of each section in an experiment's scope, `USUAL` where it has none."""
    found: dict[int, str] = {}
    for row in connection.execute(select(section.c.section_id, section.c.type)):
        if experiment.scope.covers(row.section_id, row.type):
            variant = variant_of(experiment, row.section_id, row.type)
            found[row.section_id] = variant.name if variant is not None else USUAL
    return found


def evaluate(connection: Connection, experiment: Experiment, since: datetime) -> list[VariantResult]:
    """Return the results of the variants since a moment, rounded down to the hour; the default order comes first."""
    names = assigned(connection, experiment)
    results = {name: VariantResult(name) for name in (USUAL, *(each.name for each in experiment.variants))}
    for name in names.values():
        results[name].sections += 1
    hour = since.replace(minute=0, second=0, microsecond=0)
    seen = select(impression.c.section_id, func.sum(impression.c.shown), func.sum(impression.c.liked))
    for number, shown, liked in connection.execute(
        seen.where(impression.c.hour >= hour).group_by(impression.c.section_id)
    ):
        if number in names:
            results[names[number]].shown += int(shown)
            results[names[number]].liked += int(liked)
    written = select(comment.c.section_id, func.count()).where(comment.c.comment_id >= first_of(since))
    for number, count in connection.execute(written.group_by(comment.c.section_id)):
        if number in names:
            results[names[number]].comments += count
    return list(results.values())
