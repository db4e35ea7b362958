"""Counters of a source: what is kept, for how long, in which day it belongs, and how it is stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from douban_pipeline.core.gate_usage import GateUsage, Minute
from douban_pipeline_tests.harness.fixtures.clocks import START

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
TODAY = START.date()


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_minutes_are_kept_for_an_hour_and_only_those_with_traffic() -> None:
    usage = GateUsage()
    for minute in (0, 1, 5, 40, 59):
        usage.grant(START + minute * MINUTE + 30 * SECOND, TODAY, 0)
    usage.finish(START + 59 * MINUTE + 40 * SECOND, good=True)
    usage.finish(START + 59 * MINUTE + 40 * SECOND, good=False)
    now = START + 59 * MINUTE + 59 * SECOND
    assert [(item.start - START) / MINUTE for item in usage.last_minutes(now)] == [0, 1, 5, 40, 59]
    assert usage.last_minutes(now)[-1] == Minute(START + 59 * MINUTE, 1, 1, 1, 0)
    assert [(item.start - START) / MINUTE for item in usage.last_minutes(now + SECOND)] == [1, 5, 40, 59]
    usage.grant(START + timedelta(hours=3), TODAY, 0)
    assert len(usage.minutes) == 1, "nothing piles up in the row"


def test_a_clock_that_is_set_back_leaves_no_minutes_of_the_future_behind() -> None:
    usage = GateUsage()
    for hour in range(5):
        usage.grant(START - hour * timedelta(hours=2), TODAY, 100)
    assert [item.start for item in usage.minutes] == [START - timedelta(hours=8)]
    assert usage.seconds_for_tokens(1, 100, START - timedelta(hours=8)) == 60
    assert usage.seconds_for_tokens(1, 100, START - timedelta(hours=9)) == 0


def test_machines_whose_clocks_differ_by_seconds_count_in_the_same_minutes() -> None:
    usage = GateUsage()
    for seconds in (0, -1, 1, -2, 2):
        usage.grant(START + seconds * SECOND, TODAY, 0)
    assert [(item.start - START, item.granted) for item in usage.minutes] == [(-MINUTE, 2), (timedelta(), 3)]


def full_hour() -> GateUsage:
    """Return the counters of an hour at sixty calls a minute, five of them still under way."""
    usage = GateUsage()
    for second in range(3600):
        now = START + second * SECOND + timedelta(microseconds=second)
        usage.grant(now, TODAY, 1200)
        if second >= 5:
            usage.finish(now, good=second % 7 > 0)
    return usage


def test_counters_are_stored_and_read_back_and_stay_small() -> None:
    usage = full_hour()
    stored = json.dumps(usage.to_json(), sort_keys=True)
    assert GateUsage.from_json(json.loads(stored)) == usage
    assert (len(usage.minutes), len(usage.spendings)) == (60, 60)
    assert len(stored) < 8000
    assert (
        GateUsage.from_json(None) == GateUsage() == GateUsage.from_json(json.loads(json.dumps(GateUsage().to_json())))
    )


@pytest.mark.parametrize(
    "spoilt",
    [
        {"day": "tomorrow"},
        {"requests": None},
        {"minutes": [[1, 2, 3]]},
        {"minutes": [["x", 1, 1, 1, 1]]},
        {"spendings": [["now", 3]]},
        {"spendings": 4},
    ],
)
def test_counters_that_cannot_be_read_are_no_empty_counters(spoilt: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        GateUsage.from_json({**full_hour().to_json(), **spoilt})
    with pytest.raises((ValueError, TypeError, KeyError)):
        GateUsage.from_json({})
