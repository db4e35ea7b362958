"""What a gate admitted, how it ended and what it cost: per minute and per day.

Nothing here reads a clock or a database. All datetimes are aware; a day is one of the site's time zone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

MINUTE = timedelta(minutes=1)
KEPT = timedelta(minutes=60)
"""How long minutes are kept."""


@dataclass(slots=True)
class Minute:
    """What happened in one minute.

    Attributes:
        start: Its first moment (UTC).
        granted: Calls admitted.
        succeeded: Calls that were answered, including "does not exist".
        failed: Calls that ended without a usable answer.
        tokens: Tokens of the calls admitted: as used, or the estimate while that is unknown.
    """

    start: datetime
    granted: int = 0
    succeeded: int = 0
    failed: int = 0
    tokens: int = 0


@dataclass(slots=True)
class CallTokens:
    """Tokens of one call, counted from when it was admitted."""

    start: datetime
    tokens: int


@dataclass(slots=True)
class GateUsage:
    """The counters of one source.

    Attributes:
        day: The day that `requests` and `tokens` belong to; None before the first call.
        requests: Calls admitted that day.
        tokens: Their tokens.
        minutes: The last 60 minutes, oldest first, only those with traffic.
        spendings: The calls of the last minute that have tokens, in no order.
    """

    day: date | None = None
    requests: int = 0
    tokens: int = 0
    minutes: list[Minute] = field(default_factory=list)
    spendings: list[CallTokens] = field(default_factory=list)

    def grant(self, now: datetime, today: date, tokens: int) -> None:
        """Count a call admitted now, with the estimate of its tokens."""
        if self.day != today:
            self.day, self.requests, self.tokens = today, 0, 0
        self.requests += 1
        self.tokens += tokens
        minute = self._minute(now)
        minute.granted += 1
        minute.tokens += tokens
        self._spend(now, now, tokens)

    def finish(self, now: datetime, *, good: bool) -> None:
        """Count a call that ended now."""
        minute = self._minute(now)
        if good:
            minute.succeeded += 1
        else:
            minute.failed += 1

    def correct(self, granted_at: datetime, today: date, estimate: int, used: int, now: datetime) -> None:
        """Replace a call's estimate by the tokens it used, wherever the estimate is still counted.

        Args:
            granted_at: When the call was admitted.
            today: The day of ``granted_at``.
            estimate: Its tokens as counted then.
            used: The tokens it used.
            now: The current time.
        """
        if used == estimate:
            return
        if self.day == today:
            self.tokens += used - estimate
        start = _floor(granted_at, MINUTE)
        for minute in self.minutes:
            if minute.start == start:
                minute.tokens += used - estimate
        # Calls admitted at the same moment with the same estimate are interchangeable.
        counted = CallTokens(granted_at, estimate)
        if counted in self.spendings:
            self.spendings.remove(counted)
        self._spend(granted_at, now, used)

    def seconds_for_tokens(self, tokens: int, limit: int, now: datetime) -> float:
        """Return the seconds until ``tokens`` more fit into the last minute's ``limit``; 0 for "now".

        A call with more tokens than a whole minute allows waits for a minute without any.
        """
        spent = sorted(
            (item for item in self.spendings if now - MINUTE < item.start <= now + MINUTE), key=lambda item: item.start
        )
        used = sum(item.tokens for item in spent)
        seconds = 0.0
        for item in spent:
            if used + tokens <= limit:
                break
            used -= item.tokens
            seconds = (item.start + MINUTE - now).total_seconds()
        return seconds

    def of_day(self, today: date) -> tuple[int, int]:
        """Return the requests and tokens of ``today``."""
        return (self.requests, self.tokens) if self.day == today else (0, 0)

    def last_minutes(self, now: datetime) -> tuple[Minute, ...]:
        """Return the minutes with traffic of the last 60, oldest first."""
        return tuple(item for item in self.minutes if _kept(item, now))

    def _minute(self, now: datetime) -> Minute:
        start = _floor(now, MINUTE)
        if not self.minutes or self.minutes[-1].start != start:
            self.minutes = [item for item in self.minutes if _kept(item, now)]
        for item in reversed(self.minutes):
            if item.start == start:
                return item
        minute = Minute(start)
        self.minutes.append(minute)
        self.minutes.sort(key=lambda item: item.start)  # machines' clocks may differ a little
        return minute

    def _spend(self, moment: datetime, now: datetime, tokens: int) -> None:
        self.spendings = [item for item in self.spendings if now - MINUTE < item.start <= now + MINUTE]
        if tokens:
            self.spendings.append(CallTokens(moment, tokens))

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "day": self.day.isoformat() if self.day else None,
            "requests": self.requests,
            "tokens": self.tokens,
            "minutes": [
                [_unix(item.start), item.granted, item.succeeded, item.failed, item.tokens] for item in self.minutes
            ],
            "spendings": [[item.start.isoformat(), item.tokens] for item in self.spendings],
        }

    @classmethod
    def from_json(cls, stored: Any) -> GateUsage:
        """Return what `to_json` encoded; None is a source without traffic.

        Raises:
            ValueError: They cannot be read; KeyError and TypeError may be raised too.
        """
        if stored is None:
            return cls()
        return cls(
            day=date.fromisoformat(stored["day"]) if stored["day"] else None,
            requests=int(stored["requests"]),
            tokens=int(stored["tokens"]),
            minutes=[Minute(_moment(start), *_numbers(rest, 4)) for start, *rest in stored["minutes"]],
            spendings=[CallTokens(datetime.fromisoformat(start), int(tokens)) for start, tokens in stored["spendings"]],
        )


def _kept(minute: Minute, now: datetime) -> bool:
    # A minute in the future was written before the clock was set back.
    return now - KEPT < minute.start <= now + MINUTE


def _floor(moment: datetime, step: timedelta) -> datetime:
    seconds = int(step.total_seconds())
    return _moment(_unix(moment) // seconds * seconds)


def _unix(moment: datetime) -> int:
    return int(moment.timestamp())


def _moment(seconds: Any) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


def _numbers(values: Iterable[Any], count: int) -> list[int]:
    numbers = [int(value) for value in values]
    if len(numbers) != count:
        raise ValueError(f"{len(numbers)} counters instead of {count}")
    return numbers
