"""Values of a gate's queue: a call in it, what it is told, limits, and what a new call could expect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(slots=True)
class QueuedCall:
    """One caller in the queue; the first `concurrency` of them hold a place.

    Attributes:
        owner: Unique token of the call.
        until: When it is considered dead.
        slot_at: The slot that it waits for, or had.
        granted_at: When it was admitted; None while it waits.
        answered_by: From when on its source surely does not answer it any more, even if it was killed; None while it
            waits.
        tokens: Its estimate when it was admitted.
        urgent: Whether a person waits for it: it goes before waiting calls that are not urgent.
        follows: Whether an urgent call ends what earlier calls began: it goes before those that begin something.
        since: Since when its process asks; None if unknown.
        joined_at: When it joined the queue; None if unknown.
    """

    owner: str
    until: datetime
    slot_at: datetime | None = None
    granted_at: datetime | None = None
    answered_by: datetime | None = None
    tokens: int = 0
    urgent: bool = False
    since: datetime | None = None
    joined_at: datetime | None = None
    follows: bool = False

    @property
    def rank(self) -> int:
        """Calls of a higher rank go first."""
        return self.urgent + (self.urgent and self.follows)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The caller may call now."""


@dataclass(frozen=True, slots=True)
class WaitForTurn:
    """Poll again after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GateRefusal:
    """No call passes before ``until``: the breaker is open, or (``spent``) the daily quota is used up.

    With ``doubted`` the source is doubted, and calls for something known may pass now; with ``others``, calls for what
    did not fail.
    """

    until: datetime
    reason: str
    spent: bool = False
    doubted: bool = False
    others: bool = False


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a call that joined the queue now could expect.

    Attributes:
        seconds: Seconds until its turn.
        interval: Seconds between two turns.
        call_seconds: Seconds that recent calls took.
        closed_until: When the next call may pass, if none may now; None if calls pass.
        reason: Why none may.
    """

    seconds: float
    interval: float
    call_seconds: float
    closed_until: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a source besides its pace; None is no limit."""

    requests_per_day: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
