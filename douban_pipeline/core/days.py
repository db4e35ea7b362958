"""Days of a time zone: when they begin and end. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo


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
    first = datetime.combine(day, time.min, zone)
    # Where clocks are changed at midnight it comes twice, or not at all: the later reading is right for both.
    return max(first.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
