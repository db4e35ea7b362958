"""What an experiment came to: which sections each variant has, and how people took to them since it began."""

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
"""The sections that an experiment is for, but that none of its variants has."""


@dataclass(slots=True)
class VariantResult:
    """One variant.

    Attributes:
        name: Of the variant; `USUAL` for the sections that are ordered as ever.
        sections: How many sections it has.
        shown: How often comments of theirs were shown since the experiment began.
        liked: How many likes these gained, those taken back subtracted.
        comments: How many comments were published there.
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
        """The lower bound of that rate, as the score of heat takes it: few impressions prove little."""
        liked = np.array([max(self.liked, 0)])
        return float(wilson(liked, np.maximum(self.shown - liked, 0))[0])


def assigned(connection: Connection, experiment: Experiment) -> dict[int, str]:
    """Return by section that an experiment is for the name of its variant, `USUAL` where it has none."""
    found: dict[int, str] = {}
    for row in connection.execute(select(section.c.section_id, section.c.type)):
        if experiment.scope.covers(row.section_id, row.type):
            variant = variant_of(experiment, row.section_id, row.type)
            found[row.section_id] = variant.name if variant is not None else USUAL
    return found


def evaluate(connection: Connection, experiment: Experiment, since: datetime) -> list[VariantResult]:
    """Return what came of the variants since a moment, to the hour; the usual order comes first."""
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
