"""What is stored of names and entities, by index, for answers that people wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from psycopg import Connection, sql

from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityKey

_MOST = 20
_NAMED = """
    SELECT tmdb_id, {name}, {original}, {more}, popularity FROM {table}
    WHERE gone_at IS NULL AND raw_language = %(language)s
      AND (lower({name}) = lower(%(name)s) OR lower({original}) = lower(%(name)s))
    ORDER BY popularity DESC NULLS LAST, tmdb_id LIMIT %(most)s
"""


def named(connection: Connection, name: str, language: str) -> Iterator[Mapping[str, Any]]:
    """Yield the full entities and stubs with a name in a language, or an original name, as TMDB's searches list them:
    of each type the most popular ones."""
    for entity, table in TABLES.items():
        shown, more = table.shown
        query = sql.SQL(_NAMED).format(
            table=sql.Identifier("tmdb", table.name),
            name=sql.Identifier(shown),
            original=sql.Identifier(f"original_{shown}"),
            more=sql.Identifier(more),
        )
        given = {"name": name.strip().replace("\x00", ""), "language": language, "most": _MOST}
        for tmdb_id, called, original, told, popularity in connection.execute(query, given):
            yield {
                "id": tmdb_id,
                "media_type": entity.value,
                shown: called,
                f"original_{shown}": original,
                more: told.isoformat() if isinstance(told, date) else told,
                "popularity": popularity,
            }


def fresh(
    connection: Connection, key: EntityKey, language: str, since: datetime
) -> tuple[Mapping[str, Any], datetime] | None:
    """Return the answer about an entity in a language, and its time, if it was fetched since a given time."""
    query = sql.SQL(
        "SELECT raw, fetched_at FROM {} WHERE tmdb_id = %(tmdb_id)s AND data_state = 'full' AND gone_at IS NULL "
        "AND raw_language = %(language)s AND fetched_at >= %(since)s"
    ).format(sql.Identifier("tmdb", TABLES[key.type].name))
    given = {"tmdb_id": key.tmdb_id, "language": language, "since": since}
    return connection.execute(query, given).fetchone()
