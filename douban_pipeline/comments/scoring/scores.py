"""Stores rankings: the heat of every root, its parts, and the decisions of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from douban_pipeline.comments.heat import score as score_rules
from douban_pipeline.comments.heat.graph import Column
from douban_pipeline.comments.heat.ranking import SHOWN_PARTS, HeatRanking
from douban_pipeline.comments.heat.score import HEAT
from douban_pipeline.comments.scoring.columns import SectionColumns
from douban_pipeline.comments.store.tables import score
from douban_pipeline.core.database import run_transaction, upsert

TOLERANCE = 1000
"""Maximum deviation of a stored heat, in millionths. Lists use the stored heat, so that a sweep does not rewrite every
row for an invisible decay: within a quarter of an hour, comments older than a day change by less."""
BATCH = 2000


def settle(ranking: HeatRanking, columns: SectionColumns) -> Column:
    """Return the heat of every root by its position in ``columns``; the stored one if it is within `TOLERANCE`."""
    heat = np.empty(len(columns), dtype=np.int64)
    heat[ranking.rows] = ranking.heat
    near = columns.scored & (np.abs(heat - columns.stored) < TOLERANCE)
    return np.where(near, columns.stored, heat)


def store_scores(
    engine: Engine,
    section_id: int,
    ranking: HeatRanking,
    columns: SectionColumns,
    heat: Column,
    variant: str,
    now: datetime,
) -> int:
    """Write the scores that changed, some thousand per transaction; return their number.

    After an interruption the next run writes only what is still missing.
    """
    changed = np.flatnonzero(~columns.scored | (heat != columns.stored))
    changed = changed[np.argsort(columns.ids[changed])]  # in the order in which workers lock rows
    for start in range(0, len(changed), BATCH):
        part = changed[start : start + BATCH]
        rows = list(score_rows(part, np.full(len(part), section_id), ranking, variant, now))
        run_transaction(engine, partial(write_scores, rows=rows))
    return len(changed)


def write_scores(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of `cmt_score` in place of those of the same comments."""
    changes = [each.name for each in score.c if each.name not in ("comment_id", "section_id")]
    upsert(connection, score, rows, keys=["comment_id"], changes=changes)


def score_rows(
    chosen: Column, sections: Column, ranking: HeatRanking, variant: str, now: datetime
) -> Iterator[dict[str, Any]]:
    """Yield rows of `cmt_score`.

    Args:
        chosen: Roots to yield, by their positions in the columns that were ranked.
        sections: Ids of their sections, by position in ``chosen``.
        ranking: A ranking that contains them.
        variant: Experiment and variant.
        now: Time of computation.
    """
    place = np.empty(len(ranking), dtype=np.int64)
    place[ranking.rows] = np.arange(len(ranking))
    at = place[chosen]
    parts = {name: np.round(ranking.parts[name][at].astype(np.float64), 6).tolist() for name in SHOWN_PARTS}
    decided = {name: hit[chosen] for name, hit in ranking.recalled.counted.items() if hit[chosen].any()}
    for number, (comment_id, value) in enumerate(zip(ranking.ids[at].tolist(), ranking.heat[at].tolist(), strict=True)):
        yield {
            "comment_id": comment_id,
            "section_id": int(sections[number]),
            "heat": value,
            "score": value / HEAT,
            "parts": {name: column[number] for name, column in parts.items() if column[number]},
            "decisions": [name for name, hit in decided.items() if hit[number]],
            "variant": variant,
            "version": str(score_rules.VERSION),
            "score_at": now,
        }
