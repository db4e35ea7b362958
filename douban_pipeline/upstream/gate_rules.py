"""The rules of a gate as changes of one row in memory: who may call next, when, and when the breaker trips.

Nothing here reads a clock or a database; `gate.Gate` loads the row under a lock, applies one change, stores it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from douban_pipeline.upstream.errors import SourceError, SourceThrottled, SourceWall

SAFETY = 1.02
"""Slots stand this much further apart than the limit asks, so that a call sent a little late cannot make a
minute hold one more than allowed. Costs 2 % of the rate."""
FAILURES_TO_OPEN = 10
"""Failed calls in a row that open the breaker: more than the few subjects a source is ill about can make by their
retries, few enough to notice soon that it is down."""
FAILURE_PAUSE = timedelta(minutes=5)
"""How long it stays open then. As long a silence also ends a row of failures."""
WALL_PAUSE_MINUTES = (30.0, 60.0)
THROTTLE_PAUSE = timedelta(seconds=60)
LONGEST_THROTTLE = timedelta(hours=24)
WAITER_LEASE = timedelta(seconds=20)
"""A waiter that has not asked for this long is taken for dead and loses its turn."""
LONGEST_QUEUE = timedelta(minutes=10)
"""A next slot further away than any queue could put it means that the machine's clock was set back."""


class GateState(enum.StrEnum):
    """Whether calls may pass."""

    CLOSED = "closed"
    """The breaker is closed, as in electricity: calls pass."""
    OPEN = "open"
    """No call passes until `open_until`."""
    HALF_OPEN = "half_open"
    """One probe may pass; its outcome decides."""


@dataclass(slots=True)
class Holder:
    """One caller in the queue; the first `concurrency` of them hold a place."""

    owner: str
    until: datetime
    slot_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """The caller may call now."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The breaker lets nobody pass before ``until``."""

    until: datetime


@dataclass(slots=True)
class GateRow:
    """One source's pacing and breaker state."""

    source: str
    next_slot_at: datetime
    interval: timedelta
    concurrency: int
    holders: list[Holder] = field(default_factory=list)
    state: GateState = GateState.CLOSED
    open_until: datetime | None = None
    probe_owner: str | None = None
    probe_until: datetime | None = None
    failures: int = 0
    granted: int = 0
    reason: str = ""

    def ask(self, owner: str, now: datetime, hold: timedelta) -> Admitted | Wait | Refused:
        """Bring ``owner`` one step nearer to its call, in order of arrival.

        Args:
            owner: Unique token of the call.
            now: The present moment.
            hold: After how long a place is taken back from a process that died with it.
        """
        self.holders = [holder for holder in self.holders if holder.until > now]
        refused_until = self._pass_breaker(owner, now, hold)
        if refused_until is not None:
            self.forget(owner)
            return Refused(refused_until)
        holder = self._join(owner, now)
        position = self.holders.index(holder)
        if position >= self.concurrency:
            holder.until = now + WAITER_LEASE
            return Wait(self._poll_seconds(position - self.concurrency))
        if holder.slot_at is None:
            if self.next_slot_at > now + LONGEST_QUEUE + 2 * self.concurrency * self.interval:
                self.next_slot_at = now
            holder.slot_at = max(self.next_slot_at, now)
            self.next_slot_at = holder.slot_at + self.interval
        holder.until = max(holder.slot_at, now) + hold
        if holder.slot_at > now:
            return Wait((holder.slot_at - now).total_seconds())
        self.granted += 1
        return Admitted()

    def leave(self, owner: str, error: SourceError | None, now: datetime, rng: Random) -> None:
        """Give the place back and learn from how the call ended (``error`` None: a good answer)."""
        probing = self.state is GateState.HALF_OPEN and self.probe_owner == owner
        self.forget(owner)
        if error is None or error.healthy:
            if probing:
                self.close()
            elif self.state is GateState.CLOSED:
                self.failures = 0
        elif error.healthy is None:
            return
        elif isinstance(error, SourceWall):
            self.failures += 1
            self.open(now + timedelta(minutes=rng.uniform(*WALL_PAUSE_MINUTES)), error.reason)
        elif isinstance(error, SourceThrottled):
            asked = THROTTLE_PAUSE
            if error.retry_after is not None:
                asked = timedelta(seconds=min(error.retry_after, LONGEST_THROTTLE.total_seconds()))
            self.open(now + asked, error.reason)
        else:
            self.failures += 1
            if probing or self.failures >= FAILURES_TO_OPEN:
                self.open(now + FAILURE_PAUSE, error.reason)

    def forget(self, owner: str) -> None:
        """Take ``owner`` out of the queue; an unfinished probe is handed to the next caller."""
        self.holders = [holder for holder in self.holders if holder.owner != owner]
        if self.probe_owner == owner:
            self.probe_owner = self.probe_until = None

    def open(self, until: datetime, reason: str) -> None:
        """Let nobody pass before ``until``; an open breaker is never shortened."""
        if self.state is GateState.OPEN and self.open_until is not None and self.open_until >= until:
            return
        self.state = GateState.OPEN
        self.open_until = until
        self.reason = reason
        self.probe_owner = self.probe_until = None

    def close(self) -> None:
        """Let calls pass again and forget the failures."""
        self.state = GateState.CLOSED
        self.open_until = self.probe_owner = self.probe_until = None
        self.failures = 0
        self.reason = ""

    def _pass_breaker(self, owner: str, now: datetime, hold: timedelta) -> datetime | None:
        if self.state is GateState.CLOSED:
            return None
        if self.state is GateState.OPEN and self.open_until is not None and self.open_until > now:
            return self.open_until
        others = self.probe_owner not in (None, owner)
        if self.state is GateState.HALF_OPEN and others and self.probe_until and self.probe_until > now:
            return self.probe_until
        self.state = GateState.HALF_OPEN
        self.probe_owner = owner
        self.probe_until = now + hold
        return None

    def _join(self, owner: str, now: datetime) -> Holder:
        for holder in self.holders:
            if holder.owner == owner:
                return holder
        holder = Holder(owner, now + WAITER_LEASE)
        self.holders.append(holder)
        return holder

    def _poll_seconds(self, ahead: int) -> float:
        # Those who stand further back need to look less often; the next in line must not waste a slot.
        return min(max(self.interval.total_seconds() / 4, 0.02), 0.25) * min(ahead + 1, 8)
