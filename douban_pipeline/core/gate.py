"""Pacing and circuit breaker, one row a source in the database, shared by all processes.

Runs are separate processes, so nothing about a source may live in memory: six processes with limiters of their
own send six times the allowed rate. Each change is one short transaction on one locked row (``SELECT … FOR
UPDATE``; SQLite's transactions begin IMMEDIATE). Callers queue in order of arrival, so none starves; only what a
person waits for goes first.

Of the threads of one process only one at a time asks a source's row for its turn, beside those that are urgent: with
dozens asking, each would wait for the row itself for so long that its turn was over when it came.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from typing import TypeVar

from sqlalchemy import Engine, Table, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import GateClosed, GateUnreadable, QuotaSpent, SourceDoubted, SourceError
from douban_pipeline.core.gate_evidence import EMPTY_IN_A_ROW, DoubtWindow
from douban_pipeline.core.gate_rules import SAFETY, Admitted, GateRefusal, GateRow, GateState, WaitForTurn
from douban_pipeline.core.gate_status import GateStatus, decode, encode, status_of
from douban_pipeline.core.owner import is_dead

__all__ = ["Gate", "GateStatus", "Slot"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(slots=True)
class Slot:
    """A permission to make one call.

    Attributes:
        source: The source it is for.
        owner: Token of the call, unique over all processes.
        granted_at: When it was given (UTC).
        tokens_used: What the call really took, for the caller to set; while it is None, the estimate counts.
        found: Whether the answer found something, for the caller to set; None says nothing. See `gate_evidence`.
    """

    source: str
    owner: str
    granted_at: datetime
    tokens_used: int | None = None
    found: bool | None = None


class Gate:
    """The gate of every source.

    Args:
        engine: Where the table is (an engine of `core.database.open_engine`).
        table: The gate's table, one row a source.
        clock: What times are taken from, and what waits.
        rng: Jitter of the breaker.
        hold: How long a process may keep a place; must exceed the longest call. A process killed while it holds
            one frees it after this time.
        zone: Where the days of quotas begin.
        empty_limit: How many empty answers in a row put a source in doubt.
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
        self._engine = engine
        self._table = table
        self._clock = clock
        self._rng = rng or Random()
        self._hold = hold
        self._zone = zone
        self._empty_limit = empty_limit
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._process = f"{socket.gethostname()[:60]}:{os.getpid()}"
        # Built once: every request changes the row twice, and putting a statement together costs more than sending it.
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
        """Set the limits of ``source``, making its row if there is none; its breaker and counters stay as they are.

        Args:
            source: Name of the source, at most 32 characters.
            requests_per_minute: Allowed calls a minute, above 0.
            concurrency: Allowed calls at the same time over all processes, at least 1.
            requests_per_day: Allowed calls a day, at least 1; None is no limit.
            tokens_per_minute: Allowed tokens in any minute, at least 1; None is no limit.
            tokens_per_day: Allowed tokens a day, at least 1; None is no limit.

        Raises:
            ValueError: A limit is out of range.
            GateUnreadable: The row cannot be stored.
        """
        if requests_per_minute <= 0 or concurrency < 1:
            raise ValueError(f"{source}: {requests_per_minute} requests a minute, {concurrency} at a time")
        budget = {
            "requests_per_day": requests_per_day,
            "tokens_per_minute": tokens_per_minute,
            "tokens_per_day": tokens_per_day,
        }
        for name, limit in budget.items():
            if limit is not None and limit < 1:
                raise ValueError(f"{source}: {name} {limit}")
        limits = {
            "interval_ms": math.ceil(60_000 * SAFETY / requests_per_minute),
            "concurrency": concurrency,
            **budget,
        }
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
                    logger.debug("another process made the gate of %s first", source)
                else:
                    return
            elif known._asdict() == limits:
                return
            with self._engine.begin() as connection:
                connection.execute(update(self._table).where(where).values(**limits, updated_at=now))
        except SQLAlchemyError as error:
            raise _unreadable(source, error) from error

    @contextmanager
    def slot(self, source: str, *, tokens: int = 0, known: bool = False, urgent: bool = False) -> Iterator[Slot]:
        """Wait for the next slot of ``source``, hold a place during the block, and record how it ends.

        A `SourceError` that leaves the block counts against the source as its kind says, and releases the tokens
        unless `Slot.tokens_used` is set; other exceptions say nothing about the source.

        Args:
            source: Whom the call is for.
            tokens: Estimate of the tokens that it will take, held until `Slot.tokens_used` says better.
            known: Whether the call asks for something that the source is known to have, so that `Slot.found` ends or
                proves a doubt.
            urgent: Whether a person waits for the answer: the call goes before all that wait and are not urgent.

        Raises:
            GateClosed: The breaker is open, or opened while waiting.
            SourceDoubted: The source is in doubt: something known has to be asked for first.
            QuotaSpent: The day's requests or tokens are used up.
            GateUnreadable: The gate's row is missing or cannot be read or written.
            ValueError: ``tokens`` is negative.
        """
        if tokens < 0:
            raise ValueError(f"{source}: {tokens} tokens")
        owner = f"{self._process}:{uuid.uuid4().hex}"
        with nullcontext() if urgent else self._asking[source]:
            granted_at = self._wait(source, owner, tokens, known=known, urgent=urgent)
        slot = Slot(source, owner, granted_at)
        try:
            yield slot
        except SourceError as error:
            self._leave(slot, error)
            raise
        except BaseException:
            self._forget(source, owner, slot.tokens_used)
            raise
        self._leave(slot, None)

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

    def open(self, source: str, until: datetime, reason: str, *, by: str = "") -> None:
        """Let nothing through to ``source`` before ``until``, earlier or later than it is now.

        Args:
            source: Whom to leave alone.
            until: When one call may probe it.
            reason: Why, for whoever is refused.
            by: The person who says so.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read or written.
        """
        self._change(source, lambda row: row.open(until, reason, by))

    def close(self, source: str, *, by: str = "") -> None:
        """Let calls to ``source`` pass again at once, because ``by`` says so; what failed before is forgotten.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read or written.
        """
        self._change(source, lambda row: row.close(self._clock.now(), by))

    def was_unhealthy(self, source: str, moment: datetime) -> bool:
        """Return whether a call that failed at ``moment`` did so because ``source`` was unhealthy, whatever was asked.

        A source without a gate never is: a chain of several, say.

        Raises:
            GateUnreadable: The row cannot be read.
        """
        return self._look(source, lambda row: row.was_unhealthy(moment), without_row=False)

    def doubts(self, source: str, moment: datetime) -> bool:
        """Return whether an empty answer that ``source`` gave at ``moment`` proves nothing.

        Raises:
            GateUnreadable: The row cannot be read.
        """
        return self._look(source, lambda row: row.evidence.doubts(moment), without_row=False)

    def distrust(self, source: str, window: DoubtWindow) -> None:
        """Remember a time in which the empty answers of ``source`` prove nothing, because a person says so.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read or written.
        """
        self._change(source, lambda row: row.evidence.distrust(window))

    def mark_revisited(self, source: str, start: datetime) -> None:
        """Remember that what was judged in the doubt that began at ``start`` will be judged again.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read or written.
        """
        self._change(source, lambda row: row.evidence.mark_revisited(start))

    def _look(self, source: str, question: Callable[[GateRow], T], *, without_row: T) -> T:
        """Return the answer of a source's row, which stays as it is."""
        try:
            with reading(self._engine) as connection:
                stored = connection.execute(select(self._table).where(self._table.c.source == source)).one_or_none()
            if stored is None:
                return without_row
            return question(decode(stored, self._zone, self._empty_limit))
        except (SQLAlchemyError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(source, error) from error

    def _wait(self, source: str, owner: str, tokens: int, *, known: bool, urgent: bool) -> datetime:
        def ask(row: GateRow) -> tuple[datetime, Admitted | WaitForTurn | GateRefusal]:
            # The moment is read under the lock: waiting for the lock must not make it stale.
            now = self._clock.now()
            return now, row.ask(owner, now, self._hold, tokens, known=known, urgent=urgent)

        try:
            while True:
                now, answer = self._change(source, ask)
                if isinstance(answer, Admitted):
                    return now
                if isinstance(answer, GateRefusal):
                    if answer.doubted:
                        raise SourceDoubted(source, answer.reason, answer.until)
                    kind = QuotaSpent if answer.spent else GateClosed
                    raise kind(source, answer.reason or "the breaker is open", answer.until)
                self._clock.sleep(answer.seconds)
        except SourceError:
            raise
        except BaseException:
            self._forget(source, owner)
            raise

    def _leave(self, slot: Slot, error: SourceError | None) -> None:
        def leave(row: GateRow) -> None:
            row.leave(slot.owner, error, self._clock.now(), self._rng, slot.tokens_used, found=slot.found)

        try:
            self._change(slot.source, leave)
        except GateUnreadable:
            # The answer at hand is good whatever became of the row; the next call will be refused.
            logger.exception("could not give back a place at the gate of %s", slot.source)

    def _forget(self, source: str, owner: str, tokens_used: int | None = None) -> None:
        try:
            self._change(source, lambda row: row.forget(owner, tokens_used, self._clock.now()))
        except GateUnreadable:
            logger.exception("could not leave the gate of %s", source)

    def _change(self, source: str, change: Callable[[GateRow], T]) -> T:
        try:
            with self._engine.begin() as connection:
                stored = connection.execute(self._locked, {"of": source}).one_or_none()
                if stored is None:
                    raise GateUnreadable(source, "the gate has no row for this source: configure it first")
                row = decode(stored, self._zone, self._empty_limit)
                row.holders = [holder for holder in row.holders if not _is_gone(holder.owner)]
                result = change(row)
                connection.execute(self._store, {"of": source, **encode(row), "updated_at": self._clock.now()})
            return result
        except (SQLAlchemyError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(source, error) from error


def _is_gone(owner: str) -> bool:
    """Return whether the process that took a place was killed; it need not wait for the hold to run out."""
    process, _, _ = owner.rpartition(":")
    return is_dead(f"@{process}")


def _unreadable(source: str, error: Exception) -> GateUnreadable:
    return GateUnreadable(source, f"the gate cannot be read or written ({type(error).__name__})")
