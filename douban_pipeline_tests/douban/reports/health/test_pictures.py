"""The pictures show what was measured, in the site's time, and each hour and minute once."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from douban_pipeline.core.gate import GateStatus
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.core.gate_usage import Minute
from douban_pipeline.douban.reports.health import pictures
from douban_pipeline.douban.reports.health.metrics import (
    ClosedTasks,
    Health,
    IntroBudget,
    TaskOutcomes,
    VerdictDay,
)
from douban_pipeline.douban.reports.health.report import duration
from douban_pipeline.douban.reports.health.samples import HealthSample
from douban_pipeline_tests.core.ui.test_plots import texts
from douban_pipeline_tests.core.ui.test_timelines import blocks, drawn, lines
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import GivenSettings

ZONE = GivenSettings().zone
GATE = GateStatus("douban", GateState.CLOSED, None, "", 0, 0, 30.0, 2, 2, 0, 0, START, START)
HEALTH = Health(START, 0, None, 0, [], [], {}, {}, [], [], IntroBudget(0, 0, 0, 0))


def sample(ago: timedelta, **columns: Any) -> HealthSample:
    given = {"due": 0, "open_tasks": 0, "in_review": 0, "last_hour": TaskOutcomes(), "gates": {}, "spent_usd": 0.0}
    return HealthSample(at=START - ago, **{**given, **columns})


def every(minutes: float, hours: float) -> list[HealthSample]:
    """Return samples of the last ``hours``, the oldest first."""
    count = int(60 * hours / minutes)
    return [sample(timedelta(minutes=minutes * back), due=back, open_tasks=1) for back in range(count, -1, -1)]


def test_the_backlog_is_one_line_to_this_moment_however_many_samples_there_are() -> None:
    svg = pictures.backlog(every(5, 48), START, ZONE)
    for colour in (1, 2):
        [line] = lines(svg, colour)
        assert line[0][0] < line[-1][0] == 432.0
    assert len(svg) < 8000
    # Noon in Shanghai, where it is now.
    assert {"2-28", "3-1", "12:00", "到期影片", "未完成任务"} <= set(texts(svg))
    assert "00:00" not in texts(svg)


@pytest.mark.parametrize(
    ("minutes", "title", "marks"),
    [
        (10, "积压（最近 3 小时）", {"10:00", "11:00", "12:00"}),
        (12 * 60, "积压（最近 12 小时）", {"3-1", "06:00", "12:00"}),
        (90 * 60, "积压（最近 48 小时）", {"12:00", "2-28", "3-1"}),
    ],
)
def test_a_new_installation_fills_the_axis_with_what_it_measured(minutes, title, marks) -> None:
    svg = pictures.backlog(every(5, minutes / 60), START, ZONE)
    assert title in texts(svg)
    assert marks <= set(texts(svg))
    assert lines(svg)[0][0][0] < 432 * (1 - 1 / 30)


def test_a_pause_in_measuring_is_a_gap() -> None:
    samples = [item for item in every(5, 48) if not timedelta(hours=10) < START - item.at < timedelta(hours=12)]
    assert len(lines(pictures.backlog(samples, START, ZONE))) == 2


def test_a_first_measurement_is_drawn_and_none_is_not() -> None:
    assert len(lines(pictures.backlog(every(5, 0), START, ZONE))) == 1
    assert pictures.backlog([], START, ZONE) == pictures.outcomes([], START, ZONE) == ""


def test_requests_stand_in_their_minutes_under_their_limit() -> None:
    now = START + timedelta(seconds=40)
    minutes = (
        Minute(START - timedelta(minutes=60), 30, 30, 0),  # an hour ago: no longer shown
        Minute(START - timedelta(minutes=59), 20, 20, 0),
        Minute(START - timedelta(minutes=1), 10, 2, 8),
        Minute(START, 5, 0, 9),  # failures of calls from the minute before
    )
    svg = pictures.requests(replace(GATE, minutes=minutes), now, ZONE)
    asked, failed = blocks(svg, 1), blocks(svg, 2)
    assert len(asked) == 2, "of the last minute all failed"
    assert asked[0][0] < asked[1][0]
    (_, bottom, top), (_, last_bottom, last_top) = failed
    assert bottom - top == pytest.approx(4 * (asked[1][1] - asked[1][2]), abs=0.2)
    assert last_bottom == asked[0][1], "it stands on the ground"
    assert last_bottom - last_top == pytest.approx((asked[0][1] - asked[0][2]) / 4, abs=0.2), "5 of 20"
    assert len(drawn(svg, "dp-goal")) == 2
    assert {"豆瓣：每分钟请求（最近 1 小时）", "上限 30", "11:15", "12:00"} <= set(texts(svg))


def test_each_hour_is_counted_once_though_samples_overlap() -> None:
    samples = [
        sample(timedelta(minutes=5 * back), last_hour=TaskOutcomes(succeeded=12, failed=4))
        for back in range(24, -1, -1)
    ]
    svg = pictures.outcomes(samples, START, ZONE)
    assert len(blocks(svg, 3)) == len(blocks(svg, 2)) == 3, "one that ends now, an hour ago, two hours ago"
    assert {"每小时任务结果（最近 6 小时）", "12:00", "08:00", "成功", "失败"} <= set(texts(svg))
    day = pictures.outcomes([sample(timedelta(days=1)), *samples], START, ZONE)
    assert "每小时任务结果（最近 24 小时）" in texts(day)


def test_verdicts_stand_by_day() -> None:
    days = [VerdictDay(date(2026, 2, 15) + timedelta(days=at), {}) for at in range(14)]
    days.append(VerdictDay(date(2026, 3, 1), {"CONFIRMED": 6, "REVIEW": 2, "UNDECIDED": 1}))
    svg = pictures.verdicts(replace(HEALTH, verdict_days=days))
    assert [len(blocks(svg, colour)) for colour in (1, 2, 3, 4)] == [0, 1, 1, 1]
    assert {"2-15", "3-1", "自动确认", "待审核", "未找到", "暂不判断"} <= set(texts(svg))
    assert pictures.verdicts(replace(HEALTH, verdict_days=days[:-1])) == ""


def test_durations_are_reported_in_a_readable_unit() -> None:
    closed = [
        ClosedTasks("SYNC_DOUBAN", "SUCCESS", 9, 12.34, 300.0),
        ClosedTasks("SYNC_DOUBAN", "SKIP", 1, None, None),
        ClosedTasks("NEW_KIND", "FAIL", 1, 0.5, 0.5),
    ]
    svg = pictures.durations(replace(HEALTH, closed_tasks=closed))
    assert {"更新字段 · 成功", "12.3 秒 · 5 分", "NEW_KIND · 失败", "0.5 秒 · 0.5 秒", "5 分"} <= set(texts(svg))
    assert pictures.durations(HEALTH) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 秒"),
        (0.05, "0.05 秒"),
        (12.34, "12.3 秒"),
        (89, "89 秒"),
        (90, "1.5 分"),
        (3599, "60 分"),
        (7200, "2 小时"),
        (172_800, "2 天"),
        (86_400 * 1234, "1,234 天"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
