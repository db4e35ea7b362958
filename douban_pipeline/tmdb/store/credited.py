"""What stored titles say of people: the titles of somebody of whom only the name is stored, and titles like another.

Titles are found by the index of the ids in their answers, so that nothing else is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from psycopg import Connection, sql
from psycopg.sql import SQL

from douban_pipeline.tmdb.projection import SHOWN
from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.store.tables import CREDITED
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import id_of, items_of, text_of

_MOST = 200
"""Titles that are read of one person, the most popular ones: each is an answer of 10 KB and more."""
_CLOSE = 6
"""People of a title by whom others like it are found: its directors, and the first of its cast."""
OF_TITLES = "of_stored_titles"
"""The key that marks an answer that was put together."""
_TITLES = (EntityType.MOVIE, EntityType.TV)
_FOUND = {
    entity: SQL(
        "SELECT raw, fetched_at FROM {} WHERE data_state = 'full' AND gone_at IS NULL "
        "AND {} @> ANY(%(ids)s::jsonb[]) ORDER BY popularity DESC NULLS LAST, tmdb_id LIMIT %(most)s"
    ).format(sql.Identifier("tmdb", TABLES[entity].name), SQL(CREDITED))
    for entity in _TITLES
}
_COPIED = ("id", "title", "name", "release_date", "first_air_date", "poster_path", "vote_count", "popularity")
_SAID = ("character", "job", "department", "credit_id")


def person_of_titles(connection: Connection, tmdb_id: int) -> tuple[dict[str, Any], datetime] | None:
    """Return an answer about a person put together from the titles that name them, and the time of the oldest one.

    It has their name, and credits as TMDB's answer lists them, of stored titles only; None if no stored title names
    them.
    """
    credits: dict[str, list[dict[str, Any]]] = {"cast": [], "crew": []}
    times, called, known_for = list[datetime](), "", Counter[str]()
    for entity, raw, fetched_at in _titles(connection, [tmdb_id], _MOST):
        title = {name: raw.get(name) for name in _COPIED if name in raw} | {"media_type": entity.value}
        for part, item, said in _credits_of(raw):
            if item.get("id") == tmdb_id:
                credits[part].append(title | {name: said.get(name, item.get(name)) for name in _SAID})
                called = called or text_of(item.get("name")) or ""
                known_for[text_of(item.get("known_for_department")) or ""] += 1
                times.append(fetched_at)
    if not times:
        return None
    department = known_for.most_common(1)[0][0] or None
    raw = {
        "id": tmdb_id,
        "name": called,
        "known_for_department": department,
        "combined_credits": credits,
        OF_TITLES: True,
    }
    return raw, min(times)


def like(connection: Connection, key: EntityKey, raw: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """Return titles that share people with another one, as TMDB's searches list them: those of the most of its genres
    first, then of the most of its directors and leading actors."""
    close = [id_of(item.get("id")) for part, item, said in _credits_of(raw) if said.get("job") == "Director"]
    close += [id_of(item.get("id")) for part, item, _ in _credits_of(raw) if part == "cast"]
    people = list(dict.fromkeys(each for each in close if each is not None))[:_CLOSE]
    genres = {item.get("id") for item in items_of(raw, "genres")}
    found = []
    for entity, other, _ in _titles(connection, people, _MOST) if people else ():
        if entity is not key.type or other.get("id") == key.tmdb_id:
            continue
        shared = {item.get("id") for _, item, _ in _credits_of(other)} & set(people)
        same = genres & {item.get("id") for item in items_of(other, "genres")}
        listed = {name: other.get(name) for name in (*_COPIED, *SHOWN[entity])}
        found.append(((-len(same), -len(shared)), {**listed, "media_type": entity.value}))
    return [item for _, item in sorted(found, key=lambda each: each[0])[:most]]


def _titles(
    connection: Connection, people: Iterable[int], most: int
) -> list[tuple[EntityType, Mapping[str, Any], datetime]]:
    given = {"ids": [f"[{tmdb_id}]" for tmdb_id in people], "most": most}
    found = []
    with connection.transaction():
        # What is not sorted into the index yet makes reading every title look cheaper: it would take seconds.
        connection.execute("SET LOCAL enable_seqscan = off")
        for entity in _TITLES:
            found += [(entity, *row) for row in connection.execute(_FOUND[entity], given)]
    return found


def _credits_of(raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield ``cast`` or ``crew``, the credited person, and what is said of it: of a series' several roles the first."""
    credits = raw.get("aggregate_credits") or raw.get("credits")
    for part, parts in (("cast", "roles"), ("crew", "jobs")):
        for item in items_of(credits, part):
            yield part, item, next(iter(items_of(item, parts)), item)
    for item in items_of(raw, "created_by"):
        yield "crew", item, {**item, "job": "Creator"}
