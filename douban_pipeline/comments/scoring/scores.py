"""Stores rankings: the heat of every root, its parts, and the decisions of rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
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
_BATCH = 5000
_WRITERS = 2
"""Transactions of a sweep at a time: while the database writes one, the next is put together, and written on another of
its cores. More would take the cores that readers need."""
_SORTED = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
"""Encodes as `JsonText` does, whose function makes an encoder a call."""
_CHANGES = [each.name for each in score.c if each.name not in ("comment_id", "section_id")]


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
    packs = engine.dialect.name in ("mysql", "mariadb")

    def store(part: Column) -> None:
        if packs:
            given = [section_id, variant, str(score_rules.VERSION), now.astimezone(UTC).replace(tzinfo=None)]
            rows = [
                each
                for number, value, parts, decisions in _scores(part, ranking)
                for each in (number, value, value / HEAT, _SORTED(parts), _SORTED(decisions))
            ]
            run_transaction(engine, partial(_write_packed, given, rows))
        else:
            each_row = list(score_rows(part, np.full(len(part), section_id), ranking, variant, now))
            run_transaction(engine, partial(write_scores, rows=each_row))

    batches = [changed[start : start + _BATCH] for start in range(0, len(changed), _BATCH)]
    with ThreadPoolExecutor(_WRITERS if packs else 1) as pool:
        for _ in pool.map(store, batches):
            pass
    return len(changed)


_GIVEN = ("section_id", "variant", "version", "score_at")
_OF_ROW = ("comment_id", "heat", "score", "parts", "decisions")
_SET = "SET " + ", ".join(f"@{name} = %s" for name in _GIVEN)
_ROW = "(" + ", ".join([*["%s"] * len(_OF_ROW), *(f"@{name}" for name in _GIVEN)]) + ")"
_INSERT = "INSERT INTO {table} ({columns}) VALUES {rows} ON DUPLICATE KEY UPDATE {changes}"


def _write_packed(given: Sequence[Any], values: Sequence[Any], connection: Connection) -> None:
    """Write many rows to MySQL or MariaDB with the driver alone: SQLAlchemy takes longer for them than the database.

    Args:
        given: What all rows have in common, in the order of `_GIVEN`.
        values: The others, in the order of `_OF_ROW`.
    """
    connection.exec_driver_sql(_SET, tuple(given))
    statement = _INSERT.format(
        table=score.name,
        columns=", ".join([*_OF_ROW, *_GIVEN]),
        rows=", ".join([_ROW] * (len(values) // len(_OF_ROW))),
        changes=", ".join(f"{name} = VALUES({name})" for name in _CHANGES),
    )
    connection.exec_driver_sql(statement, tuple(values))


def write_scores(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of `cmt_score` in place of those of the same comments."""
    upsert(connection, score, rows, keys=["comment_id"], changes=_CHANGES)


def score_rows(
    chosen: Column, sections: Column, ranking: HeatRanking, variant: str, now: datetime
) -> Iterator[dict[str, Any]]:
    """Yield rows of `cmt_score`.

    Args:
        sections: Ids of their sections, by position in ``chosen``.
    """
    for section_id, (number, value, parts, decisions) in zip(sections.tolist(), _scores(chosen, ranking), strict=True):
        yield {
            "comment_id": number,
            "section_id": section_id,
            "heat": value,
            "score": value / HEAT,
            "parts": parts,
            "decisions": decisions,
            "variant": variant,
            "version": str(score_rules.VERSION),
            "score_at": now,
        }


def _scores(chosen: Column, ranking: HeatRanking) -> Iterator[tuple[int, int, dict[str, float], list[str]]]:
    """Yield id, heat, parts that are not 0, and decisions of roots, by their positions in the columns ranked."""
    place = np.empty(len(ranking), dtype=np.int64)
    place[ranking.rows] = np.arange(len(ranking))
    at = place[chosen]
    parts = [np.round(ranking.parts[name][at].astype(np.float64), 6).tolist() for name in SHOWN_PARTS]
    decided: dict[int, list[str]] = {}
    for name, hit in ranking.recalled.counted.items():
        for number in np.flatnonzero(hit[chosen]).tolist():
            decided.setdefault(number, []).append(name)
    rows = zip(ranking.ids[at].tolist(), ranking.heat[at].tolist(), *parts, strict=True)
    for number, (comment_id, value, *shares) in enumerate(rows):
        shown = {name: share for name, share in zip(SHOWN_PARTS, shares, strict=True) if share}
        yield comment_id, value, shown, decided.get(number, [])
