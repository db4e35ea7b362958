"""Slots as times: the slot of a partition, when it is due, how far back it reads, and whether it may push. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

SKEW = timedelta(seconds=60)
"""How much earlier than its scheduled time a slot may start, because clocks differ."""
LATEST_PUSH = timedelta(hours=12)
"""How long after its scheduled time a slot still sends messages."""
_SEPARATOR = "|"


@dataclass(frozen=True, slots=True, order=True)
class SlotKey:
    """One slot of one day, such as 07:00 of 2026-11-20."""

    run_date: date
    slot: str

    def __str__(self) -> str:
        """Return the slot in the form of a partition key: ``2026-11-20|07:00``."""
        return f"{self.run_date.isoformat()}{_SEPARATOR}{self.slot}"

    @classmethod
    def parse(cls, partition: str) -> SlotKey:
        """Return the slot of a partition.

        Raises:
            ValueError: It is not a slot.
        """
        day, separator, slot = partition.partition(_SEPARATOR)
        if not separator:
            raise ValueError(f"{partition} is not a slot such as 2026-11-20|07:00")
        time.fromisoformat(slot)
        return cls(date.fromisoformat(day), slot)

    def scheduled_at(self, zone: tzinfo) -> datetime:
        """Return when it is due (UTC)."""
        return datetime.combine(self.run_date, time.fromisoformat(self.slot), zone).astimezone(UTC)


def early_refusal(key: SlotKey, now: datetime, zone: tzinfo) -> str | None:
    """Return why a slot cannot run yet, or None.

    A slot that succeeded is not run again, so running one hours early would suppress the real one.
    """
    due = key.scheduled_at(zone)
    if now >= due - SKEW:
        return None
    return f"{key} 还没有到点（{due.astimezone(zone):%m-%d %H:%M}），没有运行"


def push_refusal(key: SlotKey, now: datetime, zone: tzinfo, *, backfill: bool) -> str | None:
    """Return why a slot that runs now sends no messages, or None."""
    if backfill:
        return "补跑（backfill）不推送"
    late = now - key.scheduled_at(zone)
    if late > LATEST_PUSH:
        return f"比预定时间晚 {late.total_seconds() / 3600:.0f} 小时，不再推送"
    return None


@dataclass(frozen=True, slots=True)
class Window:
    """Start of the period from which a slot reads an account's articles, and whether it is earlier than usual."""

    start: datetime
    extended: bool


def window_of(now: datetime, usual: timedelta, longest: timedelta, last_good_at: datetime | None) -> Window:
    """Return the window of an account that was last read at ``last_good_at``; None for never."""
    start = now - usual
    if last_good_at is None or last_good_at >= start:
        return Window(start, extended=False)
    return Window(max(last_good_at, now - longest), extended=True)


def newest_moment(
    key: SlotKey, schedule: Sequence[str], now: datetime, zone: tzinfo, *, pushes: bool
) -> datetime | None:
    """Return until when articles belong to a slot that runs now; None if all that there are do.

    All do while its own messages can tell of them: it pushes, and no later slot is due. Otherwise they would be missing
    from the pushes and the report of the slot whose time they came in.
    """
    due = key.scheduled_at(zone)
    days = (key.run_date, key.run_date + timedelta(days=1))
    later = (SlotKey(day, slot).scheduled_at(zone) for day in days for slot in schedule)
    return None if pushes and not any(due < each <= now for each in later) else due


def missed_slots(
    day: date, schedule: Sequence[str], begun: Collection[str], now: datetime, zone: tzinfo
) -> tuple[str, ...]:
    """Return the slots of a day that were due and never ran."""
    late = now - SKEW
    return tuple(slot for slot in schedule if slot not in begun and SlotKey(day, slot).scheduled_at(zone) < late)


def days_to_watch(now: datetime, report_slot: str, grace: timedelta, zone: tzinfo) -> list[date]:
    """Return the days whose report must exist by now: yesterday, and today once its hour and ``grace`` have passed.

    Yesterday is included only while its report may still be pushed.
    """
    today = now.astimezone(zone).date()
    keys = [SlotKey(day, report_slot) for day in (today - timedelta(days=1), today)]
    return [
        key.run_date for key in keys if key.scheduled_at(zone) + grace <= now <= key.scheduled_at(zone) + LATEST_PUSH
    ]
