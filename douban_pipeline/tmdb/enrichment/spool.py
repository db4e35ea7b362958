"""Questions that could not be written to PostgreSQL yet, kept on this machine's disk: an outage loses nothing.

An SQLite file, shared by all processes of the machine, that syncs every commit to the disk (``synchronous = FULL``). A
job is claimed under a lease before it is replayed, so that two processes never replay the same one. It is logged under
its own id, so that one written just before a crash is not written twice.

Deletion requests are stored here as hashes: earlier jobs of that user are dropped wherever they are, in the spool, in a
service's memory, or just written.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from douban_pipeline.core.clock import Clock
from douban_pipeline.tmdb.store.requests import LoggedRequest

LEASE = timedelta(minutes=5)
FORGOTTEN_FOR = timedelta(days=35)
"""How long a deletion request is kept: longer than logged questions."""
_BUSY_SECONDS = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
  id TEXT PRIMARY KEY, user_hash TEXT NOT NULL, conversation_hash TEXT NOT NULL, created_at REAL NOT NULL,
  body BLOB NOT NULL, claimed_by TEXT, claimed_until REAL, rejected TEXT
);
CREATE INDEX IF NOT EXISTS ix_job_created ON job (created_at) WHERE rejected IS NULL;
CREATE INDEX IF NOT EXISTS ix_job_user ON job (user_hash);
CREATE INDEX IF NOT EXISTS ix_job_conversation ON job (conversation_hash);
CREATE TABLE IF NOT EXISTS forgotten (hash TEXT PRIMARY KEY, at REAL NOT NULL);
"""


class SpoolError(Exception):
    """The spool cannot be read or written, for example because its disk is full."""


@dataclass(frozen=True, slots=True)
class Job:
    """One question to be logged."""

    job_id: UUID
    created_at: datetime
    arguments: Mapping[str, Any]

    @property
    def request(self) -> LoggedRequest:
        """The question as the store takes it."""
        return LoggedRequest(**self.arguments)

    @property
    def hashes(self) -> tuple[str, str]:
        """Hashes of its user and its conversation (empty for none)."""
        conversation = self.arguments.get("conversation_id")
        return user_hash(str(self.arguments["user_id"])), conversation_hash(conversation) if conversation else ""


def user_hash(user_id: str) -> str:
    """Return the hash of a user."""
    return hashlib.sha256(f"user:{user_id}".encode("utf-8", "replace")).hexdigest()


def conversation_hash(conversation_id: UUID) -> str:
    """Return the hash of a conversation."""
    return hashlib.sha256(f"conversation:{conversation_id}".encode()).hexdigest()


class Spool:
    """Jobs on the disk. Safe to share between threads and processes."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._owner = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def add(self, job: Job) -> None:
        """Store a job; it is on the disk when this returns.

        Raises:
            SpoolError: It was not stored.
        """
        whose, conversation = job.hashes
        row = (str(job.job_id), whose, conversation, job.created_at.timestamp(), _packed(job))
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO job (id, user_hash, conversation_hash, created_at, body) VALUES (?, ?, ?, ?, ?)",
                row,
            )

    def claim(self) -> Job | None:
        """Return the oldest job that is not being replayed, claimed for `LEASE`; None if there is none.

        Raises:
            SpoolError: The file cannot be read or written.
        """
        now = self._clock.now()
        with self._transaction() as connection:
            row = connection.execute(
                "UPDATE job SET claimed_by = ?, claimed_until = ? WHERE id = ("
                "SELECT id FROM job WHERE rejected IS NULL AND (claimed_until IS NULL OR claimed_until < ?) "
                "ORDER BY created_at, id LIMIT 1) "
                "RETURNING id, created_at, body",
                (self._owner, (now + LEASE).timestamp(), now.timestamp()),
            ).fetchone()
        return None if row is None else Job(UUID(row[0]), datetime.fromtimestamp(row[1], now.tzinfo), _unpacked(row[2]))

    def done(self, job: Job) -> None:
        """Drop a job that was written."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM job WHERE id = ?", (str(job.job_id),))

    def release(self, job: Job) -> None:
        """Release a claimed job because PostgreSQL does not answer."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE job SET claimed_by = NULL, claimed_until = NULL WHERE id = ? AND claimed_by = ?",
                (str(job.job_id), self._owner),
            )

    def reject(self, job: Job, reason: str) -> None:
        """Put aside a job that PostgreSQL refuses, with the reason; it is not replayed again."""
        with self._transaction() as connection:
            whose, conversation = job.hashes
            connection.execute(
                "INSERT INTO job (id, user_hash, conversation_hash, created_at, body, rejected) "
                "VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET rejected = excluded.rejected, claimed_by = NULL",
                (str(job.job_id), whose, conversation, job.created_at.timestamp(), _packed(job), reason[:500]),
            )

    def counts(self) -> tuple[int, int]:
        """Return how many jobs wait, and how many were put aside.

        Raises:
            SpoolError: The file cannot be read.
        """
        if self._connection is None and not self.path.exists():
            return 0, 0
        with self._transaction() as connection:
            waiting, rejected = connection.execute(
                "SELECT count(*) - count(rejected), count(rejected) FROM job"
            ).fetchone()
        return waiting, rejected

    def forget(self, whose: str) -> int:
        """Drop all jobs of a user or a conversation (a hash), and record that their earlier jobs must be dropped.

        Raises:
            SpoolError: The file cannot be written.
        """
        now = self._clock.now()
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO forgotten VALUES (?, ?) ON CONFLICT (hash) DO UPDATE SET at = excluded.at",
                (whose, now.timestamp()),
            )
            connection.execute("DELETE FROM forgotten WHERE at < ?", ((now - FORGOTTEN_FOR).timestamp(),))
            found = connection.execute("DELETE FROM job WHERE ? IN (user_hash, conversation_hash)", (whose,))
            return found.rowcount

    def forgotten(self, jobs: Sequence[Job]) -> list[Job]:
        """Return those jobs whose user's or conversation's deletion was requested after they were created.

        Raises:
            SpoolError: The file cannot be read.
        """
        if not jobs or (self._connection is None and not self.path.exists()):
            return []
        since = min(job.created_at.timestamp() for job in jobs)
        with self._transaction() as connection:
            rows = dict(connection.execute("SELECT hash, at FROM forgotten WHERE at >= ?", (since,)))
        return [
            job for job in jobs if rows and any(rows.get(each, 0) >= job.created_at.timestamp() for each in job.hashes)
        ]

    def close(self) -> None:
        """Close the file; safe to repeat."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                connection = self._opened()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except (sqlite3.Error, OSError) as error:
                raise SpoolError(f"the spool {self.path} cannot be used: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            connection = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA secure_delete = ON")  # deleted questions leave no bytes behind
                connection.executescript(_SCHEMA)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection


_IDS = ("conversation_id", "user_message_id")


def _packed(job: Job) -> bytes:
    return zlib.compress(json.dumps(dict(job.arguments), default=str, ensure_ascii=True).encode(), 1)


def _unpacked(body: bytes) -> dict[str, Any]:
    arguments: dict[str, Any] = json.loads(zlib.decompress(body))
    return {name: UUID(value) if name in _IDS and value else value for name, value in arguments.items()}
