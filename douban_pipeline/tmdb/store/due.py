"""Entities to fetch next, in order of priority, by index; and figures by day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime

from psycopg import Connection, sql

from douban_pipeline.tmdb.store.statements import TABLES
from douban_pipeline.tmdb.types import EntityKey, EntityType

REFRESH_DAYS = 150
"""Days after which runs fetch an answer again: a month before it would have to be dropped."""
_WANTED = """
    SELECT media_type AS entity, tmdb_id FROM tmdb.vod_link WHERE state = 'confirmed'
    UNION SELECT entity_type, tmdb_id FROM tmdb.enrichment_request_entities WHERE selected
"""
"""Entities linked to the library's videos, and entities selected in users' questions."""


def outdated(connection: Connection, requests: datetime, outbox: datetime) -> tuple[int, int]:
    """Return the numbers of questions and completed outbox rows that are older than their given limits.

    `PostgresTmdbStore` deletes them by `delete_requests` and `prune_outbox`; see `expired_facts.counts` for TMDB's
    facts.
    """

    def count(what: str, before: datetime) -> int:
        row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.SQL(what)), (before,)).fetchone()
        assert row is not None
        return int(row[0])

    return (
        count("tmdb.enrichment_requests WHERE created_at < %s", requests),
        count("tmdb.neo4j_etl_outbox WHERE processed_at < %s", outbox),
    )


def mark_changed(connection: Connection, entity: EntityType, ids: Iterable[int], at: datetime) -> int:
    """Record that TMDB changed entities by a given time; return how many of them are full here and older than that."""
    query = sql.SQL(
        "UPDATE {} SET changed_at = %(at)s WHERE tmdb_id = ANY(%(ids)s) AND data_state = 'full' AND gone_at IS NULL "
        "AND fetched_at < %(at)s AND (changed_at IS NULL OR changed_at < %(at)s)"
    ).format(_table(entity))
    return connection.execute(query, {"ids": sorted(ids), "at": at}).rowcount


def due(connection: Connection, before: datetime, most: int, *, popular: bool) -> list[EntityKey]:
    """Return entities to fetch: wanted stubs, changed and old entities, and popular stubs if requested.

    Args:
        connection: Connection to the store.
        before: Answers from before this time are old.
        most: Maximum number.
        popular: Whether other stubs are fetched as well, by popularity.
    """
    found: dict[EntityKey, None] = {}
    full = "data_state = 'full' AND gone_at IS NULL"
    steps = [
        (
            f"{{table}} WHERE data_state = 'stub' AND gone_at IS NULL AND ({{entity}}, tmdb_id) IN ({_WANTED})",
            "tmdb_id",
        ),
        (f"{{table}} WHERE {full} AND changed_at > fetched_at", "changed_at"),
        (f"{{table}} WHERE {full} AND fetched_at < %(before)s", "fetched_at"),
    ]
    if popular:
        steps.append(("{table} WHERE data_state = 'stub' AND gone_at IS NULL", "popularity DESC NULLS LAST"))
    for source, order in steps:
        for entity in EntityType:
            query = sql.SQL("SELECT tmdb_id FROM {source} ORDER BY {order} LIMIT %(most)s").format(
                source=sql.SQL(source).format(table=_table(entity), entity=sql.Literal(entity.value)),
                order=sql.SQL(order),
            )
            rows = connection.execute(query, {"before": before, "most": most - len(found)})
            found.update(dict.fromkeys(EntityKey(entity, tmdb_id) for (tmdb_id,) in rows))
    return list(found)[:most]


def unsplit(connection: Connection, entity: EntityType, most: int) -> list[tuple[int, Mapping[str, object], datetime]]:
    """Return full entities whose answer contains translations that are missing in the table of translations."""
    table = TABLES[entity]
    query = sql.SQL(
        """
        SELECT tmdb_id, raw->'translations', fetched_at FROM {table} AS kept
        WHERE data_state = 'full' AND gone_at IS NULL AND raw @? '$.translations.translations[0]'
          AND NOT EXISTS (
              SELECT FROM {translations} AS t WHERE t.{owner} = kept.tmdb_id AND t.fetched_at >= kept.fetched_at
          )
          AND EXISTS (  -- one that would be stored: a complete answer in its language takes precedence
              SELECT FROM jsonb_path_query(raw, '$.translations.translations[*]') AS item
              WHERE jsonb_typeof(item->'iso_639_1') = 'string' AND jsonb_typeof(item->'data') = 'object'
                AND NOT EXISTS (
                    SELECT FROM {translations} AS t WHERE t.{owner} = kept.tmdb_id AND t.raw ? 'id' AND t.language
                        = concat_ws('-', item->>'iso_639_1', NULLIF(item->>'iso_3166_1', ''))
                )
          )
        ORDER BY fetched_at DESC LIMIT %s
        """
    ).format(
        table=_table(entity),
        translations=sql.Identifier("tmdb", table.translations),
        owner=sql.Identifier(table.owner),
    )
    return connection.execute(query, (most,)).fetchall()


def untranslated(connection: Connection, entity: EntityType, most: int) -> list[EntityKey]:
    """Return full entities without known translations, which have to be fetched."""
    table = TABLES[entity]
    query = sql.SQL(
        """
        SELECT tmdb_id FROM {table} AS kept
        WHERE data_state = 'full' AND gone_at IS NULL AND NOT raw ? 'translations'
          AND NOT EXISTS (SELECT FROM {translations} AS t WHERE t.{owner} = kept.tmdb_id)
        ORDER BY popularity DESC NULLS LAST LIMIT %s
        """
    ).format(
        table=_table(entity),
        translations=sql.Identifier("tmdb", table.translations),
        owner=sql.Identifier(table.owner),
    )
    return [EntityKey(entity, tmdb_id) for (tmdb_id,) in connection.execute(query, (most,))]


def note_numbers(connection: Connection, day: date, numbers: Mapping[str, float], *, add: bool) -> None:
    """Store figures of a day, added to existing ones or replacing them."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO tmdb.daily_numbers AS kept (day, name, value) VALUES (%s, %s, %s) ON CONFLICT (day, name) "
            "DO UPDATE SET value = EXCLUDED.value + CASE WHEN %s THEN kept.value ELSE 0 END",
            [(day, name, float(number), add) for name, number in sorted(numbers.items())],
        )


def request_numbers(connection: Connection, day: date) -> dict[str, float]:
    """Return the log's statistics of a day's questions (UTC): number, share with results, duration, confidence."""
    row = connection.execute(
        """
        SELECT count(*), count(selected_tmdb_id),
               percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ms),
               percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms),
               avg(selected_score), count(*) FILTER (WHERE tmdb_endpoint LIKE '/discover/%%'),
               count(DISTINCT user_id)
        FROM tmdb.enrichment_requests
        WHERE created_at >= %(day)s::date AND created_at < %(day)s::date + 1
        """,
        {"day": day},
    ).fetchone()
    assert row is not None
    names = ("requests", "hits", "ms_median", "ms_p95", "mean_score", "recommendations", "users")
    return {name: float(value) for name, value in zip(names, row, strict=True) if value is not None}


def _table(entity: EntityType) -> sql.Identifier:
    return sql.Identifier("tmdb", TABLES[entity].name)
