"""Cleaning of our own tables: deletes closed tasks and ended alerts, and measures the archive of answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Engine, delete, func, select

from douban_pipeline.core.database import reading, run_statement
from douban_pipeline.douban.store.tables import OwnTables

_BATCH = 500


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """How many tasks and alerts were deleted."""

    tasks: int
    alerts: int


def delete_closed(engine: Engine, tables: OwnTables, before: datetime, *, dry_run: bool = False) -> DeletedRows:
    """Delete the tasks that were closed and the alerts that ended ``before``; with ``dry_run`` they are counted."""
    task, alert = tables.task, tables.alert
    act = _count_rows if dry_run else _delete_rows
    return DeletedRows(
        tasks=act(engine, task.c.task_id, (task.c.open_key.is_(None), task.c.finished_at < before)),
        alerts=act(engine, alert.c.alert_id, (alert.c.open_key.is_(None), alert.c.ended_at < before)),
    )


def _count_rows(engine: Engine, key: Column[Any], conditions: Sequence[ColumnElement[bool]]) -> int:
    with reading(engine) as connection:
        return int(connection.execute(select(func.count(key)).where(*conditions)).scalar_one())


def _delete_rows(engine: Engine, key: Column[Any], conditions: Sequence[ColumnElement[bool]]) -> int:
    """Delete the rows that fulfil ``conditions``, some at a time by their ``key``; return how many there were."""
    deleted = 0
    while True:
        with reading(engine) as connection:
            old = list(connection.execute(select(key).where(*conditions).limit(_BATCH)).scalars())
        if not old:
            return deleted
        run_statement(engine, delete(key.table).where(key.in_(old)))
        deleted += len(old)


@dataclass(frozen=True, slots=True)
class ArchiveShare:
    """Archived answers of one source and class of HTTP status (2 for 200 to 299)."""

    source: str
    status_class: int
    answers: int
    bytes: int
    oldest: datetime
    newest: datetime


def archive_figures(connection: Connection, tables: OwnTables) -> list[ArchiveShare]:
    """Return the archived answers by source and class of status.

    Reads the whole table without decompressing anything; too slow to run every few minutes.
    """
    table = tables.snapshot
    status_class = (table.c.status // 100).label("status_class")
    query = (
        select(
            table.c.source,
            status_class,
            func.count(),
            func.sum(func.length(table.c.body)),
            func.min(table.c.fetched_at),
            func.max(table.c.seen_at),
        )
        .group_by(table.c.source, status_class)
        .order_by(table.c.source, status_class)
    )
    return [
        ArchiveShare(source, int(number), answers, int(size), oldest, newest)
        for source, number, answers, size, oldest, newest in connection.execute(query)
    ]
