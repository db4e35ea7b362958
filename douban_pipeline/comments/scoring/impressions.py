"""Impressions: counts clients' reports by hour, and aggregates old hours into one row per comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, select

from douban_pipeline.comments.store.tables import comment, impression
from douban_pipeline.core.database import chunks, run_transaction, upsert

BEFORE = datetime(1970, 1, 1, tzinfo=UTC)
"""Value of ``hour`` of the row that holds everything before the windows."""
KEPT = timedelta(days=8)
"""How long hours are kept: the longest window, plus a day for late reports."""
_BATCH = 500


def add_impressions(
    connection: Connection, seen: Mapping[int, int], now: datetime, liked: Mapping[int, int] | None = None
) -> int:
    """Add impressions and gained likes of comments to the current hour; return how many of the comments exist.

    One statement per some hundred comments: callers collect reports and write them together.
    """
    liked = liked or {}
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    known = 0
    for ids in chunks(sorted({*seen, *liked}), _BATCH):
        query = select(comment.c.comment_id, comment.c.section_id).where(comment.c.comment_id.in_(ids))
        rows = [
            {
                "comment_id": row.comment_id,
                "section_id": row.section_id,
                "hour": hour,
                "shown": seen.get(row.comment_id, 0),
                "liked": liked.get(row.comment_id, 0),
            }
            for row in connection.execute(query)
        ]
        known += len(rows)
        _add(connection, rows)
    return known


def _add(connection: Connection, rows: list[dict[str, object]]) -> None:
    added = ["shown", "liked"]
    upsert(connection, impression, rows, keys=["comment_id", "hour"], changes=added, adds=added)


def roll_up(engine: Engine, now: datetime) -> int:
    """Add hours older than `KEPT` to the row of a comment's past; return how many rows were aggregated.

    Some hundred comments per transaction; after an interruption the next run continues.
    """
    bound = now.astimezone(UTC) - KEPT
    old = [impression.c.hour < bound, impression.c.hour > BEFORE]
    rolled = 0
    while True:
        done = run_transaction(engine, lambda connection: _roll(connection, old))
        if not done:
            return rolled
        rolled += done


def _roll(connection: Connection, old: Sequence[ColumnElement[bool]]) -> int:
    ids = connection.execute(select(impression.c.comment_id).where(*old).distinct().limit(_BATCH)).scalars().all()
    if not ids:
        return 0
    where = [impression.c.comment_id.in_(ids), *old]
    query = (
        select(
            impression.c.comment_id,
            impression.c.section_id,
            func.sum(impression.c.shown).label("shown"),
            func.sum(impression.c.liked).label("liked"),
        )
        .where(*where)
        .group_by(impression.c.comment_id, impression.c.section_id)
        .with_for_update()
    )
    rows = [
        {**row, "hour": BEFORE, "shown": int(row["shown"]), "liked": int(row["liked"])}
        for row in connection.execute(query).mappings()
    ]
    _add(connection, rows)
    return connection.execute(delete(impression).where(*where)).rowcount
