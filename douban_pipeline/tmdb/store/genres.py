"""The names of genres, which titles and lists of genres say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from psycopg import Connection, sql

from douban_pipeline.tmdb.store.statements import outranks
from douban_pipeline.tmdb.values import id_of, items_of, text_of


def name(connection: Connection, said: Mapping[int, tuple[Any, datetime]], language: str, base: str) -> int:
    """Store names that were said in a language; the base language takes precedence, then the newer name.

    Args:
        said: The names with their times, by id.

    Returns:
        How many of the genres are new.
    """
    ids = sorted(said)
    rows = connection.execute(
        sql.SQL(
            """
            INSERT INTO tmdb.genres AS kept (tmdb_id, name, raw_language, last_seen_at)
            SELECT seen.tmdb_id, seen.name, %(language)s, seen.said_at
            FROM unnest(%(ids)s::int[], %(names)s::text[], %(times)s::timestamptz[]) AS seen (tmdb_id, name, said_at)
            ON CONFLICT (tmdb_id) DO UPDATE
            SET name = EXCLUDED.name, raw_language = EXCLUDED.raw_language, last_seen_at = EXCLUDED.last_seen_at
            WHERE {outranks} AND (kept.name, kept.raw_language, kept.last_seen_at)
              IS DISTINCT FROM (EXCLUDED.name, EXCLUDED.raw_language, EXCLUDED.last_seen_at)
            RETURNING xmax = 0
            """
        ).format(outranks=outranks("last_seen_at")),
        {
            "ids": ids,
            "names": [said[each][0] for each in ids],
            "times": [said[each][1] for each in ids],
            "language": language,
            "base": base,
        },
    )
    return sum(is_new for (is_new,) in rows)


def add(connection: Connection, body: object, language: str, base: str, fetched_at: datetime) -> int:
    """Store the names of a list that TMDB sent at ``fetched_at``; return how many genres are new."""
    listed = ((id_of(item.get("id")), text_of(item.get("name"))) for item in items_of(body, "genres"))
    return name(connection, {tmdb_id: (text, fetched_at) for tmdb_id, text in listed if tmdb_id}, language, base)


def names(connection: Connection, ids: Iterable[int]) -> dict[int, str | None]:
    """Return names by id."""
    query = "SELECT tmdb_id, name FROM tmdb.genres WHERE tmdb_id = ANY(%s)"
    return dict(connection.execute(query, (sorted(ids),)).fetchall())
