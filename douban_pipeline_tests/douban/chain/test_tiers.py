"""How often a video is looked at follows from its age alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.chain.tiers import JITTER, TIERS, next_visit, tier_index, tier_of, updated_at
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import days_ago, unix

MOMENTS = st.integers(unix(START) - 10**9, unix(START) + 10**9).map(
    lambda seconds: datetime.fromtimestamp(seconds, UTC)
)
VOD_TIMES = st.integers(0, 2**32 - 1)
YEARS = st.none() | st.integers(1900, 2099)


@pytest.mark.parametrize(
    ("days", "interval"),
    [
        (0, 3),
        (29.9, 3),
        (30, 3),
        (30.1, 7),
        (180, 7),
        (180.1, 30),
        (365, 30),
        (365.1, 60),
        (730, 60),
        (730.1, 90),
        (9000, 90),
        (-1, 3),
        (-4000, 3),
    ],
)
def test_the_interval_of_an_age(days, interval):
    tier = tier_of(days_ago(days), None, START)
    assert tier.interval == timedelta(days=interval)


@pytest.mark.parametrize(
    ("year", "interval"), [(2026, 3), (2025, 7), (2024, 60), (2023, 90), (1994, 90), (2030, 3), (None, 90)]
)
def test_without_an_update_time_the_year_decides(year, interval):
    assert tier_of(0, year, START).interval == timedelta(days=interval)


def test_the_update_time_wins_over_the_year():
    assert tier_of(days_ago(1), 1994, START).interval == timedelta(days=3)
    assert tier_of(days_ago(800), 2026, START).interval == timedelta(days=90)


@pytest.mark.parametrize(
    ("vod_time", "year", "moment"),
    [(unix(START), 1994, START), (0, 1994, datetime(1994, 12, 31, tzinfo=UTC)), (0, None, None), (-5, None, None)],
)
def test_when_a_video_was_updated(vod_time, year, moment):
    assert updated_at(vod_time, year) == moment


def test_younger_videos_are_looked_at_more_often_and_come_first():
    for younger, older in pairwise(TIERS):
        assert younger.max_age < older.max_age
        assert younger.interval < older.interval
        assert younger.priority > older.priority


@given(VOD_TIMES, YEARS, MOMENTS)
def test_every_video_has_a_tier(vod_time, year, now):
    assert TIERS[tier_index(vod_time, year, now)] is tier_of(vod_time, year, now)


@given(VOD_TIMES, MOMENTS, st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_a_video_that_ages_is_never_looked_at_more_often(vod_time, now, later):
    assert tier_index(vod_time or 1, None, now) <= tier_index(vod_time or 1, None, now + later)


@given(st.integers(1, 2**32 - 1), st.sampled_from(TIERS), MOMENTS)
def test_the_next_visit_is_an_interval_away_give_or_take_a_tenth(vod_id, tier, now):
    wait = next_visit(vod_id, tier, now) - now
    assert abs(wait - tier.interval) <= JITTER * tier.interval + timedelta(microseconds=1)
    assert next_visit(vod_id, tier, now) == next_visit(vod_id, tier, now)


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.name)
def test_what_came_in_together_does_not_come_due_together(tier):
    waits = sorted(next_visit(vod_id, tier, START) - START for vod_id in range(1, 2001))
    spread = 2 * JITTER * tier.interval
    assert waits[-1] - waits[0] > 0.98 * spread
    tenths = [sum(1 for wait in waits if (wait - waits[0]) // (spread / 10) == part) for part in range(10)]
    assert min(tenths) > 100, f"visits pile up: {tenths}"


def test_a_video_does_not_draw_the_same_lot_for_ever():
    waits = {next_visit(7, TIERS[0], START + timedelta(days=day)) - START - timedelta(days=day) for day in range(30)}
    assert len(waits) == 30
