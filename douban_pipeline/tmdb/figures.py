"""Plots of the TMDB system by day: changes waiting for the graph, changes written, and failures."""

from __future__ import annotations

from datetime import date, timedelta

from douban_pipeline.core.ui.plots import day_bars
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.store import due, outbox

_DAYS = 30
OUTBOX = {"outbox_waiting": "出站表积压", "outbox_dead": "搁置的变更", "written": "写入图的实体"}
ENTITIES = {
    "fetched": "取得的实体",
    "changed": "有变化的实体",
    "changed_in_graph": "图里有变化的实体",
    "persist_failed": "存储失败",
}
REQUESTS = {"requests": "提问", "hit_rate": "命中率 %", "ms_p95": "95 % 的耗时（毫秒）", "persist_failed": "存储失败"}


def note_outbox(services: TmdbServices, written: int) -> dict[str, float]:
    """Store the outbox's size today, and how much was written to the graph; return it."""
    counts = services.store.run(outbox.counts)
    gauges: dict[str, float] = {"outbox_waiting": counts.waiting, "outbox_dead": counts.dead}
    today = services.now().date()
    services.store.run(lambda connection: due.note_numbers(connection, today, gauges, add=False))
    services.store.run(lambda connection: due.note_numbers(connection, today, {"written": written}, add=True))
    return {**gauges, "written": written}


def note_requests(services: TmdbServices, day: date) -> dict[str, float]:
    """Store the statistics of a day's questions, which are kept longer than the log; return them."""
    numbers = services.store.run(lambda connection: due.request_numbers(connection, day))
    if numbers["requests"]:
        numbers["hit_rate"] = round(100 * numbers["hits"] / numbers["requests"], 1)
    services.store.run(lambda connection: due.note_numbers(connection, day, numbers, add=False))
    return numbers


def plots(services: TmdbServices, names: dict[str, str], day: date) -> dict[str, str]:
    """Return an SVG of the month up to a day for each of ``names`` with numbers, by title."""
    first = day - timedelta(days=_DAYS - 1)
    numbers = services.store.run(lambda connection: due.numbers_between(connection, first, day))
    days = [first + timedelta(days=after) for after in range(_DAYS)]
    return {
        title: day_bars([numbers.get(each, {}).get(name, 0) for each in days], days, title)
        for name, title in names.items()
        if any(name in found for found in numbers.values())
    }
