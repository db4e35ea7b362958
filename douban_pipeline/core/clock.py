"""Time as an injected value, so that no rule and no test depends on the real clock; days of a time zone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as time_of_day
from typing import Protocol
from zoneinfo import ZoneInfo


class Clock(Protocol):
    """Returns the current time and waits."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` (0 or less returns at once)."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Block the calling thread for ``seconds``."""
        if seconds > 0:
            time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Day:
    """One day of a time zone: its date, and when the next one begins (UTC)."""

    date: date
    ends_at: datetime


def day_of(now: datetime, zone: tzinfo) -> Day:
    """Return the day that ``now`` belongs to in ``zone``."""
    today = now.astimezone(zone).date()
    return Day(today, midnight(today + timedelta(days=1), zone))


def midnight(day: date, zone: tzinfo) -> datetime:
    """Return when ``day`` begins in ``zone`` (UTC)."""
    first = datetime.combine(day, time_of_day.min, zone)
    # Where clocks change at midnight, midnight occurs twice or not at all: the later reading is right in both cases.
    return max(first.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


_FORM = "请写成 2026-11-20 08:00（站点时区）或 2026-11-20T08:00:00+08:00"


def moment_in(text: str, zone: ZoneInfo) -> datetime | None:
    """Return the moment given by ``text``, None for an empty text; a time without an offset is read in ``zone``.

    Raises:
        ValueError: The text is no moment, or an ambiguous one; the message says why.
    """
    text = text.strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"“{text}” 不是时间，{_FORM}") from None
    if ":" not in text or not set(text) & {"T", "t", " "}:
        # A date without a time is ambiguous, with or without an offset: its beginning or its end could be meant.
        raise ValueError(f"“{text}” 没有写到分钟，{_FORM}")
    try:
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
        readings = {moment.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    except OverflowError:
        raise ValueError(f"“{text}” 不是时间，{_FORM}") from None
    if len(readings) > 1:
        raise ValueError(f"“{text}” 正值 {zone.key} 的时钟调整，无法确定，请写明时差，例如 {moment.isoformat()}+08:00")
    return readings.pop()
