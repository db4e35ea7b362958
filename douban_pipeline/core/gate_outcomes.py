"""How the calls of a source ended lately, and since when it is unhealthy: what its breaker goes by.

Nothing here reads a clock or a database. All moments are aware.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

IN_A_ROW = 10
"""So many failed calls in a row open the breaker, whatever the pace and however many processes call."""
SUSPECT = 5
"""From so many on, a failure is laid to the source and not to what was asked."""
WINDOW = timedelta(minutes=5)
"""Older outcomes say nothing of now; a row of failures is one only if no two of them are further apart."""
RECENT_CALLS = 20
"""The breaker also judges the last so many calls of a `WINDOW`; fewer have no share worth the name."""
FAILURE_SHARE = 0.6
"""Such a share of the recent calls opens the breaker. Half may fail: three questions that a source cannot answer fail
nine times with their retries."""
FIRST_PAUSE = (30.0, 60.0)
"""Seconds that the breaker stays open first; anything between, so that sites that share an address do not come back
together. Each failed probe doubles them."""
LONGEST_PAUSE = (600.0, 900.0)
"""Seconds that a pause may grow to."""
RECOVERED = 10
"""So many good answers since the breaker closed make the next outage a new one, whose first pause is short again."""


@dataclass(frozen=True, slots=True)
class EndedCall:
    """When a call ended, and whether with an answer."""

    at: datetime
    good: bool


@dataclass(slots=True)
class CallOutcomes:
    """The recent calls of one source and its present or last outage.

    Attributes:
        recent: The last `RECENT_CALLS` calls since the breaker last closed, oldest first.
        failing_since: When the present row of failures began; None without one.
        failed_at: When the last call failed.
        outage_since: When the outage began that opened the breaker last.
        outage_until: When that outage ended; None while it lasts.
        openings: How often the breaker opened by itself since the source was well.
    """

    recent: list[EndedCall] = field(default_factory=list)
    failing_since: datetime | None = None
    failed_at: datetime | None = None
    outage_since: datetime | None = None
    outage_until: datetime | None = None
    openings: int = 0

    def add(self, now: datetime, *, good: bool) -> None:
        """Count a call that ended now."""
        kept = [call for call in self.recent if now - WINDOW < call.at <= now + WINDOW]
        self.recent = [*kept[-(RECENT_CALLS - 1) :], EndedCall(now, good)]
        if good:
            self.failing_since = None
            if sum(call.good for call in self.recent) >= RECOVERED:
                self.openings = 0
            return
        if self.failing_since is None or self.row_is_old(now):
            self.failing_since = now
        self.failed_at = now

    def row_is_old(self, now: datetime) -> bool:
        """Return whether the last failure is too long ago for one of now to continue its row."""
        return self.failed_at is None or now - self.failed_at >= WINDOW

    def failing(self, now: datetime) -> bool:
        """Return whether too large a share of the recent calls failed."""
        recent = [call for call in self.recent if call.at > now - WINDOW]
        failed = sum(not call.good for call in recent)
        return len(recent) >= RECENT_CALLS and failed >= FAILURE_SHARE * len(recent)

    def begin_outage(self, now: datetime) -> None:
        """Note that the breaker opens; the outage began with the present row of failures."""
        if self.outage_since is None or self.outage_until is not None:
            failed = [call.at for call in self.recent if not call.good]
            self.outage_since = min([*failed, self.failing_since or now])
        self.outage_until = None

    def end_outage(self, now: datetime) -> None:
        """Note that the source is well again; what failed before must not open the breaker again."""
        if self.outage_since is not None and self.outage_until is None:
            self.outage_until = now
        self.recent = []
        self.failing_since = None

    def in_outage(self, moment: datetime) -> bool:
        """Return whether ``moment`` lies in the present or last outage."""
        begun = self.outage_since is not None and self.outage_since <= moment
        return begun and (self.outage_until is None or moment <= self.outage_until)

    def next_pause(self, rng: Random) -> timedelta:
        """Return for how long the breaker opens now, and count it: twice as long as the time before."""
        seconds = min(rng.uniform(*FIRST_PAUSE) * 2 ** min(self.openings, 10), rng.uniform(*LONGEST_PAUSE))
        self.openings += 1
        return timedelta(seconds=seconds)

    def to_json(self) -> dict[str, Any]:
        """Return it in the form in which it is stored."""
        return {
            "recent": [[call.at.isoformat(), int(call.good)] for call in self.recent],
            "failing_since": stored_moment(self.failing_since),
            "failed_at": stored_moment(self.failed_at),
            "outage_since": stored_moment(self.outage_since),
            "outage_until": stored_moment(self.outage_until),
            "openings": self.openings,
        }

    @classmethod
    def from_json(cls, stored: Any) -> CallOutcomes:
        """Return what `to_json` gave; None is a source without calls.

        Raises:
            ValueError: It cannot be read; so may KeyError and TypeError be raised.
        """
        if stored is None:
            return cls()
        return cls(
            recent=[EndedCall(_utc(at), bool(good)) for at, good in stored["recent"]],
            failing_since=read_moment(stored["failing_since"]),
            failed_at=read_moment(stored["failed_at"]),
            outage_since=read_moment(stored["outage_since"]),
            outage_until=read_moment(stored["outage_until"]),
            openings=int(stored["openings"]),
        )


def stored_moment(moment: datetime | None) -> str | None:
    """Return a moment as it is stored in JSON."""
    return moment.isoformat() if moment else None


def read_moment(stored: Any) -> datetime | None:
    """Return the moment that `stored_moment` gave.

    Raises:
        ValueError: It is none; so may TypeError be raised.
    """
    return _utc(stored) if stored is not None else None


def _utc(stored: str) -> datetime:
    return datetime.fromisoformat(stored).astimezone(UTC)
