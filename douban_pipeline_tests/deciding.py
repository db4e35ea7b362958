"""Decisions as reviewers recorded them, put straight into the table: what carries them out is tested, not the form."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline_tests.library import Library

NOTE = "海报和导演一致"


def decide(library: Library, vod_id: int, action: str, douban_id: int = 0, **columns: Any) -> int:
    """Record a decision about a video as it stands, its subject checked, ``columns`` changed; return its id."""
    now = library.clock.now()
    values = {
        "vod_id": vod_id,
        "shard": shard_of(vod_id),
        "action": action,
        "douban_id": douban_id,
        "fingerprint": fingerprint(library.row(vod_id)),
        "checked_at": now,
        "reviewer": "小王",
        "note": NOTE,
        "state": DecisionState.PENDING,
        "pending_key": f"{vod_id}:{action}:{douban_id}",
        "run_id": "launch",
        "batch_id": "launch",
        "created_at": now,
        **columns,
    }
    with library.engine.begin() as connection:
        key = connection.execute(sa.insert(library.tables.decision).values(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def decisions(library: Library, *columns: str) -> list[Any]:
    """Return columns of all decisions, the oldest first; plain values if it is one column."""
    table = library.tables.decision
    rows = library.query(sa.select(table).order_by(table.c.decision_id))
    return [row[columns[0]] if len(columns) == 1 else tuple(row[column] for column in columns) for row in rows]
