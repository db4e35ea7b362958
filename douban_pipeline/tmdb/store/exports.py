"""Stubs from TMDB's daily id list: a million lines, loaded by COPY into a temporary table with one merge per chunk."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from psycopg import Connection, sql

from douban_pipeline.tmdb.store import pinyin
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityType
from douban_pipeline.tmdb.values import id_of, number_of, text_of

PIECE = 50_000
"""Lines per transaction."""
_NAMES = {EntityType.MOVIE: "original_title", EntityType.PERSON: "name", EntityType.TV: "original_name"}
"""Names of the columns in an export."""

SAID_AGAIN = timedelta(days=30)
"""Age after which an export is stored again although it says the same, so that it does not expire."""
_NOTHING = "\\N"
"""NULL in COPY's format."""


@dataclass(slots=True)
class IdListReport:
    """Number of an export's lines by result."""

    new: int = 0
    known: int = 0
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class _IdListPiece:
    """A chunk of an export: rows by id in COPY's format, and the number of lines with and without one."""

    rows: dict[int, str]
    readable: int
    unreadable: int


def store_export(store: PostgresTmdbStore, entity: EntityType, lines: Iterable[bytes]) -> IdListReport:
    """Insert stubs for the unknown entities of an export, and update the popularity of stubs.

    Raises:
        psycopg.Error: PostgreSQL refuses it; earlier chunks are stored.
    """
    report = IdListReport()
    reader = iter(lines)

    def read() -> _IdListPiece | None:
        piece = list(islice(reader, PIECE))
        return _read(piece, _NAMES[entity]) if piece else None

    with ThreadPoolExecutor(1) as ahead:  # one chunk is parsed while PostgreSQL stores the previous one
        waiting = ahead.submit(read)
        while (piece := waiting.result()) is not None:
            waiting = ahead.submit(read)
            new = store.run(partial(_merge, entity=entity, rows=piece.rows))
            report.new += new
            report.known += piece.readable - new
            report.unreadable += piece.unreadable
    return report


def _read(lines: list[bytes], name: str) -> _IdListPiece:
    rows: dict[int, str] = {}
    unreadable = 0
    for line in lines:
        try:
            item: Any = json.loads(line)
            tmdb_id = id_of(item["id"])
        except (ValueError, TypeError, KeyError):
            tmdb_id = None
        if tmdb_id is None:
            unreadable += 1
            continue
        popularity = number_of(item.get("popularity"))
        shown = _NOTHING if popularity is None else repr(popularity)
        rows[tmdb_id] = f"{tmdb_id}\t{_copied(text_of(item.get(name)))}\t{shown}\n"
    return _IdListPiece(rows, len(lines) - unreadable, unreadable)


def _copied(text: str | None) -> str:
    if text is None:
        return _NOTHING
    if "\\" not in text and text.isprintable():
        return text
    for plain, escaped in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(plain, escaped)
    return text


def _merge(connection: Connection, entity: EntityType, rows: dict[int, str]) -> int:
    connection.execute("DROP TABLE IF EXISTS pg_temp.listed")
    connection.execute("CREATE TEMPORARY TABLE listed (tmdb_id int, name text, popularity float8) ON COMMIT DROP")
    with connection.cursor().copy("COPY pg_temp.listed (tmdb_id, name, popularity) FROM STDIN") as copy:
        copy.write("".join(rows.values()))
    connection.execute("ANALYZE pg_temp.listed")
    listed = {"first": min(rows, default=0), "last": max(rows, default=0)}  # a list is sorted by id
    table, name = sql.Identifier("tmdb", TABLES[entity].name), sql.Identifier(_NAMES[entity])
    shown, more = map(sql.Identifier, TABLES[entity].shown)
    # What other lists said beside the popularity is of another time.
    others = [each for each in TABLES[entity].listed if each not in ("popularity", _NAMES[entity])]
    emptied = sql.SQL(", ").join(sql.SQL("{} = NULL").format(sql.Identifier(each)) for each in others)
    if _NAMES[entity] in TABLES[entity].listed:
        emptied += sql.SQL(", {} = listed.name").format(name)
    confirmed = sql.SQL("kept.{1} IS NULL AND COALESCE(kept.{0}, listed.name) = listed.name").format(shown, more)
    connection.execute(
        sql.SQL(
            "UPDATE {table} AS kept SET {emptied}, popularity = listed.popularity, listed_at = now(), "
            "{shown} = COALESCE(kept.{shown}, listed.name), "
            "fetched_at = CASE WHEN {confirmed} THEN now() ELSE kept.fetched_at END "
            "FROM pg_temp.listed WHERE kept.tmdb_id = listed.tmdb_id "
            "AND kept.tmdb_id BETWEEN %(first)s AND %(last)s AND kept.data_state = 'stub' "
            "AND (kept.popularity IS DISTINCT FROM listed.popularity "
            "OR COALESCE(kept.listed_at, kept.fetched_at) < now() - %(again)s)"
        ).format(table=table, shown=shown, emptied=emptied, confirmed=confirmed),
        listed | {"again": SAID_AGAIN},
    )
    pinyin.record(connection, dict.fromkeys((row.split("\t")[1] for row in rows.values()), datetime.now(UTC)))
    columns = [name] if TABLES[entity].shown[0] == _NAMES[entity] else [shown, name]
    # Without ON CONFLICT, which costs a third more: the transaction is repeated if a concurrent one was faster.
    return connection.execute(
        sql.SQL(
            "INSERT INTO {table} (tmdb_id, {columns}, popularity, data_state, listed_at) "
            "SELECT tmdb_id, {names}, popularity, 'stub', now() FROM pg_temp.listed "
            "WHERE NOT EXISTS (SELECT FROM {table} AS kept WHERE kept.tmdb_id = listed.tmdb_id "
            "AND kept.tmdb_id BETWEEN %(first)s AND %(last)s) ORDER BY tmdb_id"
        ).format(
            table=table,
            columns=sql.SQL(", ").join(columns),
            names=sql.SQL(", ").join([sql.Identifier("name")] * len(columns)),
        ),
        listed,
    ).rowcount
