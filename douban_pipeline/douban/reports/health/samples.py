"""Stored measurements, for warnings that compare with the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, select

from douban_pipeline.core.database import insert_missing, reading, run_transaction
from douban_pipeline.douban.reports.health.metrics import Health, TaskOutcomes, total
from douban_pipeline.douban.services import Services

KEPT = timedelta(days=15)


@dataclass(frozen=True, slots=True)
class HealthSample:
    """The stored part of a measurement.

    Attributes:
        at: When it was made (UTC).
        due: Number of videos that were due.
        open_tasks: Number of tasks that were open.
        in_review: Number of videos that waited for a person.
        last_hour: Outcomes of the tasks of the hour before.
        gates: The state of every source's gate, by name.
        spent_usd: Cost of that day's intros so far.
    """

    at: datetime
    due: int
    open_tasks: int
    in_review: int
    last_hour: TaskOutcomes
    gates: Mapping[str, str]
    spent_usd: float

    def figures(self) -> dict[str, Any]:
        """Return the values that are stored beside the time."""
        figures = asdict(self)
        del figures["at"]
        return figures

    @classmethod
    def of(cls, health: Health) -> HealthSample:
        """Return the stored part of ``health``."""
        return cls(
            at=health.at,
            due=health.due,
            open_tasks=sum(item.count for item in health.open_tasks),
            in_review=health.in_review,
            last_hour=total(health.last_hour),
            gates={gate.source: gate.state.value for gate in health.gates},
            spent_usd=health.spending.usd,
        )


def keep(services: Services, sample: HealthSample) -> None:
    """Store ``sample``, and delete samples older than `KEPT`."""
    table = services.tables.health
    row = {"sampled_at": sample.at, "figures": sample.figures()}

    def store(connection: Connection) -> None:
        insert_missing(connection, table, [row], key="sampled_at")
        connection.execute(delete(table).where(table.c.sampled_at < sample.at - KEPT))

    run_transaction(services.engine, store)


def newest_before(services: Services, end: datetime, *, within: timedelta) -> HealthSample | None:
    """Return the newest sample before ``end`` that is at most ``within`` older than ``end``; None if there is none."""
    table = services.tables.health
    query = (
        select(table)
        .where(table.c.sampled_at >= end - within, table.c.sampled_at < end)
        .order_by(table.c.sampled_at.desc())
        .limit(1)
    )
    with reading(services.engine) as connection:
        row = connection.execute(query).first()
    return _sample(row.sampled_at, row.figures) if row else None


def _sample(at: datetime, figures: Mapping[str, Any]) -> HealthSample:
    return HealthSample(at=at, **{**figures, "last_hour": TaskOutcomes(**figures["last_hour"])})
