"""What is stored of names and entities, by index, and which people credit titles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from psycopg import Connection, sql
from psycopg.sql import SQL
from psycopg.types.json import Jsonb

from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.store.tables import CREDITED
from douban_pipeline.tmdb.types import EntityKey, EntityType

_MOST = 20
_NAMED = """
    (SELECT {entity}, tmdb_id, {name}, {original}, {more}::text, popularity FROM {table}
    WHERE gone_at IS NULL AND raw_language = %(language)s
      AND (lower({name}) = lower(%(name)s) OR lower({original}) = lower(%(name)s))
    ORDER BY popularity DESC NULLS LAST, tmdb_id LIMIT %(most)s)
"""
_NAMED_IN_ANY = (
    SQL(" UNION ALL ")
    .join(
        SQL(_NAMED).format(
            entity=sql.Literal(entity.value),
            table=sql.Identifier("tmdb", table.name),
            name=sql.Identifier(table.shown[0]),
            original=sql.Identifier(f"original_{table.shown[0]}"),
            more=sql.Identifier(table.shown[1]),
        )
        for entity, table in TABLES.items()
    )
    .as_string()
)
"""One statement for all types: a round trip takes longer than the search."""
_SHORTEST, _LONGEST_TEXT = 3, 60
_WITHIN = (
    SQL("SELECT name FROM ({}) AS found ORDER BY length(name) DESC, popularity DESC NULLS LAST LIMIT 1")
    .format(
        SQL(" UNION ALL ").join(
            SQL(
                "(SELECT {name} AS name, popularity FROM {table} WHERE gone_at IS NULL AND raw_language = %(language)s "
                "AND lower({name}) = ANY(%(parts)s))"
            ).format(name=sql.Identifier(table.shown[0]), table=sql.Identifier("tmdb", table.name))
            for table in TABLES.values()
        )
    )
    .as_string()
)
_FRESH = {
    entity: SQL(
        "SELECT raw, fetched_at FROM {} WHERE tmdb_id = %(tmdb_id)s AND data_state = 'full' AND gone_at IS NULL "
        "AND raw_language = %(language)s AND fetched_at >= %(since)s"
    )
    .format(sql.Identifier("tmdb", table.name))
    .as_string()
    for entity, table in TABLES.items()
}


def named(connection: Connection, name: str, language: str) -> Iterator[Mapping[str, Any]]:
    """Yield the full entities and stubs with a name in a language, or an original name, as TMDB's searches list them:
    of each type the most popular ones."""
    given = {"name": name.strip().replace("\x00", ""), "language": language, "most": _MOST}
    for entity, tmdb_id, called, original, told, popularity in connection.execute(_NAMED_IN_ANY, given):
        shown, more = TABLES[EntityType(entity)].shown
        yield {
            "id": tmdb_id,
            "media_type": entity,
            shown: called,
            f"original_{shown}": original,
            more: told,
            "popularity": popularity,
        }


def longest_within(connection: Connection, text: str, language: str) -> str | None:
    """Return the longest name of an entity in a language that stands in a text: of three characters or more, and whole
    words of Latin ones; None for none."""
    text = text.strip().replace("\x00", "").lower()[:_LONGEST_TEXT]
    parts = {
        text[first:last]
        for first in range(len(text))
        for last in range(first + _SHORTEST, len(text) + 1)
        if _is_apart(text, first) and _is_apart(text, last) and not text[first:last].isdigit()
    }
    row = connection.execute(_WITHIN, {"parts": sorted(parts), "language": language}).fetchone()
    return None if row is None else row[0]


def _is_apart(text: str, place: int) -> bool:
    around = text[max(0, place - 1) : place + 1]
    return len(around) < 2 or not (around.isascii() and around.isalnum())


def fresh(
    connection: Connection, key: EntityKey, language: str, since: datetime
) -> tuple[Mapping[str, Any], datetime] | None:
    """Return the answer about an entity in a language, and its time, if it was fetched since a given time."""
    given = {"tmdb_id": key.tmdb_id, "language": language, "since": since}
    return connection.execute(_FRESH[key.type], given).fetchone()


CREDITING = SQL(
    """
    SELECT tmdb_id FROM tmdb.people
    WHERE data_state = 'full' AND gone_at IS NULL AND {credited} @> ANY(%(ids)s::jsonb[]) AND (
        jsonb_path_exists(raw, '$.combined_credits.*[*] ? (
            (@.media_type == "movie" && @.id == $movies[*]) || (@.media_type == "tv" && @.id == $shows[*])
        )', %(titles)s, true)
        OR jsonb_path_exists(raw, '$.movie_credits.*[*] ? (@.id == $movies[*])', %(titles)s, true)
        OR jsonb_path_exists(raw, '$.tv_credits.*[*] ? (@.id == $shows[*])', %(titles)s, true)
    ) ORDER BY tmdb_id
    """
).format(credited=SQL(CREDITED))
"""Full people whose answers name titles: the index finds who lists such an id, the rest says of which type it is."""


def people_crediting(connection: Connection, titles: Mapping[EntityType, Iterable[int]]) -> list[int]:
    """Return full people whose answers name one of these titles, by index."""
    movies, shows = (sorted(titles.get(entity, ())) for entity in (EntityType.MOVIE, EntityType.TV))
    given = {
        "ids": [f"[{tmdb_id}]" for tmdb_id in sorted({*movies, *shows})],
        "titles": Jsonb({"movies": movies, "shows": shows}),
    }
    return [tmdb_id for (tmdb_id,) in connection.execute(CREDITING, given)]
