"""Numbers of slots and days, and plots of them by day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.plots import day_bars
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import SlotKey
from douban_pipeline.digest.store import slots
from douban_pipeline.digest.types import SlotRow, SlotStatus

_DAYS = 30
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
    """Return SVG plots of the month up to a day, by title; empty without numbers."""
    with reading(services.engine) as connection:
        rows = slots.between(connection, day - timedelta(days=_DAYS - 1), day)
    numbers = by_day(rows)
    if not numbers:
        return {}
    days = [day - timedelta(days=back) for back in range(_DAYS - 1, -1, -1)]
    return {
        title: day_bars([numbers.get(each, {}).get(name, 0) for each in days], days, title)
        for name, title in _PLOTS.items()
    }


def _numbers(rows: Sequence[SlotRow]) -> dict[str, int]:
    totals = {name: sum(int(row.counters.get(name) or 0) for row in rows) for name in (*_PLOTS, "throttled", "calls")}
    scores = [row.counters["best_score"] for row in rows if row.counters.get("best_score") is not None]
    return {**totals, "best_score": max(scores, default=0)}
