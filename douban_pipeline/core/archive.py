"""Every raw answer, compressed and addressed by content: serves as the search cache and as the input of replays."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Row, Table, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import chunks, reading, run_statement, run_transaction
from douban_pipeline.core.errors import SourceError

LONGEST_CACHE = timedelta(days=30)
"""The oldest answer, by when it was last seen, that may replace a call; retention relies on it."""

_BODIES = 200
"""Answers read in one statement: about ten kilobytes each, decompressed."""

_IDS = 10_000
"""Ids read in one statement."""


class ArchiveError(SourceError):
    """The database did not store an answer: nothing of it is kept, and nothing may be concluded from it."""

    healthy = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One archived answer.

    Attributes:
        snapshot_id: Its number.
        source: Source that gave it.
        request_key: What was requested, for people (cut to 500 characters).
        status: HTTP status when it was last seen.
        body: The answer as it came.
        parser_version: Version of a parser known to read it: the one that read it first, or a later one that read it
            again.
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


@dataclass(frozen=True, slots=True)
class ArchiveSize:
    """A number of answers, and their bytes as stored."""

    answers: int
    bytes: int


class Archive:
    """Raw answers of all sources.

    Args:
        engine: Where the table is.
        table: The table of the answers.
        clock: Source of the current time.
    """

    def __init__(self, engine: Engine, table: Table, clock: Clock) -> None:
        self._engine = engine
        self._table = table
        self._clock = clock
        # Built once: every request reads and writes, and building a statement costs more than sending it.
        asked = (table.c.source == bindparam("of")) & (table.c.key_hash == bindparam("hash"))
        self._known = select(table.c.snapshot_id).where(asked, table.c.sha256 == bindparam("content"))
        self._seen = update(table).where(table.c.snapshot_id == bindparam("known_id"))
        self._recent = (
            select(table)
            .where(asked, table.c.seen_at >= bindparam("since"))
            .order_by(table.c.seen_at.desc(), table.c.snapshot_id.desc())
            .limit(bindparam("most"))
        )

    def put(self, source: str, key: str, status: int, body: bytes, parser_version: str) -> int:
        """Keep one answer and return its snapshot id; content already known only gets a new ``seen_at``.

        Raises:
            ArchiveError: The database did not store it, for example because the disk is full. Nothing of it is kept.
        """
        for retry in (True, False):
            try:
                return self._put(source, key, status, body, parser_version)
            except DBAPIError as error:
                if retry and isinstance(error, IntegrityError):
                    # Another process stored the same content a moment ago: the second attempt finds it.
                    continue
                # Without SQLAlchemy's own text and PostgreSQL's further lines, which repeat the answer.
                cause = str(error.orig).partition("\n")[0]
                reason = f"the archive did not take an answer of {len(body)} bytes ({cause})"
                raise ArchiveError(source, reason[:300]) from error.orig
        raise AssertionError("unreachable")

    def _put(self, source: str, key: str, status: int, body: bytes, parser_version: str) -> int:
        now = self._clock.now()
        hashed = key_hash(key)
        sha256 = _sha256(body)
        known = {"of": source, "hash": hashed, "content": sha256}
        new = {
            "source": source,
            "key_hash": hashed,
            "request_key": key[:500],
            "status": status,
            "sha256": sha256,
            "body": zlib.compress(body, 6),
            "parser_version": parser_version,
            "fetched_at": now,
            "seen_at": now,
        }

        def store(connection: Connection) -> int:
            snapshot_id = connection.execute(self._known, known).scalar()
            if snapshot_id is not None:
                seen = {"known_id": snapshot_id, "seen_at": now, "status": status}
                # No row is updated if retention deleted it after it was found.
                if connection.execute(self._seen, seen).rowcount:
                    return int(snapshot_id)
            inserted = connection.execute(insert(self._table), new).inserted_primary_key
            assert inserted is not None
            return int(inserted[0])

        return run_transaction(self._engine, store)

    def recent(self, source: str, key: str, max_age: timedelta, *, limit: int = 5) -> list[Snapshot]:
        """Return the answers to ``key`` seen at most ``max_age`` ago, newest first.

        Refused answers (such as a captcha page) are archived too; a reader skips them and tries the next one.

        Raises:
            ValueError: ``max_age`` is above `LONGEST_CACHE`.
        """
        if max_age > LONGEST_CACHE:
            raise ValueError(f"answers up to {max_age} old asked for, but retention only leaves {LONGEST_CACHE}")
        asked = {
            "of": source,
            "hash": key_hash(key),
            "since": self._clock.now() - max_age,
            "most": limit,
        }
        with reading(self._engine) as connection:
            return [_snapshot(row) for row in connection.execute(self._recent, asked)]

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
        found: dict[int, bytes] = {}
        for some in chunks(sorted(snapshot_ids)):
            query = select(table.c.snapshot_id, table.c.body).where(table.c.snapshot_id.in_(some))
            found.update({snapshot_id: zlib.decompress(body) for snapshot_id, body in connection.execute(query)})
        return found

    def read(self, source: str, *, other_than: str | None = None) -> Iterator[list[Snapshot]]:
        """Yield all answers of ``source`` in batches, the oldest first.

        Args:
            source: Name of the source.
            other_than: A parser version; answers that it is known to read are left out.
        """
        table = self._table
        last = 0
        while True:
            ids = select(table.c.snapshot_id).where(table.c.snapshot_id > last)
            with reading(self._engine) as connection:
                found = connection.execute(ids.order_by(table.c.snapshot_id).limit(_BODIES)).scalars().all()
                if not found:
                    return
                # By bounds of the primary key: sorting a source's answers again for every batch would be slow.
                wanted = [table.c.snapshot_id.between(found[0], found[-1]), table.c.source == source]
                if other_than is not None:
                    wanted.append(table.c.parser_version != other_than)
                rows = connection.execute(select(table).where(*wanted).order_by(table.c.snapshot_id)).all()
            last = found[-1]
            if rows:
                yield [_snapshot(row) for row in rows]

    def note_parser(self, snapshot_ids: Collection[int], parser_version: str) -> None:
        """Store that ``parser_version`` is known to read these answers."""
        table = self._table
        read = update(table).where(table.c.snapshot_id.in_(snapshot_ids))
        run_statement(self._engine, read.values(parser_version=parser_version))

    def unseen_since(self, before: datetime) -> Iterator[list[int]]:
        """Yield the ids of the answers last seen before a moment, in batches; uses the index alone and reads no
        body."""
        table = self._table
        query = select(table.c.seen_at, table.c.snapshot_id).where(table.c.seen_at < before)
        query = query.order_by(table.c.seen_at, table.c.snapshot_id).limit(_IDS)
        after = query
        while True:
            with reading(self._engine) as connection:
                found = connection.execute(after).all()
            if not found:
                return
            yield [row.snapshot_id for row in found]
            seen_at, snapshot_id = found[-1]
            later = or_(table.c.seen_at > seen_at, table.c.snapshot_id > snapshot_id)
            after = query.where(table.c.seen_at >= seen_at, later)

    def size_of(self, snapshot_ids: Collection[int], before: datetime) -> ArchiveSize:
        """Return what `drop` would delete."""
        with reading(self._engine) as connection:
            return self._size_of(connection, snapshot_ids, before)

    def prune(self, before: datetime, *, dry_run: bool = False) -> int:
        """Delete the answers last seen before a moment; return how many, or how many a dry run would delete."""
        work = self.size_of if dry_run else self.drop
        return sum(work(some, before).answers for ids in self.unseen_since(before) for some in chunks(ids))

    def drop(self, snapshot_ids: Collection[int], before: datetime) -> ArchiveSize:
        """Delete those of the given answers that were last seen before the moment, in one transaction.

        The moment is checked again here, because an answer may have been seen again since it was selected.
        """
        table = self._table

        def delete_them(connection: Connection) -> ArchiveSize:
            # Lock the rows, so that none is marked as seen between this check and the deletion.
            dropped = self._size_of(connection, snapshot_ids, before, lock=True)
            connection.execute(delete(table).where(table.c.snapshot_id.in_(snapshot_ids), table.c.seen_at < before))
            return dropped

        return run_transaction(self._engine, delete_them)

    def _size_of(
        self, connection: Connection, snapshot_ids: Collection[int], before: datetime, *, lock: bool = False
    ) -> ArchiveSize:
        table = self._table
        query = select(table.c.snapshot_id, func.length(table.c.body)).where(
            table.c.snapshot_id.in_(snapshot_ids), table.c.seen_at < before
        )
        lengths = [row[1] for row in connection.execute(query.with_for_update() if lock else query)]
        return ArchiveSize(len(lengths), sum(lengths))


def key_hash(key: str) -> str:
    """Return the hash by which the answers to ``key`` are looked up."""
    return _sha256(key.encode())


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
