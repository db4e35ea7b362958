"""Common behaviour of gates: waiting for a slot, holding a place, recording how a call ended.

Subclasses define where the rows are: in a database shared by all processes (`core.gate`), or in the memory of one
process (`core.gate_memory`).
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
import uuid
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from typing import Any, TypeVar

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.errors import GateClosed, GateUnreadable, OthersFirst, QuotaSpent, SourceDoubted, SourceError
from douban_pipeline.core.gate_evidence import EMPTY_IN_A_ROW, DoubtWindow
from douban_pipeline.core.gate_rules import SAFETY, GateRow
from douban_pipeline.core.gate_status import GateStatus
from douban_pipeline.core.gate_types import Admitted, Budget, GateRefusal, Outlook, WaitForTurn

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(slots=True)
class Slot:
    """A permission to make one call.

    Attributes:
        source: The source it is for.
        owner: Token of the call, unique over all processes.
        granted_at: When it was granted (UTC).
        tokens_used: Tokens the call actually used, set by the caller; the estimate counts while it is None.
        found: Whether the answer found something, set by the caller; None if unknown. See `gate_evidence`.
        answered: What it asked for, set by the caller once an answer came; empty while there is none.
    """

    source: str
    owner: str
    granted_at: datetime
    tokens_used: int | None = None
    found: bool | None = None
    answered: str = ""


class BaseGate(ABC):
    """The gate of every source; subclasses store the rows.

    Args:
        clock: Source of the current time; also waits.
        rng: Jitter of the breaker.
        hold: How long a call may keep a place; must exceed the longest call.
        zone: Time zone in which the days of quotas begin.
        empty_limit: How many empty answers in a row make a source doubted.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        rng: Random | None = None,
        hold: timedelta = timedelta(seconds=120),
        zone: tzinfo = UTC,
        empty_limit: int = EMPTY_IN_A_ROW,
    ) -> None:
        self._clock = clock
        self._rng = rng or Random()
        self._hold = hold
        self._zone = zone
        self._empty_limit = empty_limit
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._process = f"{socket.gethostname()[:60]}:{os.getpid()}"
        self._since = clock.now()

    @abstractmethod
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
        """Set the limits of ``source``, creating its row if needed; its breaker and counters are kept.

        Args:
            source: Name of the source, at most 32 characters.
            requests_per_minute: Allowed calls per minute, above 0.
            concurrency: Allowed calls at the same time over all processes, at least 1.
            requests_per_day: Allowed calls per day, at least 1; None is no limit.
            tokens_per_minute: Allowed tokens in any minute, at least 1; None is no limit.
            tokens_per_day: Allowed tokens per day, at least 1; None is no limit.

        Raises:
            ValueError: A limit is out of range.
            GateUnreadable: The row cannot be stored.
        """

    @contextmanager
    def slot(
        self,
        source: str,
        *,
        tokens: int = 0,
        known: bool = False,
        urgent: bool = False,
        follows: bool = False,
        lasts: timedelta | None = None,
        key: str = "",
    ) -> Iterator[Slot]:
        """Wait for the next slot of ``source``, hold a place during the block, and record how it ends.

        A `SourceError` that leaves the block is counted against the source according to its kind, and releases the
        tokens unless `Slot.tokens_used` is set; other exceptions do not count.

        Args:
            source: Name of the source to call.
            tokens: Estimate of the tokens the call will use, reserved until `Slot.tokens_used` is set.
            known: Whether the call requests something that the source is known to have, so that `Slot.found` ends or
                confirms a doubt.
            urgent: Whether a person waits for the answer: the call goes before all waiting calls that are not urgent.
            follows: Whether an urgent call ends what earlier calls began, such as the second of two that an answer
                takes: it goes before urgent calls that begin something, so that no answer is half made for nothing.
            lasts: How long the call takes at most. If this process is killed meanwhile, the source may go on answering,
                so that the place stays taken for as long; None is the hold of the gate.
            key: What is asked for; see `GateRow.ask`.

        Raises:
            GateClosed: The breaker is open, or opened while waiting.
            SourceDoubted: The source is doubted: something known has to be requested first.
            QuotaSpent: The daily requests or tokens are used up.
            GateUnreadable: The gate's row is missing or cannot be read or written.
            ValueError: ``tokens`` is negative.
        """
        if tokens < 0:
            raise ValueError(f"{source}: {tokens} tokens")
        owner = f"{self._process}:{uuid.uuid4().hex}"
        with nullcontext() if urgent else self._asking[source]:
            granted_at = self._wait(
                source, owner, tokens, known=known, urgent=urgent, follows=follows, lasts=lasts, key=key
            )
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

    @abstractmethod
    def status(self) -> list[GateStatus]:
        """Return every source's state, by name.

        Raises:
            GateUnreadable: The table cannot be read.
        """

    def open(self, source: str, until: datetime, reason: str, *, by: str = "") -> None:
        """Block all calls to ``source`` until ``until``, which may be earlier or later than its present pause.

        Args:
            source: Name of the source.
            until: When one call may probe it.
            reason: Why, shown to refused callers.
            by: The person who decided it.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read or written.
        """
        self._change(source, lambda row: row.open(until, reason, by))

    def close(self, source: str, *, by: str = "") -> None:
        """Let calls to ``source`` pass at once, as decided by ``by``; earlier failures no longer count.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read or written.
        """
        self._change(source, lambda row: row.close(self._clock.now(), by))

    def outlook(self, source: str) -> Outlook:
        """Return what a call that joined the queue of ``source`` now could expect; the queue is not changed.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read.
        """
        found = self._look(source, lambda row: row.outlook(self._clock.now()), without_row=None)
        if found is None:
            raise GateUnreadable(source, "the gate has no row for this source: configure it first")
        return found

    def was_unhealthy(self, source: str, moment: datetime) -> bool:
        """Return whether a call that failed at ``moment`` failed because ``source`` was unhealthy.

        A source without a gate (such as a chain of several sources) is never unhealthy.

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
        """Record a period, stated by a person, in which the empty answers of ``source`` prove nothing.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read or written.
        """
        self._change(source, lambda row: row.evidence.distrust(window))

    def mark_revisited(self, source: str, start: datetime) -> None:
        """Record that what was judged in the doubt that began at ``start`` will be judged again.

        Raises:
            GateUnreadable: There is no such source, or its row cannot be read or written.
        """
        self._change(source, lambda row: row.evidence.mark_revisited(start))

    @abstractmethod
    def _look(self, source: str, question: Callable[[GateRow], T], *, without_row: T) -> T:
        """Return the result of ``question`` on a source's row, unchanged; ``without_row`` if there is no row."""

    @abstractmethod
    def _change(self, source: str, change: Callable[[GateRow], T]) -> T:
        """Change a source's row exclusively and return what ``change`` returns.

        Raises:
            GateUnreadable: There is no such row, or it cannot be read or written.
        """

    def _wait(
        self,
        source: str,
        owner: str,
        tokens: int,
        *,
        known: bool,
        urgent: bool,
        follows: bool,
        lasts: timedelta | None,
        key: str,
    ) -> datetime:
        def ask(row: GateRow) -> tuple[datetime, Admitted | WaitForTurn | GateRefusal]:
            # The time is read under the lock: waiting for the lock must not make it stale.
            now = self._clock.now()
            return now, row.ask(
                owner,
                now,
                self._hold,
                tokens,
                known=known,
                urgent=urgent,
                follows=follows,
                lasts=lasts,
                since=self._since,
                key=key,
            )

        try:
            while True:
                now, answer = self._change(source, ask)
                if isinstance(answer, Admitted):
                    return now
                if isinstance(answer, GateRefusal):
                    if answer.doubted:
                        raise SourceDoubted(source, answer.reason, answer.until)
                    kind = QuotaSpent if answer.spent else OthersFirst if answer.others else GateClosed
                    raise kind(source, answer.reason or "the breaker is open", answer.until)
                self._clock.sleep(answer.seconds)
        except SourceError:
            raise
        except BaseException:
            self._forget(source, owner)
            raise

    def _leave(self, slot: Slot, error: SourceError | None) -> None:
        def leave(row: GateRow) -> None:
            now = self._clock.now()
            row.leave(slot.owner, error, now, self._rng, slot.tokens_used, found=slot.found, key=slot.answered)

        try:
            self._change(slot.source, leave)
        except GateUnreadable:
            # The answer at hand is valid whatever happened to the row; the next call will be refused.
            logger.exception("could not release a place at the gate of %s", slot.source)

    def _forget(self, source: str, owner: str, tokens_used: int | None = None) -> None:
        try:
            self._change(source, lambda row: row.forget(owner, tokens_used, self._clock.now()))
        except GateUnreadable:
            logger.exception("could not leave the gate of %s", source)


def checked_limits(source: str, requests_per_minute: float, concurrency: int, budget: Budget) -> dict[str, Any]:
    """Return the limits of a source as columns of its row.

    Raises:
        ValueError: One is out of range.
    """
    if requests_per_minute <= 0 or concurrency < 1:
        raise ValueError(f"{source}: {requests_per_minute} requests a minute, {concurrency} at a time")
    limits = asdict(budget)
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise ValueError(f"{source}: {name} {limit}")
    return {"interval_ms": math.ceil(60_000 * SAFETY / requests_per_minute), "concurrency": concurrency, **limits}
