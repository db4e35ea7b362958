"""Time as a value that is handed in, so that no rule and no test depends on the real clock; days of a time zone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as time_of_day
from typing import Protocol


class Clock(Protocol):
    """What the time is, and how to wait."""

    def now(self) -> datetime:
        """Return the present moment, timezone-aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` (0 or less returns at once)."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Block the calling thread for ``seconds``."""
        if seconds > 0:
            time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Day:
    """One day of a time zone: which it is, and when the next one begins (UTC)."""

    date: date
    ends_at: datetime


def day_of(now: datetime, zone: tzinfo) -> Day:
    """Return the day that ``now`` belongs to in ``zone``."""
    today = now.astimezone(zone).date()
    return Day(today, midnight(today + timedelta(days=1), zone))


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return when ``day`` begins in ``zone`` (UTC)."""
    first = datetime.combine(day, time_of_day.min, zone)
    # Where clocks are changed at midnight it comes twice, or not at all: the later reading is right for both.
    return max(first.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
