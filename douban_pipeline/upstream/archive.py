"""Every raw answer, compressed and kept by content: the search cache, and the ground of every replay."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from douban_pipeline.catalog.database import reading
from douban_pipeline.catalog.tables import OwnTables
from douban_pipeline.clock import Clock


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One archived answer.

    Attributes:
        snapshot_id: Its number.
        source: Which source gave it.
        request_key: What was asked, for people (cut to 500 characters).
        status: HTTP status when it was last seen.
        body: The answer as it came.
        parser_version: Version of the parser that read it first.
        fetched_at: When this content was first seen (UTC).
        seen_at: When the same content was last seen (UTC).
    """

    snapshot_id: int
    source: str
    request_key: str
    status: int
    body: bytes
    parser_version: str
    fetched_at: datetime
    seen_at: datetime


class Archive:
    """Raw answers of all sources.

    Args:
        engine: Where the snapshot table is.
        tables: Our tables.
        clock: What times are taken from.
    """

    def __init__(self, engine: Engine, tables: OwnTables, clock: Clock) -> None:
        self._engine = engine
        self._table = tables.snapshot
        self._clock = clock

    def put(self, source: str, key: str, status: int, body: bytes, parser_version: str) -> int:
        """Keep one answer and return its snapshot id; content already known is only marked as seen again."""
        table = self._table
        now = self._clock.now()
        key_hash = _sha256(key.encode())
        sha256 = _sha256(body)
        known = (table.c.source == source) & (table.c.key_hash == key_hash) & (table.c.sha256 == sha256)
        packed = zlib.compress(body, 6)
        for retry in (True, False):
            try:
                with self._engine.begin() as connection:
                    snapshot_id = connection.execute(select(table.c.snapshot_id).where(known)).scalar()
                    if snapshot_id is not None:
                        connection.execute(
                            update(table).where(table.c.snapshot_id == snapshot_id).values(seen_at=now, status=status)
                        )
                        return int(snapshot_id)
                    inserted = connection.execute(
                        insert(table).values(
                            source=source,
                            key_hash=key_hash,
                            request_key=key[:500],
                            status=status,
                            sha256=sha256,
                            body=packed,
                            parser_version=parser_version,
                            fetched_at=now,
                            seen_at=now,
                        )
                    ).inserted_primary_key
                    assert inserted is not None
                    return int(inserted[0])
            except IntegrityError:
                # Another process put the same content a moment ago: the second look finds it.
                if not retry:
                    raise
        raise AssertionError("unreachable")

    def latest(self, source: str, key: str, max_age: timedelta) -> Snapshot | None:
        """Return the newest answer to ``key`` seen at most ``max_age`` ago, good or bad; None if there is none."""
        found = self.recent(source, key, max_age, limit=1)
        return found[0] if found else None

    def recent(self, source: str, key: str, max_age: timedelta, *, limit: int = 5) -> list[Snapshot]:
        """Return the answers to ``key`` seen at most ``max_age`` ago, newest first.

        Refused answers (a captcha page, say) are archived too, so a reader looks behind them.
        """
        table = self._table
        statement = (
            select(table)
            .where(
                table.c.source == source,
                table.c.key_hash == _sha256(key.encode()),
                table.c.seen_at >= self._clock.now() - max_age,
            )
            .order_by(table.c.seen_at.desc(), table.c.snapshot_id.desc())
            .limit(limit)
        )
        with reading(self._engine) as connection:
            return [_snapshot(row) for row in connection.execute(statement)]

    def get(self, snapshot_id: int) -> Snapshot:
        """Return one snapshot.

        Raises:
            KeyError: It was never kept, or was dropped by retention.
        """
        table = self._table
        with reading(self._engine) as connection:
            row = connection.execute(select(table).where(table.c.snapshot_id == snapshot_id)).one_or_none()
        if row is None:
            raise KeyError(snapshot_id)
        return _snapshot(row)

    def bodies(self, connection: Connection, snapshot_ids: Collection[int]) -> dict[int, bytes]:
        """Return the answers of those ``snapshot_ids`` that are still kept, as they came."""
        table = self._table
        query = select(table.c.snapshot_id, table.c.body).where(table.c.snapshot_id.in_(snapshot_ids))
        return {snapshot_id: zlib.decompress(body) for snapshot_id, body in connection.execute(query)}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _snapshot(row: Row[Any]) -> Snapshot:
    return Snapshot(
        row.snapshot_id,
        row.source,
        row.request_key,
        row.status,
        zlib.decompress(row.body),
        row.parser_version,
        row.fetched_at,
        row.seen_at,
    )
