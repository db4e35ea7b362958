"""Numbers of slots and days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from douban_pipeline.core.database import reading
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import SlotKey
from douban_pipeline.digest.store import slots
from douban_pipeline.digest.types import SlotRow, SlotStatus

_COUNTED = ("articles_new", "analysed", "failed", "findings", "best_score", "throttled", "calls")


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


def _numbers(rows: Sequence[SlotRow]) -> dict[str, int]:
    totals = {name: sum(int(row.counters.get(name) or 0) for row in rows) for name in _COUNTED}
    scores = [row.counters["best_score"] for row in rows if row.counters.get("best_score") is not None]
    return {**totals, "best_score": max(scores, default=0)}
