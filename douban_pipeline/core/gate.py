"""Pacing and circuit breaker: one row per source in the database, shared by all processes.

Runs are separate processes, so a source's state cannot live in memory: six processes with limiters of their own would
send six times the allowed rate. Each change is one short transaction on one locked row (``SELECT … FOR UPDATE``;
SQLite's transactions begin IMMEDIATE). Callers queue in order of arrival, so none starves. Urgent calls, which a person
waits for, go first, and processes that have been asking for longer get most slots (`gate_rules.TURNS_YIELDED`).

Within a process, only one thread at a time (besides urgent ones) queries a source's row for its turn. With dozens of
threads, each would wait so long for the row lock that its slot had passed when it got the lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, timedelta, tzinfo
from random import Random
from typing import TypeVar

from sqlalchemy import Engine, Table, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import GateUnreadable
from douban_pipeline.core.gate_base import BaseGate, Slot, checked_limits
from douban_pipeline.core.gate_evidence import EMPTY_IN_A_ROW
from douban_pipeline.core.gate_rules import GateRow, GateState
from douban_pipeline.core.gate_status import GateStatus, decode, encode, status_of
from douban_pipeline.core.gate_types import Budget
from douban_pipeline.core.owner import is_dead

__all__ = ["Gate", "GateState", "GateStatus", "Slot"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Gate(BaseGate):
    """The gate of every source, in a database.

    Args:
        engine: Where the table is (an engine of `core.database.open_engine`).
        table: The gate's table, one row per source.
        clock: Source of the current time; also waits.
        rng: Jitter of the breaker.
        hold: How long a process may keep a place; must exceed the longest call. The place of a process of another
            machine that was killed is freed after this time, of this machine when its source answers the call no more.
        zone: Time zone in which the days of quotas begin.
        empty_limit: How many empty answers in a row make a source doubted.
    """

    def __init__(
        self,
        engine: Engine,
        table: Table,
        clock: Clock,
        *,
        rng: Random | None = None,
        hold: timedelta = timedelta(seconds=120),
        zone: tzinfo = UTC,
        empty_limit: int = EMPTY_IN_A_ROW,
    ) -> None:
        super().__init__(clock, rng=rng, hold=hold, zone=zone, empty_limit=empty_limit)
        self._engine = engine
        self._table = table
        # Built once: every request changes the row twice, and building a statement costs more than sending it.
        here = self._table.c.source == bindparam("of")
        self._locked = select(self._table).where(here).with_for_update()
        self._store = update(self._table).where(here)

    def configure(
        self,
        source: str,
        requests_per_minute: float,
        concurrency: int,
        *,
        requests_per_day: int | None = None,
        tokens_per_minute: int | None = None,
        tokens_per_day: int | None = None,
    ) -> None:
        """Set the limits of ``source``; see `BaseGate.configure`."""
        limits = checked_limits(
            source,
            requests_per_minute,
            concurrency,
            Budget(requests_per_day, tokens_per_minute, tokens_per_day),
        )
        now = self._clock.now()
        new = {"source": source, "next_slot_at": now, "holders": [], "state": GateState.CLOSED.value}
        where = self._table.c.source == source
        try:
            with reading(self._engine) as connection:
                known = connection.execute(select(*(self._table.c[name] for name in limits)).where(where)).first()
            if known is None:
                try:
                    with self._engine.begin() as connection:
                        connection.execute(insert(self._table).values(**new, **limits, updated_at=now))
                except IntegrityError:
                    logger.debug("another process created the gate of %s first", source)
                else:
                    return
            elif known._asdict() == limits:
                return
            with self._engine.begin() as connection:
                connection.execute(update(self._table).where(where).values(**limits, updated_at=now))
        except SQLAlchemyError as error:
            raise _unreadable(source, error) from error

    def status(self) -> list[GateStatus]:
        """Return every source's state, by name.

        Raises:
            GateUnreadable: The table cannot be read.
        """
        now = self._clock.now()
        try:
            with reading(self._engine) as connection:
                rows = connection.execute(select(self._table).order_by(self._table.c.source)).all()
            return [status_of(decode(row, self._zone), row.updated_at, now) for row in rows]
        except (SQLAlchemyError, ValueError, KeyError, TypeError) as error:
            raise _unreadable("gate", error) from error

    def _look(self, source: str, question: Callable[[GateRow], T], *, without_row: T) -> T:
        """Return the result of ``question`` on a source's row, without changing the row."""
        try:
            with reading(self._engine) as connection:
                stored = connection.execute(select(self._table).where(self._table.c.source == source)).one_or_none()
            if stored is None:
                return without_row
            return question(decode(stored, self._zone, self._empty_limit))
        except (SQLAlchemyError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(source, error) from error

    def _change(self, source: str, change: Callable[[GateRow], T]) -> T:
        try:
            with self._engine.begin() as connection:
                stored = connection.execute(self._locked, {"of": source}).one_or_none()
                if stored is None:
                    raise GateUnreadable(source, "the gate has no row for this source: configure it first")
                row = decode(stored, self._zone, self._empty_limit)
                now = self._clock.now()
                row.forget_dead(now, _is_gone)
                result = change(row)
                connection.execute(self._store, {"of": source, **encode(row), "updated_at": now})
            return result
        except (SQLAlchemyError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(source, error) from error


def _is_gone(owner: str) -> bool:
    """Return whether the process of a call was killed: it is known without waiting for the hold."""
    process, _, _ = owner.rpartition(":")
    return is_dead(f"@{process}")


def _unreadable(source: str, error: Exception) -> GateUnreadable:
    return GateUnreadable(source, f"the gate cannot be read or written ({type(error).__name__})")
