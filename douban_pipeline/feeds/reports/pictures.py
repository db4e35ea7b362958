"""Plots of the feeds system, and a source's publishing hours as a sparkline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from markupsafe import Markup

from douban_pipeline.core.ui.plots import Series, Track, columns, timeline
from douban_pipeline.feeds.cadence import RSS_CADENCE_INTERVALS

HOURS_SHOWN = 48
CADENCE_DAYS = 14
_HOUR = 3600
_DELAY_BOUNDS = (60, 300, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400)
_DELAY_NAMES = ("≤1分", "5分", "15分", "30分", "1时", "2时", "4时", "8时", "1天", ">1天")
_CADENCE_GROUPS = (("P0–P1", ("P0", "P1")), ("P2", ("P2",)), ("P3–P4", ("P3", "P4")), ("P5–P6", ("P5", "P6")))


def polls_by_hour(hours: Sequence[Mapping[str, int]], now: int, zone: ZoneInfo) -> str:
    """Return polls by hour and their hits; empty without any."""
    if not hours:
        return ""
    found = {hour["hour"]: hour for hour in hours}
    last = now - now % _HOUR
    shown = [last - back * _HOUR for back in range(HOURS_SHOWN - 1, -1, -1)]
    local = [datetime.fromtimestamp(moment, zone) for moment in shown]
    names = (("有新条目", "hits", 3), ("没有变化", "misses", 1), ("失败", "failures", 2))
    return columns(
        [Series(label, [found[m][key] if m in found else 0 for m in shown], colour) for label, key, colour in names],
        title="每小时的抓取（最近 48 小时）",
        marks=[f"{moment:%d日%H时}" if moment.hour % 12 == 0 else "" for moment in local],
    )


def delays(found: Sequence[int]) -> str:
    """Return the delays of found entries; empty if there were none."""
    if not found:
        return ""
    counts = [0] * len(_DELAY_NAMES)
    for delay in found:
        counts[sum(delay > bound for bound in _DELAY_BOUNDS)] += 1
    ordered = sorted(found)
    middle = ordered[len(ordered) // 2] / 60
    title = f"发现新条目的延迟（{len(found)} 次，中位数 {middle:.0f} 分钟）"
    return columns([Series("发现次数", counts, 1)], title=title, marks=_DELAY_NAMES)


def cadences(history: Sequence[tuple[int, Mapping[str, int]]], now: int, zone: ZoneInfo) -> str:
    """Return the number of sources by cadence over time; empty without a re-analysis."""
    end = datetime.fromtimestamp(now, UTC)
    start = end - timedelta(days=CADENCE_DAYS)
    if history:
        first = datetime.fromtimestamp(history[0][0], UTC)
        start = max(start, min(first, end - timedelta(hours=1)))
    tracks = [
        Track(
            name,
            [(datetime.fromtimestamp(at, UTC), sum(counts.get(each, 0) for each in steps)) for at, counts in history],
            number,
        )
        for number, (name, steps) in enumerate(_CADENCE_GROUPS, 1)
    ]
    step = (end - start) / 4
    form = "%m-%d" if end - start > timedelta(days=2) else "%H:%M"
    marks = [(start + step * number, (start + step * number).astimezone(zone).strftime(form)) for number in range(1, 4)]
    return timeline(tracks, title="节奏分布", start=start, end=end, marks=marks, gap=timedelta(days=2))


def sparkline(hours: Sequence[int], label: str) -> Markup:
    """Return the publications of each of 24 hours as small columns, with ``label`` for screen readers."""
    most = max([*hours, 1])
    bars = "".join(
        f'<rect x="{4 * hour}" y="{18 - height:g}" width="3" height="{height:g}"/>'
        for hour, height in enumerate(round(16 * count / most, 1) for count in hours)
        if height
    )
    text = Markup.escape(label)
    return Markup(  # noqa: S704 (numbers, and a label that is escaped)
        f'<svg class="hours" viewBox="0 0 96 20" width="96" height="20" role="img" aria-label="{text}">'
        f'<title>{text}</title><path d="M0 19.5h96M24 19.5v-3M48 19.5v-3M72 19.5v-3"/>{bars}</svg>'
    )


def cadence_minutes(cadence: str) -> str:
    """Return a cadence with its interval: ``P2 · 1 时``."""
    seconds = RSS_CADENCE_INTERVALS.get(cadence, 0)
    return f"{cadence} · " + (f"{seconds // 60} 分" if seconds < _HOUR else f"{seconds // _HOUR} 时")
