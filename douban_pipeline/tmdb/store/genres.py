"""The names of genres, which titles and lists of genres say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from psycopg import Connection

from douban_pipeline.tmdb.values import id_of, items_of, text_of


def name(connection: Connection, said: Mapping[int, tuple[Any, datetime]], language: str, base: str) -> None:
    """Store names that titles said in a language; the base language takes precedence, then the newer name.

    Args:
        connection: A connection in a transaction.
        said: The names with their times, by id.
        language: Their language.
        base: The base language.
    """
    ids = sorted(said)
    connection.execute(
        """
        INSERT INTO tmdb.genres AS kept (tmdb_id, name, raw_language, last_seen_at)
        SELECT seen.tmdb_id, seen.name, %(language)s, seen.said_at
        FROM unnest(%(ids)s::int[], %(names)s::text[], %(times)s::timestamptz[]) AS seen (tmdb_id, name, said_at)
        ON CONFLICT (tmdb_id) DO UPDATE
        SET name = EXCLUDED.name, raw_language = EXCLUDED.raw_language, last_seen_at = EXCLUDED.last_seen_at
        WHERE (kept.raw_language = EXCLUDED.raw_language OR EXCLUDED.raw_language = %(base)s)
          AND kept.last_seen_at <= EXCLUDED.last_seen_at
          AND (kept.name IS DISTINCT FROM EXCLUDED.name OR kept.last_seen_at::date < EXCLUDED.last_seen_at::date)
        """,
        {
            "ids": ids,
            "names": [said[each][0] for each in ids],
            "times": [said[each][1] for each in ids],
            "language": language,
            "base": base,
        },
    )


def add(connection: Connection, body: object, language: str, fetched_at: datetime) -> int:
    """Store the unknown names of a list that TMDB sent at ``fetched_at``; return how many."""
    new = 0
    for item in items_of(body, "genres"):
        if (tmdb_id := id_of(item.get("id"))) is not None:
            new += connection.execute(
                "INSERT INTO tmdb.genres (tmdb_id, name, raw_language, last_seen_at) VALUES (%s, %s, %s, %s) "
                "ON CONFLICT DO NOTHING",
                (tmdb_id, text_of(item.get("name")), language, fetched_at),
            ).rowcount
    return new


def names(connection: Connection, ids: Iterable[int]) -> dict[int, str | None]:
    """Return names by id."""
    query = "SELECT tmdb_id, name FROM tmdb.genres WHERE tmdb_id = ANY(%s)"
    return dict(connection.execute(query, (sorted(ids),)).fetchall())
