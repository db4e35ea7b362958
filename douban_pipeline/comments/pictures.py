"""Plots of the comment system: events by hour, delays of events, and moves in the first ten places."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.plots import Series, columns

_WAITS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 30.0)
_WAIT_NAMES = ("≤0.1秒", "0.25秒", "0.5秒", "1秒", "2秒", "5秒", "30秒", ">30秒")


def load(events: Sequence[int], now: datetime, zone: ZoneInfo) -> str:
    """Return a plot of events by hour, the last hour at the right; empty without events."""
    if not any(events):
        return ""
    hours = [now.astimezone(zone) - timedelta(hours=back) for back in range(len(events) - 1, -1, -1)]
    marks = [f"{hour:%d日%H时}" if hour.hour % 12 == 0 else "" for hour in hours]
    return columns([Series("事件", events, 1)], title=f"每小时的事件（最近 {len(events)} 小时）", marks=marks)


def lag(waits: Sequence[float]) -> str:
    """Return a plot of the delays of events, given in ascending order; empty without events."""
    if not waits:
        return ""
    counts = [0] * len(_WAIT_NAMES)
    for wait in waits:
        counts[sum(wait > bound for bound in _WAITS)] += 1
    slow = waits[int(0.95 * (len(waits) - 1))]
    title = f"从提交到生效（近一小时 {len(waits)} 个事件，95% 在 {slow:.2f} 秒内）"
    return columns([Series("事件", counts, 1)], title=title, marks=_WAIT_NAMES)


def moves(moved: Sequence[int]) -> str:
    """Return a plot of sections by changed places among the first ten; empty without sections."""
    if not moved:
        return ""
    counts = [0] * 11
    for each in moved:
        counts[min(each, 10)] += 1
    title = f"前十名的变动（{len(moved)} 个评论区）"
    return columns([Series("评论区", counts, 1)], title=title, marks=[f"{number} 处" for number in range(11)])
