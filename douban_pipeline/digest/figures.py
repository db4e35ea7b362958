"""Numbers of slots and days, and plots of them by day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from html import escape

from douban_pipeline.core.database import reading
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import SlotKey
from douban_pipeline.digest.store import slots
from douban_pipeline.digest.types import SlotRow, SlotStatus

_DAYS = 30
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 600, 120, 34, 18
_PLOTS = {
    "articles_new": "新文章",
    "analysed": "分析",
    "failed": "分析失败",
    "findings": "机会",
    "best_score": "最高分",
}


def slot_numbers(services: DigestServices, key: SlotKey) -> dict[str, int]:
    """Return the numbers of a slot, for metadata."""
    with reading(services.engine) as connection:
        row = slots.find(connection, key.run_date, key.slot)
    return {} if row is None else _numbers([row])


def day_numbers(services: DigestServices, day: date) -> dict[str, int]:
    """Return the numbers of a day so far, for metadata: slots done, articles, analyses, failures, findings, best."""
    with reading(services.engine) as connection:
        rows = slots.of_day(connection, day)
    done = sum(row.status is SlotStatus.SUCCESS for row in rows)
    return {"slots_done": done, **{f"day_{name}": value for name, value in _numbers(rows).items()}}


def by_day(rows: Sequence[SlotRow]) -> dict[date, dict[str, int]]:
    """Return the numbers of each day that has slots."""
    days: dict[date, list[SlotRow]] = {}
    for row in rows:
        days.setdefault(row.run_date, []).append(row)
    return {day: _numbers(own) for day, own in sorted(days.items())}


def plots(services: DigestServices, day: date) -> dict[str, str]:
    """Return SVG plots of the month up to a day, by what they show; none without numbers."""
    with reading(services.engine) as connection:
        rows = slots.between(connection, day - timedelta(days=_DAYS - 1), day)
    numbers = by_day(rows)
    if not numbers:
        return {}
    days = [day - timedelta(days=back) for back in range(_DAYS - 1, -1, -1)]
    return {
        title: _bars([numbers.get(each, {}).get(name, 0) for each in days], days, title)
        for name, title in _PLOTS.items()
    }


def _numbers(rows: Sequence[SlotRow]) -> dict[str, int]:
    totals = {name: sum(int(row.counters.get(name) or 0) for row in rows) for name in (*_PLOTS, "throttled", "calls")}
    scores = [row.counters["best_score"] for row in rows if row.counters.get("best_score") is not None]
    return {**totals, "best_score": max(scores, default=0)}


def _bars(values: Sequence[int], days: Sequence[date], title: str) -> str:
    top = max([*values, 1])
    step = (_WIDTH - _LEFT) / len(values)
    floor = _HEIGHT - _BOTTOM
    bars = "".join(
        f'<rect x="{_LEFT + number * step:.1f}" y="{floor - value / top * (floor - 16):.1f}" width="{step - 2:.1f}" '
        f'height="{value / top * (floor - 16):.1f}" fill="#4a7ebb"><title>{days[number]}: {value}</title></rect>'
        for number, value in enumerate(values)
    )
    text = 'font-family="sans-serif" font-size="11" fill="#888"'
    labels: Mapping[float, date] = {_LEFT: days[0], _WIDTH - 62: days[-1]}
    dates = "".join(f'<text x="{x:.0f}" y="{_HEIGHT - 4}" {text}>{each}</text>' for x, each in labels.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<text x="{_LEFT}" y="11" {text}>{escape(title)}</text><text x="0" y="24" {text}>{top}</text>'
        f'<line x1="{_LEFT}" y1="{floor}" x2="{_WIDTH}" y2="{floor}" stroke="#888"/>{bars}{dates}</svg>'
    )
