"""Whether a question can be answered within its time, before anything is asked for it: else it is refused at once.

A question that is admitted promises the calls that it will make. Those that it has not made yet go before the calls of
later questions, so that a later one waits for all of them and for the queue at the gate.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.gate_types import Outlook

NEVER = datetime.max.replace(tzinfo=UTC)
"""Until when a client without a key asks nothing."""

LONGEST_RETRY = timedelta(seconds=30)
"""How far ahead refused questions are expected to come back, one after the other: not all of them do."""


RESERVE = 0.15
"""Share of a question's time that is kept for calls that take longer than expected, and for a busy machine."""


@dataclass(frozen=True, slots=True)
class AdmissionRefusal:
    """A question that cannot be answered in time.

    Attributes:
        seconds: After how many seconds it can be, if those that were refused before come back before it; 0 for never.
        reason: Why.
        closed: Whether no call may pass at present, however few ask.
    """

    seconds: int
    reason: str
    closed: bool = False


@dataclass(slots=True)
class Ticket:
    """An admitted question. Close it, or use it in a ``with``."""

    _admission: Admission
    _left: int

    def called(self) -> None:
        """Count one of the promised calls as made: from then on it is in the gate's queue."""
        with self._admission.lock:
            if self._left:
                self._left -= 1
                self._admission.promised -= 1

    def close(self) -> None:
        """Withdraw what is left of the promise; safe to repeat."""
        with self._admission.lock:
            self._admission.promised -= self._left
            self._left = 0


@dataclass(slots=True)
class Admission:
    """Admits questions as long as the queue leaves them time. Thread-safe.

    Args:
        outlook: Returns what the gate's queue is like.
        clock: Source of the current time.
    """

    outlook: Callable[[], Outlook]
    clock: Clock
    promised: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    _free_at: datetime | None = None

    def enter_if_idle(self) -> Ticket | None:
        """Admit a single call for which nobody waits, if no other one waits and calls may pass."""
        outlook = self.outlook()
        if outlook.closed_until is not None and outlook.closed_until > self.clock.now():
            return None
        with self.lock:
            if outlook.seconds + self.promised * outlook.interval > outlook.interval:
                return None
            self.promised += 1
            return Ticket(self, 1)

    def enter(self, calls: int, seconds: float) -> Ticket | AdmissionRefusal:
        """Admit a question that takes ``calls`` calls and is to be answered in ``seconds``, or refuse it.

        One that waits for nobody is admitted, however little time it has: it gets what is there by then.
        """
        outlook = self.outlook()
        now = self.clock.now()
        if outlook.closed_until == NEVER:
            return AdmissionRefusal(0, outlook.reason, closed=True)
        if outlook.closed_until is not None and outlook.closed_until > now:
            wait = math.ceil((outlook.closed_until - now).total_seconds())
            return AdmissionRefusal(max(wait, 1), outlook.reason or "no call may pass", closed=True)
        with self.lock:
            queue = outlook.seconds + self.promised * outlook.interval
            # The second call waits at most for one more turn: only other second calls go before it.
            late = queue + 2 * outlook.call_seconds + outlook.interval - (1 - RESERVE) * seconds
            if late <= 0 or queue <= outlook.interval:
                self.promised += calls
                return Ticket(self, calls)
            # A call's time more: those that were admitted may take a little longer than expected.
            free_at = max(now + timedelta(seconds=late + outlook.call_seconds), self._free_at or now)
            self._free_at = min(free_at + timedelta(seconds=calls * outlook.interval), now + LONGEST_RETRY)
        return AdmissionRefusal(max(math.ceil((free_at - now).total_seconds()), 1), f"the queue takes {queue:.1f} s")
