"""Answers put into a store, and what it then holds."""

from __future__ import annotations

from typing import Any

from douban_pipeline.tmdb.store.entities import StoreResult
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline_tests.tmdb.given import answer

FILM = EntityKey(EntityType.MOVIE, 1)


def rows(store: PostgresTmdbStore, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    with store.transaction() as connection:
        return connection.execute(query, parameters).fetchall()


def put(
    store: PostgresTmdbStore, *raws: dict[str, Any], entity: str = "movie", language: str = "zh-CN"
) -> list[StoreResult]:
    return [stored.change for stored in store.persist_payloads([answer(entity, raw, language) for raw in raws])]


def queued(store: PostgresTmdbStore) -> list[tuple[str, int, str, int]]:
    return rows(
        store,
        "SELECT entity_type, tmdb_id, action, version FROM tmdb.neo4j_etl_outbox WHERE processed_at IS NULL "
        "ORDER BY entity_type, tmdb_id",
    )
