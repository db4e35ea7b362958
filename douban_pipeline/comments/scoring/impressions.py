"""Impressions: counts by hour how many visitors saw a comment, and aggregates old hours into one row per comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Engine, delete, insert, select, tuple_

from douban_pipeline.comments.store.tables import comment, impression, view
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


def add_views(connection: Connection, seen: Collection[int], viewer: str, now: datetime) -> int:
    """Add an impression to each comment that a visitor has not seen within `KEPT`; return their number.

    Raises:
        IntegrityError: Another transaction added the same at the same time; run again, they are known.
    """
    new = 0
    for ids in chunks(sorted(seen), _BATCH):
        known = select(view.c.comment_id).where(view.c.comment_id.in_(ids), view.c.viewer == viewer)
        fresh = sorted(set(ids) - set(connection.execute(known).scalars()))
        if fresh:
            rows = [{"comment_id": number, "viewer": viewer, "seen_at": now} for number in fresh]
            connection.execute(insert(view), rows)
            new += add_impressions(connection, dict.fromkeys(fresh, 1), now)
    return new


def forget_views(engine: Engine, now: datetime) -> int:
    """Forget who saw what longer ago than `KEPT`, some hundred rows per transaction; return how many were forgotten."""
    bound, forgotten = now.astimezone(UTC) - KEPT, 0
    while done := run_transaction(engine, lambda connection: _forget(connection, bound)):
        forgotten += done
    return forgotten


def _forget(connection: Connection, bound: datetime) -> int:
    old = select(view.c.comment_id, view.c.viewer).where(view.c.seen_at < bound).order_by(view.c.seen_at).limit(_BATCH)
    keys = [tuple(row) for row in connection.execute(old)]
    if keys:
        connection.execute(delete(view).where(tuple_(view.c.comment_id, view.c.viewer).in_(keys)))
    return len(keys)


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
    # Locked row by row and added up here: PostgreSQL locks no groups, and MySQL reads only what it locks as it is now.
    hours = select(impression.c.comment_id, impression.c.section_id, impression.c.shown, impression.c.liked)
    shown: Counter[tuple[int, int]] = Counter()
    liked: Counter[tuple[int, int]] = Counter()
    for row in connection.execute(hours.where(*where).with_for_update()):
        shown[row.comment_id, row.section_id] += row.shown
        liked[row.comment_id, row.section_id] += row.liked
    rows = [
        {"comment_id": key[0], "section_id": key[1], "hour": BEFORE, "shown": seen, "liked": liked[key]}
        for key, seen in shown.items()
    ]
    _add(connection, rows)
    return connection.execute(delete(impression).where(*where)).rowcount
