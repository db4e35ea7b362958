"""When the days of a zone begin and end, also where clocks are changed at midnight."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.clock import Day, day_of, midnight
from douban_pipeline_tests.harness.fixtures.clocks import START


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "zone", "day", "ends_at"),
    [
        ("2026-03-01T15:59:59", "Asia/Shanghai", "2026-03-01", "2026-03-01T16:00"),
        ("2026-03-01T16:00:00", "Asia/Shanghai", "2026-03-02", "2026-03-02T16:00"),
        ("2026-03-01T23:59:59", "UTC", "2026-03-01", "2026-03-02T00:00"),
        ("2026-03-29T12:00:00", "Europe/Berlin", "2026-03-29", "2026-03-29T22:00"),
        # There is no midnight: the day begins at one.
        ("2026-03-08T03:00:00", "America/Havana", "2026-03-07", "2026-03-08T05:00"),
        # The clocks go back from midnight: the day before goes on for another hour.
        ("2025-10-25T20:30:00", "Asia/Beirut", "2025-10-25", "2025-10-25T22:00"),
        ("2025-10-25T21:30:00", "Asia/Beirut", "2025-10-25", "2025-10-25T22:00"),
    ],
)
def test_a_day_begins_at_midnight_of_the_site(now: str, zone: str, day: str, ends_at: str) -> None:
    found = day_of(utc(now), ZoneInfo(zone))
    assert (found.date.isoformat(), found.ends_at) == (day, utc(ends_at))


@given(
    st.integers(0, 30 * 366 * 86_400).map(
        lambda seconds: START - timedelta(days=20 * 365) + seconds * timedelta(seconds=1)
    ),
    st.sampled_from(["Asia/Shanghai", "UTC", "Asia/Beirut", "America/Havana", "America/Asuncion", "Asia/Kathmandu"]),
)
def test_the_next_day_always_lies_ahead_and_is_another_day(now: datetime, name: str) -> None:
    zone: tzinfo = ZoneInfo(name)
    day = day_of(now, zone)
    assert timedelta() < day.ends_at - now <= timedelta(hours=25)
    assert day_of(day.ends_at, zone).date == day.date + timedelta(days=1)
    assert isinstance(day, Day)
    assert midnight(day.date, zone) <= now, "its beginning lies behind"
    assert midnight(day.date + timedelta(days=1), zone) == day.ends_at, "the next begins where it ends"
