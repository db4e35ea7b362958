"""Plots of measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from douban_pipeline.core.gate import GateStatus
from douban_pipeline.core.ui.plots import AmountRow, Series, Track, columns, spans, timeline
from douban_pipeline.douban.reports.health.metrics import DAYS, Health, TaskOutcomes
from douban_pipeline.douban.reports.health.report import duration, time_unit
from douban_pipeline.douban.reports.health.samples import HealthSample
from douban_pipeline.douban.wording import SOURCE_NAMES, TASK_STATUSES, TASK_TYPES, VERDICTS, word_for

BACKLOG_SHOWN = timedelta(hours=48)
_LEAST_SHOWN = timedelta(hours=3)
"""Least span of an axis: a new installation has only minutes of measurements, too little of a two-day axis."""
_LEAST_HOURS = 6
_GAP = timedelta(minutes=30)
"""Measurements further apart are not joined by a line."""
_MOST_POINTS = 200
_HOURS = 24
_MINUTES = 60
_VERDICT_COLOURS = {"CONFIRMED": 3, "REVIEW": 2, "NOT_FOUND": 1, "UNDECIDED": 4}


def backlog(samples: Sequence[HealthSample], now: datetime, zone: ZoneInfo) -> str:
    """Return a plot of the due videos and the open tasks since the first sample; empty without samples."""
    span = min(max(now - samples[0].at, _LEAST_SHOWN), BACKLOG_SHOWN) if samples else BACKLOG_SHOWN
    start, hours = now - span, math.ceil(span / timedelta(hours=1))
    # Only as many points as can be distinguished, with the newest: every plot is stored with its run.
    every = -(-len(samples) // _MOST_POINTS) or 1
    shown = samples[(len(samples) - 1) % every :: every]
    tracks = [
        Track("到期影片", [(sample.at, sample.due) for sample in shown], 1),
        Track("未完成任务", [(sample.at, sample.open_tasks) for sample in shown], 2),
    ]
    marks = list(_marks(start, now, zone))
    return timeline(tracks, title=f"积压（最近 {hours} 小时）", start=start, end=now, marks=marks, gap=_GAP)


def requests(gate: GateStatus, now: datetime, zone: ZoneInfo) -> str:
    """Return a plot of the calls to a source in each of the last 60 minutes, with its limit."""
    last = now.replace(second=0, microsecond=0)
    moments = [last - timedelta(minutes=back) for back in range(_MINUTES - 1, -1, -1)]
    found = {minute.start: minute for minute in gate.minutes}
    granted = [found[moment].granted if moment in found else 0 for moment in moments]
    # A call may fail in the minute after the one in which it was granted.
    failed = [min(found[moment].failed, granted[at]) if moment in found else 0 for at, moment in enumerate(moments)]
    local = [moment.astimezone(zone) for moment in moments]
    return columns(
        [
            Series("请求", [all_ - bad for all_, bad in zip(granted, failed, strict=True)], 1),
            Series("其中失败", failed, 2),
        ],
        title=f"{word_for(SOURCE_NAMES, gate.source)}：每分钟请求（最近 1 小时）",
        marks=[f"{moment:%H:%M}" if moment.minute % 15 == 0 else "" for moment in local],
        limit=gate.requests_per_minute,
        limit_name=f"上限 {gate.requests_per_minute:g}",
        height=80,
    )


def verdicts(health: Health) -> str:
    """Return a plot of the verdicts by day; empty if there were none."""
    days = health.verdict_days
    if not any(day.counts for day in days):
        return ""
    return columns(
        [
            Series(word_for(VERDICTS, status), [day.counts.get(status, 0) for day in days], colour)
            for status, colour in _VERDICT_COLOURS.items()
        ],
        title=f"每日判定（最近 {DAYS} 天和今天）",
        marks=["" if at % 2 else f"{day.day.month}-{day.day.day}" for at, day in enumerate(days)],
    )


def outcomes(samples: Sequence[HealthSample], now: datetime, zone: ZoneInfo) -> str:
    """Return a plot of tasks that succeeded and failed in each of the last 24 hours; empty without samples.

    Hours before the first sample are left out, down to `_LEAST_HOURS`.

    Args:
        samples: The samples, including the one made ``now``.
        now: The end of the last hour.
        zone: Time zone in which hours are shown.
    """
    if not samples:
        return ""
    measured = math.ceil((now - samples[0].at) / timedelta(hours=1)) + 1
    hours = min(max(measured, _LEAST_HOURS), _HOURS)
    ends = [now - timedelta(hours=back) for back in range(hours - 1, -1, -1)]
    step = 4 if hours > _HOURS // 2 else 2
    found = [_hour_up_to(samples, end) for end in ends]
    return columns(
        [
            Series("成功", [hour.succeeded for hour in found], 3),
            Series("失败", [hour.failed for hour in found], 2),
        ],
        title=f"每小时任务结果（最近 {hours} 小时）",
        marks=["" if at % step else f"{end.astimezone(zone):%H:%M}" for at, end in enumerate(reversed(ends))][::-1],
    )


def durations(health: Health) -> str:
    """Return a plot of the durations of tasks in the last 24 hours; empty if no start time is known."""
    rows = [
        AmountRow(
            f"{word_for(TASK_TYPES, item.task_type)} · {word_for(TASK_STATUSES, item.status)}",
            item.mean_seconds,
            item.p95_seconds,
        )
        for item in health.closed_tasks
        if item.mean_seconds is not None and item.p95_seconds is not None
    ]
    return spans(
        rows,
        title="任务耗时（最近 24 小时）",
        usual="平均",
        reach="95% 不超过",
        format_amount=duration,
        unit=time_unit(max((row.reach for row in rows), default=0.0)),
    )


def _marks(start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[tuple[datetime, str]]:
    """Yield the full hours that an axis is marked at: from every hour over 3 hours to every 12th over 2 days."""
    span = end - start
    step = next(hours for hours, reach in ((1, 6), (3, 15), (6, 27), (12, 49)) if span <= timedelta(hours=reach))
    moment = start.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    while moment <= end:
        if moment >= start:
            yield moment, f"{moment.month}-{moment.day}" if moment.hour == 0 else f"{moment:%H:%M}"
        # By local time, even where clocks changed since the last mark.
        moment = (moment + timedelta(hours=step)).replace(hour=(moment.hour + step) % 24)


def _hour_up_to(samples: Sequence[HealthSample], end: datetime) -> TaskOutcomes:
    """Return the outcomes of the hour that ends about ``end``, from the newest sample up to ``end``."""
    near = [sample for sample in samples if end - _GAP < sample.at <= end]
    return near[-1].last_hour if near else TaskOutcomes()
