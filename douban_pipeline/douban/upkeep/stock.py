"""What the archive of answers holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from douban_pipeline.douban.store.tables import OwnTables


@dataclass(frozen=True, slots=True)
class ArchiveShare:
    """What the archive holds of one source and class of HTTP status (2 for 200 to 299)."""

    source: str
    status_class: int
    answers: int
    bytes: int
    oldest: datetime
    newest: datetime


def archive_figures(connection: Connection, tables: OwnTables) -> list[ArchiveShare]:
    """Return what the archive holds, by source and class of status.

    Reads the whole table once, without unpacking anything: not for every few minutes.
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
