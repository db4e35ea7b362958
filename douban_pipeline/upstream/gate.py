"""Pacing and circuit breaker, one row a source in the database, shared by all processes.

Runs are separate processes, so nothing about a source may live in memory: six processes with limiters of their
own send six times the allowed rate. Each change is one short transaction on one locked row (``SELECT … FOR
UPDATE``; SQLite's transactions begin IMMEDIATE). Callers queue in order of arrival, so none starves.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from sqlalchemy import Engine, Row, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from douban_pipeline.catalog.database import reading
from douban_pipeline.catalog.owner import is_dead
from douban_pipeline.catalog.tables import OwnTables
from douban_pipeline.clock import Clock
from douban_pipeline.upstream.errors import GateClosed, GateUnreadable, SourceError
from douban_pipeline.upstream.gate_rules import (
    FAILURE_PAUSE,
    SAFETY,
    Admitted,
    GateRow,
    GateState,
    Holder,
    Refused,
    Wait,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slot:
    """A permission to make one call.

    Attributes:
        source: The source it is for.
        owner: Token of the call, unique over all processes.
        granted_at: When it was given (UTC).
    """

    source: str
    owner: str
    granted_at: datetime


@dataclass(frozen=True, slots=True)
class GateStatus:
    """One source as reports show it.

    Attributes:
        source: Its name.
        state: closed (calls pass), open (none) or half_open (one probe).
        open_until: When an open breaker lets a probe pass.
        reason: Why it is not closed; empty when it is.
        failures: Failed calls in a row.
        granted: Calls let through since the row was made.
        requests_per_minute: The configured limit.
        concurrency: Calls allowed at the same time, over all processes.
        in_use: Places taken now.
        waiting: Callers queued behind them.
        next_slot_at: Earliest moment of the next call.
        updated_at: Last change of the row.
    """

    source: str
    state: GateState
    open_until: datetime | None
    reason: str
    failures: int
    granted: int
    requests_per_minute: float
    concurrency: int
    in_use: int
    waiting: int
    next_slot_at: datetime
    updated_at: datetime


class Gate:
    """The gate of every source.

    Args:
        engine: Where the gate's table is (an engine of `catalog.database.open_engine`).
        tables: Our tables.
        clock: What times are taken from, and what waiting goes through.
        rng: Jitter of the breaker.
        hold: How long a process may keep a place; must exceed the longest call. A process killed while it holds
            one frees it after this time.
    """

    def __init__(
        self,
        engine: Engine,
        tables: OwnTables,
        clock: Clock,
        *,
        rng: Random | None = None,
        hold: timedelta = timedelta(seconds=120),
    ) -> None:
        self._engine = engine
        self._table = tables.gate
        self._clock = clock
        self._rng = rng or Random()
        self._hold = hold
        self._process = f"{socket.gethostname()[:60]}:{os.getpid()}"

    def configure(self, source: str, requests_per_minute: float, concurrency: int) -> None:
        """Set the limits of ``source``, making its row if there is none; its breaker is left as it is.

        Args:
            source: Name of the source, at most 32 characters.
            requests_per_minute: Allowed calls a minute, above 0.
            concurrency: Allowed calls at the same time over all processes, at least 1.

        Raises:
            ValueError: A limit is out of range.
            GateUnreadable: The row cannot be stored.
        """
        if requests_per_minute <= 0 or concurrency < 1:
            raise ValueError(f"{source}: {requests_per_minute} requests a minute, {concurrency} at a time")
        limits = {
            "interval_ms": math.ceil(60_000 * SAFETY / requests_per_minute),
            "concurrency": concurrency,
        }
        now = self._clock.now()
        new = {"source": source, "next_slot_at": now, "holders": [], "state": GateState.CLOSED.value}
        where = self._table.c.source == source
        try:
            with reading(self._engine) as connection:
                known = connection.execute(select(self._table.c.source).where(where)).first()
            if known is None:
                try:
                    with self._engine.begin() as connection:
                        connection.execute(insert(self._table).values(**new, **limits, updated_at=now))
                except IntegrityError:
                    logger.debug("another process made the gate of %s first", source)
                else:
                    return
            with self._engine.begin() as connection:
                connection.execute(update(self._table).where(where).values(**limits, updated_at=now))
        except SQLAlchemyError as error:
            raise _unreadable(source, error) from error

    @contextmanager
    def slot(self, source: str) -> Iterator[Slot]:
        """Wait for the next slot of ``source``, hold a place during the block, and learn from how it ends.

        A `SourceError` that leaves the block counts against the source as its kind says; other exceptions say
        nothing of it.

        Raises:
            GateClosed: The breaker is open, or opened while waiting.
            GateUnreadable: The gate's row is missing or cannot be read or written.
        """
        owner = f"{self._process}:{uuid.uuid4().hex}"
        granted_at = self._wait(source, owner)
        try:
            yield Slot(source, owner, granted_at)
        except SourceError as error:
            self._leave(source, owner, error)
            raise
        except BaseException:
            self._forget(source, owner)
            raise
        self._leave(source, owner, None)

    def status(self) -> list[GateStatus]:
        """Return every source's state, by name.

        Raises:
            GateUnreadable: The table cannot be read.
        """
        now = self._clock.now()
        try:
            with reading(self._engine) as connection:
                rows = connection.execute(select(self._table).order_by(self._table.c.source)).all()
            return [_status(_decode(row), row.updated_at, now) for row in rows]
        except (SQLAlchemyError, ValueError, KeyError, TypeError) as error:
            raise _unreadable("gate", error) from error

    def open(self, source: str, until: datetime, reason: str) -> None:
        """Let nothing through to ``source`` before ``until``, for a reason a person gives."""
        self._change(source, lambda row: row.open(until, reason))

    def close(self, source: str) -> None:
        """Let calls to ``source`` pass again at once."""

        def change(row: GateRow) -> None:
            row.close()
            row.next_slot_at = self._clock.now()

        self._change(source, change)

    def _wait(self, source: str, owner: str) -> datetime:
        def ask(row: GateRow) -> tuple[datetime, Admitted | Wait | Refused, str]:
            # The moment is read under the lock: waiting for the lock must not make it stale.
            now = self._clock.now()
            return now, row.ask(owner, now, self._hold), row.reason

        try:
            while True:
                now, answer, reason = self._change(source, ask)
                if isinstance(answer, Admitted):
                    return now
                if isinstance(answer, Refused):
                    raise GateClosed(source, reason or "the breaker is open", answer.until)
                self._clock.sleep(answer.seconds)
        except SourceError:
            raise
        except BaseException:
            self._forget(source, owner)
            raise

    def _leave(self, source: str, owner: str, error: SourceError | None) -> None:
        try:
            self._change(source, lambda row: row.leave(owner, error, self._clock.now(), self._rng))
        except GateUnreadable:
            # The answer at hand is good whatever became of the row; the next call will be refused.
            logger.exception("could not give back a place at the gate of %s", source)

    def _forget(self, source: str, owner: str) -> None:
        try:
            self._change(source, lambda row: row.forget(owner))
        except GateUnreadable:
            logger.exception("could not leave the gate of %s", source)

    def _change(self, source: str, change: Callable[[GateRow], T]) -> T:
        table = self._table
        try:
            with self._engine.begin() as connection:
                stored = connection.execute(
                    select(table).where(table.c.source == source).with_for_update()
                ).one_or_none()
                if stored is None:
                    raise GateUnreadable(source, "the gate has no row for this source: configure it first")
                row = _decode(stored)
                if row.state is GateState.CLOSED and self._clock.now() - stored.updated_at > FAILURE_PAUSE:
                    row.failures = 0  # failures of an hour ago do not make a row with those of now
                row.holders = [holder for holder in row.holders if not _is_gone(holder.owner)]
                result = change(row)
                connection.execute(
                    update(table).where(table.c.source == source).values(**_encode(row), updated_at=self._clock.now())
                )
            return result
        except (SQLAlchemyError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(source, error) from error


def _is_gone(owner: str) -> bool:
    """Return whether the process that took a place was killed; it need not wait for the hold to run out."""
    process, _, _ = owner.rpartition(":")
    return is_dead(f"@{process}")


def _unreadable(source: str, error: Exception) -> GateUnreadable:
    return GateUnreadable(source, f"the gate cannot be read or written ({type(error).__name__})")


def _decode(row: Row[Any]) -> GateRow:
    holders = [
        Holder(
            str(item["owner"]),
            datetime.fromisoformat(item["until"]),
            datetime.fromisoformat(item["slot_at"]) if item["slot_at"] else None,
        )
        for item in row.holders
    ]
    return GateRow(
        source=row.source,
        next_slot_at=row.next_slot_at,
        interval=timedelta(milliseconds=row.interval_ms),
        concurrency=row.concurrency,
        holders=holders,
        state=GateState(row.state),
        open_until=row.open_until,
        probe_owner=row.probe_owner,
        probe_until=row.probe_until,
        failures=row.failures,
        granted=row.granted,
        reason=row.reason,
    )


def _encode(row: GateRow) -> dict[str, object]:
    return {
        "next_slot_at": row.next_slot_at,
        "holders": [
            {
                "owner": holder.owner,
                "until": holder.until.isoformat(),
                "slot_at": holder.slot_at.isoformat() if holder.slot_at else None,
            }
            for holder in row.holders
        ],
        "state": row.state.value,
        "open_until": row.open_until,
        "probe_owner": row.probe_owner,
        "probe_until": row.probe_until,
        "failures": row.failures,
        "granted": row.granted,
        "reason": row.reason[:500],
    }


def _status(row: GateRow, updated_at: datetime, now: datetime) -> GateStatus:
    queued = sum(holder.until > now for holder in row.holders)
    return GateStatus(
        source=row.source,
        state=row.state,
        open_until=row.open_until,
        reason=row.reason,
        failures=row.failures,
        granted=row.granted,
        requests_per_minute=round(60 * SAFETY / row.interval.total_seconds(), 2),
        concurrency=row.concurrency,
        in_use=min(queued, row.concurrency),
        waiting=max(queued - row.concurrency, 0),
        next_slot_at=row.next_slot_at,
        updated_at=updated_at,
    )
