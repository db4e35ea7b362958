"""How the recent calls of a source ended, since when it is unhealthy, and how many calls at once it bears.

Nothing here reads a clock or a database. All datetimes are aware.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

IN_A_ROW = 10
"""This many failed calls in a row open the breaker, whatever the pace and however many processes call."""
SUSPECT = 5
"""From this many failures in a row on, a failure is attributed to the source and not to what was requested."""
THINGS = 6
"""Bad answers open the breaker, and are attributed to the source, only if they are about so many different things."""
WINDOW = timedelta(minutes=5)
"""Older outcomes are ignored; failures count as consecutive only if no two neighbours are further apart."""
RECENT_CALLS = 20
"""The breaker also judges this many last calls within a `WINDOW`; fewer give no meaningful share."""
FAILURE_SHARE = 0.6
"""This share of failed recent calls opens the breaker. Half may fail: three requests that a source cannot answer fail
nine times with their retries."""
FIRST_PAUSE = (30.0, 60.0)
"""Range of the breaker's first pause, in seconds. Drawn at random, so that sites sharing an address do not come back
at the same time. Each failed probe doubles it."""
LONGEST_PAUSE = (600.0, 900.0)
"""The longest pause, in seconds."""
THROTTLE_SECONDS = (60.0, 90.0)
"""Range of the pause after a 429 without ``Retry-After``, in seconds."""
THROTTLE_JITTER = 0.1
"""Largest share added at random to a ``Retry-After``; the pause is never shorter than the source requested."""
BLAMED = timedelta(hours=1)
"""How long bad answers to one request, after which another was answered well, do not count against the source."""
RAISED_AFTER = 10
"""After this many good answers one more call at once is admitted, until the configured number is reached again."""
RECOVERED = 10
"""After this many good answers since the breaker closed, the next outage is a new one with a short first pause."""


@dataclass(frozen=True, slots=True)
class EndedCall:
    """When a call ended, and whether its answer was good.

    Attributes:
        at: When.
        good: Whether.
        key: What it asked for; empty if no answer came.
        broken: Whether a bad answer was a server's error, which says as much of the source as of what was asked.
    """

    at: datetime
    good: bool
    key: str = ""
    broken: bool = False


@dataclass(slots=True)
class CallOutcomes:
    """The recent calls of one source and its current or last outage.

    Attributes:
        recent: The last `RECENT_CALLS` calls since the breaker last closed, oldest first.
        failing_since: When the current series of failures began; None without one.
        failed_at: When the last call failed.
        outage_since: When the outage began that last opened the breaker.
        outage_until: When that outage ended; None while it lasts.
        openings: How often the breaker opened by itself since the source was last healthy.
        lowered: How many calls at once fewer than configured are admitted, because the source throttled.
        good_since: Good answers since `lowered` last changed.
        blamed: What was answered badly although the source then answered something else well, and when.
    """

    recent: list[EndedCall] = field(default_factory=list)
    failing_since: datetime | None = None
    failed_at: datetime | None = None
    outage_since: datetime | None = None
    outage_until: datetime | None = None
    openings: int = 0
    lowered: int = 0
    good_since: int = 0
    blamed: dict[str, datetime] = field(default_factory=dict)

    def at_once(self, concurrency: int) -> int:
        """Return how many calls at once are admitted where ``concurrency`` is configured; at least one."""
        return max(concurrency - self.lowered, 1)

    def throttle(self, concurrency: int) -> None:
        """Record that the source throttled: half as many calls at once are admitted from now on."""
        self.lowered = concurrency - max(self.at_once(concurrency) // 2, 1)
        self.good_since = 0

    def is_blamed(self, now: datetime, key: str) -> bool:
        """Return whether bad answers to ``key`` say nothing of the source: another was answered well after them."""
        return key in self.blamed and now - self.blamed[key] < BLAMED

    def is_no_probe(self, now: datetime, key: str) -> bool:
        """Return whether a call for ``key`` says little of the source's health: it was what failed last, or before."""
        last = self.recent[-1] if self.recent else None
        return bool(key) and (self.is_blamed(now, key) or (last is not None and not last.good and last.key == key))

    @property
    def failed_things(self) -> int:
        """About how many different things the recent failures were; each without an answer or by a server counts."""
        failed = [call for call in self.recent if not call.good]
        about = {call.key for call in failed if call.key and not call.broken}
        return len(about) + sum(call.broken or not call.key for call in failed)

    def add(self, now: datetime, *, good: bool, key: str = "", broken: bool = False) -> None:
        """Record a call that ended at ``now``; see `EndedCall`."""
        kept = [call for call in self.recent if now - WINDOW < call.at <= now + WINDOW]
        self.recent = [*kept[-(RECENT_CALLS - 1) :], EndedCall(now, good, key, broken)]
        if good:
            self.failing_since = None
            self.blamed = {each: at for each, at in self.blamed.items() if each != key and now - at < BLAMED}
            self.blamed |= {call.key: call.at for call in kept if call.key and not call.good and call.key != key}
            self._raise_after_good()
            if sum(call.good for call in self.recent) >= RECOVERED:
                self.openings = 0
            return
        if self.failing_since is None or self.row_is_old(now):
            self.failing_since = now
        self.failed_at = now

    def _raise_after_good(self) -> None:
        if self.lowered:
            self.good_since += 1
            if self.good_since >= RAISED_AFTER:
                self.lowered, self.good_since = self.lowered - 1, 0

    def row_is_old(self, now: datetime) -> bool:
        """Return whether the last failure is too long ago for a failure now to continue its series."""
        return self.failed_at is None or now - self.failed_at >= WINDOW

    def failing(self, now: datetime) -> bool:
        """Return whether too large a share of the recent calls failed."""
        recent = [call for call in self.recent if call.at > now - WINDOW]
        failed = sum(not call.good for call in recent)
        return len(recent) >= RECENT_CALLS and failed >= FAILURE_SHARE * len(recent)

    def begin_outage(self, now: datetime) -> None:
        """Record that the breaker opens; the outage began with the current series of failures."""
        if self.outage_since is None or self.outage_until is not None:
            failed = [call.at for call in self.recent if not call.good]
            self.outage_since = min([*failed, self.failing_since or now])
        self.outage_until = None

    def end_outage(self, now: datetime) -> None:
        """Record that the source is healthy again; earlier failures must not open the breaker again."""
        if self.outage_since is not None and self.outage_until is None:
            self.outage_until = now
        self.recent = []
        self.failing_since = None

    def in_outage(self, moment: datetime) -> bool:
        """Return whether ``moment`` is in the current or last outage."""
        begun = self.outage_since is not None and self.outage_since <= moment
        return begun and (self.outage_until is None or moment <= self.outage_until)

    def next_pause(self, rng: Random) -> timedelta:
        """Return how long the breaker opens now, twice as long as the last time, and count the opening."""
        seconds = min(rng.uniform(*FIRST_PAUSE) * 2 ** min(self.openings, 10), rng.uniform(*LONGEST_PAUSE))
        self.openings += 1
        return timedelta(seconds=seconds)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "recent": [[call.at.isoformat(), int(call.good), call.key, int(call.broken)] for call in self.recent],
            "failing_since": stored_moment(self.failing_since),
            "failed_at": stored_moment(self.failed_at),
            "outage_since": stored_moment(self.outage_since),
            "outage_until": stored_moment(self.outage_until),
            "openings": self.openings,
            "lowered": self.lowered,
            "good_since": self.good_since,
            "blamed": {key: at.isoformat() for key, at in self.blamed.items()},
        }

    @classmethod
    def from_json(cls, stored: Any) -> CallOutcomes:
        """Return what `to_json` encoded; None is a source without calls.

        Raises:
            ValueError: It cannot be read; KeyError and TypeError may be raised too.
        """
        if stored is None:
            return cls()
        return cls(
            recent=[EndedCall(_utc(at), bool(good), key, bool(broken)) for at, good, key, broken in stored["recent"]],
            failing_since=read_moment(stored["failing_since"]),
            failed_at=read_moment(stored["failed_at"]),
            outage_since=read_moment(stored["outage_since"]),
            outage_until=read_moment(stored["outage_until"]),
            openings=int(stored["openings"]),
            lowered=int(stored["lowered"]),
            good_since=int(stored["good_since"]),
            blamed={key: _utc(at) for key, at in stored["blamed"].items()},
        )


def throttle_pause(retry_after: float | None, rng: Random) -> timedelta:
    """Return how long the breaker opens after a 429 that asks for ``retry_after`` seconds, if it does."""
    if retry_after is None:
        return timedelta(seconds=rng.uniform(*THROTTLE_SECONDS))
    return timedelta(seconds=retry_after * (1 + rng.uniform(0, THROTTLE_JITTER)))


def stored_moment(moment: datetime | None) -> str | None:
    """Return a datetime as stored in JSON."""
    return moment.isoformat() if moment else None


def read_moment(stored: Any) -> datetime | None:
    """Return the datetime that `stored_moment` encoded.

    Raises:
        ValueError: It is not a datetime; TypeError may be raised too.
    """
    return _utc(stored) if stored is not None else None


def _utc(stored: str) -> datetime:
    return datetime.fromisoformat(stored).astimezone(UTC)
