"""Entities by how one of their names begins, or its pinyin, and the films of a series; all by index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from psycopg import Connection, sql
from psycopg.sql import SQL, Identifier

from douban_pipeline.tmdb.store import pinyin
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.store.tables import SERIES
from douban_pipeline.tmdb.types import EntityKey, EntityType

_MATCHES = 500
"""Most names that one beginning is looked up in: who types one letter gets some of what begins so."""

_FOUND = """
    WITH named AS (
        (SELECT tmdb_id FROM {table} WHERE lower({name}) LIKE %(prefix)s LIMIT %(matches)s)
        UNION (SELECT tmdb_id FROM {table} WHERE lower({original}) LIKE %(prefix)s LIMIT %(matches)s)
        UNION ({others} LIMIT %(matches)s)
        UNION (SELECT tmdb_id FROM {table} WHERE lower({name}) = ANY(%(sounding)s) LIMIT %(matches)s)
    )
    SELECT tmdb_id, {name}, {original}, {more}, raw->>{picture}
    FROM {table} JOIN named USING (tmdb_id) WHERE gone_at IS NULL
    ORDER BY COALESCE(lower({name}) = %(whole)s OR lower({original}) = %(whole)s, false) DESC,
             popularity DESC NULLS LAST, tmdb_id
    LIMIT %(most)s
"""
_TRANSLATED = "SELECT {owner} FROM {translations} WHERE lower({name}) LIKE %(prefix)s"
_KNOWN_AS = "SELECT tmdb_id FROM {table} WHERE data_state = 'full' AND raw->'also_known_as' ? %(given)s"


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity as lists show it.

    Attributes:
        name: Its name in the base language, or its original one; empty if neither is stored.
        original: Its original name where that is another one.
        more: Its year, or what a person is known for.
    """

    key: EntityKey
    name: str
    original: str = ""
    more: str = ""
    picture: str = ""


def by_beginning(connection: Connection, words: str, most: int) -> list[NamedEntity]:
    """Return entities of which a name, an original or a translated one begins with ``words``, whose other name is
    exactly that, or the pinyin of whose name begins so; of each type the most popular ones, whole names first."""
    given = " ".join(words.replace("\x00", "").split())
    if not given:
        return []
    lowered = given.lower()
    escaped = lowered.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    values = {"given": given, "whole": lowered, "prefix": f"{escaped}%", "most": most, "matches": _MATCHES}
    values["sounding"] = [name.lower() for name in pinyin.sounding(connection, given, _MATCHES)]
    found = []
    for entity, table in TABLES.items():
        shown, more = table.shown
        names = {
            "table": Identifier("tmdb", table.name),
            "name": Identifier(shown),
            "original": Identifier(f"original_{shown}"),
            "more": Identifier(more),
            "picture": sql.Literal("profile_path" if entity is EntityType.PERSON else "poster_path"),
            "owner": Identifier(table.owner),
            "translations": Identifier("tmdb", table.translations),
        }
        others = SQL(_KNOWN_AS if entity is EntityType.PERSON else _TRANSLATED).format(**names)
        rows = connection.execute(SQL(_FOUND).format(**names, others=others), values)
        found += [_named(EntityKey(entity, row[0]), *row[1:]) for row in rows]
    return found


def _named(key: EntityKey, name: str | None, original: str | None, more: object, picture: str | None) -> NamedEntity:
    shown = name or original or ""
    told = str(more.year) if isinstance(more, date) else str(more or "")
    return NamedEntity(key, shown, original if original and original != shown else "", told, picture or "")


def films_of_series(connection: Connection, series: int) -> Sequence[NamedEntity]:
    """Return the stored films of a series, by their day."""
    query = SQL(
        "SELECT tmdb_id, title, original_title, release_date, raw->>'poster_path' FROM tmdb.movies "
        "WHERE {series} = %s AND gone_at IS NULL ORDER BY release_date NULLS LAST, tmdb_id LIMIT 60"
    ).format(series=SQL(SERIES))
    rows = connection.execute(query, (str(series),))
    return [_named(EntityKey(EntityType.MOVIE, row[0]), *row[1:]) for row in rows]
