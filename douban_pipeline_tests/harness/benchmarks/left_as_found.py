"""Working on the library and leaving it as it was found."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, MetaData, Table, delete, func, insert, select

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.services import Services

Rows = list[dict[str, Any]]


@contextmanager
def left_as_found(services: Services, vod_ids: Collection[int]) -> Iterator[None]:
    """Put back, after the block, all that work on ``vod_ids`` changes: their CMS rows and states, and our other tables.

    What is added to a table by then that only grows is told by its ids; small tables are put back whole.
    """
    tables = services.tables
    lately = tables.person.c.seen_at >= services.clock.now() - timedelta(seconds=1)  # times are kept in whole seconds
    growing = {
        table: next(iter(table.primary_key.columns)) for table in tables.metadata.tables.values() if _counts(table)
    }
    small = [tables.gate, tables.brake, tables.health, tables.subject]
    cms = Table(services.cms.vod.name, MetaData(), autoload_with=services.engine)
    of_videos = [(cms, cms.c.vod_id), (tables.video, tables.video.c.vod_id)]
    with reading(services.engine) as connection:
        last = {table: connection.execute(select(func.max(key))).scalar() or 0 for table, key in growing.items()}
        whole = {table: _rows(connection, table) for table in small}
        people = _rows(connection, tables.person, lately)
        parts = {
            table: [row for some in chunks(sorted(vod_ids)) for row in _rows(connection, table, key.in_(some))]
            for table, key in of_videos
        }
    try:
        yield
    finally:
        with services.engine.begin() as connection:
            for table, key in growing.items():
                connection.execute(delete(table).where(key > last[table]))
            for table, rows in whole.items():
                connection.execute(delete(table))
                _insert(connection, table, rows)
            for table, key in of_videos:
                for some in chunks(sorted(vod_ids)):
                    connection.execute(delete(table).where(key.in_(some)))
                _insert(connection, table, parts[table])
            mark, intro = tables.intro_mark, tables.intro
            connection.execute(delete(tables.person).where(lately))
            _insert(connection, tables.person, people)
            connection.execute(delete(mark).where(mark.c.intro_id > last[intro]))


def _counts(table: Table) -> bool:
    """Return whether ids of the table are given in order, by itself."""
    keys = list(table.primary_key.columns)
    return len(keys) == 1 and keys[0].autoincrement is True


def _rows(connection: Connection, table: Table, *conditions: Any) -> Rows:
    return [dict(row) for row in connection.execute(select(table).where(*conditions)).mappings()]


def _insert(connection: Connection, table: Table, rows: Rows) -> None:
    for start in range(0, len(rows), 500):
        connection.execute(insert(table), rows[start : start + 500])
