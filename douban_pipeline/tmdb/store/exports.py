"""Stubs from TMDB's daily list of ids: a million lines, so by COPY into a temporary table and one merge a piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from psycopg import Connection, sql

from douban_pipeline.tmdb.cleaning import id_of, number_of, text_of
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityType

PIECE = 50_000
"""Lines of a transaction."""
_NAMES = {EntityType.MOVIE: "original_title", EntityType.PERSON: "name", EntityType.TV: "original_name"}
"""What an export calls an entity, by its column."""


@dataclass(slots=True)
class ExportReport:
    """What became of an export's lines."""

    new: int = 0
    known: int = 0
    unreadable: int = 0


def store_export(store: PostgresTmdbStore, entity: EntityType, lines: Iterable[bytes]) -> ExportReport:
    """Insert stubs of the entities that an export lists and that are not known, and note how popular stubs are.

    Raises:
        psycopg.Error: PostgreSQL does not take it; the pieces before are stored.
    """
    report = ExportReport()
    reader = iter(lines)
    while piece := list(islice(reader, PIECE)):
        rows = list(_rows(entity, piece))
        report.unreadable += len(piece) - len(rows)
        unique = list({row[0]: row for row in rows}.values())
        new = store.run(lambda connection, unique=unique: _merge(connection, entity, unique))  # type: ignore[misc]
        report.new += new
        report.known += len(rows) - new
    return report


def _rows(entity: EntityType, lines: Iterable[bytes]) -> Iterator[tuple[int, str | None, float | None]]:
    name = _NAMES[entity]
    for line in lines:
        try:
            item: Any = json.loads(line)
            tmdb_id = id_of(item["id"])
        except (ValueError, TypeError, KeyError):
            continue
        if tmdb_id is not None:
            yield tmdb_id, text_of(item.get(name)), number_of(item.get("popularity"))


def _merge(connection: Connection, entity: EntityType, rows: Iterable[tuple[int, str | None, float | None]]) -> int:
    connection.execute("DROP TABLE IF EXISTS pg_temp.listed")
    connection.execute("CREATE TEMPORARY TABLE listed (tmdb_id int, name text, popularity float8) ON COMMIT DROP")
    with connection.cursor().copy("COPY pg_temp.listed (tmdb_id, name, popularity) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    table, name = sql.Identifier("tmdb", TABLES[entity].name), sql.Identifier(_NAMES[entity])
    shown = sql.Identifier(TABLES[entity].shown[0])
    connection.execute(
        sql.SQL(
            "UPDATE {table} AS kept SET popularity = listed.popularity FROM pg_temp.listed "
            "WHERE kept.tmdb_id = listed.tmdb_id AND kept.data_state = 'stub' "
            "AND kept.popularity IS DISTINCT FROM listed.popularity"
        ).format(table=table)
    )
    columns = [name] if TABLES[entity].shown[0] == _NAMES[entity] else [shown, name]
    return connection.execute(
        sql.SQL(
            "INSERT INTO {table} (tmdb_id, {columns}, popularity, data_state) "
            "SELECT tmdb_id, {names}, popularity, 'stub' FROM pg_temp.listed ORDER BY tmdb_id ON CONFLICT DO NOTHING"
        ).format(
            table=table,
            columns=sql.SQL(", ").join(columns),
            names=sql.SQL(", ").join([sql.Identifier("name")] * len(columns)),
        )
    ).rowcount
