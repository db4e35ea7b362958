"""How often a video is looked at follows from its age; a failure waits longer each time, with a share by lot."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.douban.pace import JITTER, PLAN_TIERS, BackOff, Tiers, next_visit, updated_at
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import days_ago, unix

MOMENTS = st.integers(unix(START) - 10**9, unix(START) + 10**9).map(
    lambda seconds: datetime.fromtimestamp(seconds, UTC)
)
VOD_TIMES = st.integers(0, 2**32 - 1)
TIERS = PLAN_TIERS.members
STEPS = tuple(timedelta(minutes=step) for step in (10, 30, 120, 360, 1440))
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
    tier = PLAN_TIERS.tier(days_ago(days), None, START)
    assert tier.interval == timedelta(days=interval)


@pytest.mark.parametrize(
    ("year", "interval"), [(2026, 3), (2025, 7), (2024, 60), (2023, 90), (1994, 90), (2030, 3), (None, 90)]
)
def test_without_an_update_time_the_year_decides(year, interval):
    assert PLAN_TIERS.tier(0, year, START).interval == timedelta(days=interval)


def test_the_update_time_wins_over_the_year():
    assert PLAN_TIERS.tier(days_ago(1), 1994, START).interval == timedelta(days=3)
    assert PLAN_TIERS.tier(days_ago(800), 2026, START).interval == timedelta(days=90)


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
    assert TIERS[PLAN_TIERS.index(vod_time, year, now)] is PLAN_TIERS.tier(vod_time, year, now)


@given(VOD_TIMES, MOMENTS, st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_a_video_that_ages_is_never_looked_at_more_often(vod_time, now, later):
    assert PLAN_TIERS.index(vod_time or 1, None, now) <= PLAN_TIERS.index(vod_time or 1, None, now + later)


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


def test_tiers_of_a_site_are_its_own():
    tiers = Tiers.of_days({7: 1, 0.5: 0.25}, older=10)
    found = [tiers.tier(days_ago(days), None, START) for days in (0.4, 0.6, 7, 7.1, 4000)]
    assert [tier.interval / timedelta(days=1) for tier in found] == [0.25, 1, 1, 10, 10]
    assert [tier.name for tier in tiers.members] == ["≤ 0.5 d", "≤ 7 d", "> 7 d"]
    assert Tiers.of_days({}, older=4).tier(days_ago(1), None, START).interval == timedelta(days=4)


@pytest.mark.parametrize(
    ("failures", "minutes"), [(1, 10), (2, 30), (3, 120), (4, 360), (5, 1440), (6, 1440), (99, 1440)]
)
def test_each_failure_in_a_row_waits_longer_up_to_the_last_step(failures, minutes):
    assert BackOff(STEPS, jitter=0).wait(failures, 7) == timedelta(minutes=minutes)


@given(st.integers(1, 12), st.integers(1, 2**32), st.floats(0, 1))
def test_a_wait_is_lengthened_by_at_most_the_jitter_and_never_shortened(failures, vod_id, jitter):
    wait, step = (BackOff(STEPS, share).wait(failures, vod_id) for share in (jitter, 0.0))
    assert step <= wait <= step * (1 + jitter) + timedelta(microseconds=1)
    assert wait == BackOff(STEPS, jitter).wait(failures, vod_id)


def test_what_failed_together_is_not_tried_together():
    back_off = BackOff(STEPS, jitter=0.1)
    waits = sorted(back_off.wait(1, vod_id) for vod_id in range(1, 1001))
    tenths = [sum(1 for wait in waits if (wait - STEPS[0]) // timedelta(seconds=6) == part) for part in range(10)]
    assert min(tenths) > 50, f"waits pile up: {tenths}"
    assert len({back_off.wait(failures, 7) / STEPS[failures - 1] for failures in range(1, 6)}) == 5
