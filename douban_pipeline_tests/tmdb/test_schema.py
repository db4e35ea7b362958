"""The schema: what the migrations make of it, and the plan's tables, columns, indexes and parameters."""

from __future__ import annotations

import inspect
from inspect import signature

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg.errors import CheckViolation

from douban_pipeline.tmdb.refresh import REQUEST_DAYS
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.tables import SCHEMA, metadata


@pytest.mark.postgres
def test_the_migrations_arrive_at_the_tables(store: PostgresTmdbStore):
    engine = store.engine
    options = {
        "include_schemas": True,
        "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
        "version_table": TREE.version_table,
        "version_table_schema": SCHEMA,
        "compare_server_default": True,
    }
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
    assert store.upgrade() == (TREE.head, TREE.head)
    plan = TREE.plan(engine)
    assert (plan.before, plan.sql.count("CREATE TABLE")) == (TREE.head, 0)
    assert store.ready() is store


@pytest.mark.postgres
def test_the_schema_of_an_empty_database_can_be_listed_before_it_is_made(postgres_url: str):
    with PostgresTmdbStore(postgres_url) as store:
        engine = store.engine
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA IF EXISTS tmdb CASCADE")
        plan = TREE.plan(engine)
        assert plan.before is None
        assert plan.sql.index("CREATE SCHEMA tmdb") < plan.sql.index("CREATE TABLE tmdb.movies")
        assert store.upgrade() == (None, TREE.head)
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA tmdb CASCADE")


@pytest.mark.postgres
@pytest.mark.parametrize("values", ["'stub', '{}', 'x'", "'full', NULL, NULL", "'other', NULL, NULL"])
def test_stub_and_full_are_checked_by_the_database(store: PostgresTmdbStore, values: str):
    with pytest.raises(CheckViolation), store.transaction() as connection:
        connection.execute(f"INSERT INTO tmdb.movies (tmdb_id, data_state, raw, raw_hash) VALUES (1, {values})")


@pytest.mark.postgres
def test_a_store_for_development_makes_its_schema(postgres_url: str):
    with PostgresTmdbStore(postgres_url, create_schema=True) as store:
        with store.transaction() as connection:
            connection.execute("SELECT FROM tmdb.movies")
        assert store.ready() is store
        with store.transaction() as connection:
            connection.execute("DROP SCHEMA tmdb CASCADE")


TITLE = "original_language popularity vote_average vote_count"
KEPT = "tmdb_id raw_language data_state raw raw_hash fetched_at first_seen_at last_seen_at"
PLANNED = {
    "movies": f"title original_title release_date {TITLE} {KEPT}",
    "people": f"name original_name known_for_department popularity {KEPT}",
    "tv_shows": f"name original_name first_air_date {TITLE} {KEPT}",
    "movie_translations": "tmdb_movie_id language title overview raw raw_hash fetched_at first_seen_at last_seen_at",
    "person_translations": "tmdb_person_id language biography raw raw_hash fetched_at first_seen_at last_seen_at",
    "tv_translations": "tmdb_tv_id language name overview raw raw_hash fetched_at first_seen_at last_seen_at",
    "enrichment_requests": (
        "id request_id user_id session_id conversation_id user_message_id query_text tmdb_endpoint role_hint "
        "extracted_entities selected selected_media_type selected_tmdb_id selected_score candidates_top3 "
        "multi_results_raw discover_results_raw tmdb_language duration_ms created_at"
    ),
    "enrichment_request_entities": "enrichment_request_id entity_type tmdb_id selected score",
    "neo4j_etl_outbox": (
        "id entity_type tmdb_id raw_hash action request_id enqueued_at locked_at attempts last_attempt_at last_error "
        "processed_at"
    ),
}
"""The plan's tables with their columns; that the database has what `metadata` says is tested above."""


@pytest.mark.parametrize("name", PLANNED)
def test_the_plan_s_columns_are_there(name: str):
    assert {*metadata.tables[f"{SCHEMA}.{name}"].columns.keys()} >= {*PLANNED[name].split()}


def test_the_plan_s_indexes_are_there():
    indexes = {str(index.name): index for table in metadata.sorted_tables for index in table.indexes}
    requests = {f"idx_tmdb_enrich_req_{each}" for each in ("created", "user", "selected", "endpoint")}
    assert indexes.keys() >= requests | {"idx_tmdb_etl_outbox_pending", "ux_tmdb_etl_outbox_dedupe"}
    assert indexes["ux_tmdb_etl_outbox_dedupe"].unique


def test_persist_enrichment_takes_what_the_plan_says():
    given_names = [*signature(PostgresTmdbStore.persist_enrichment).parameters]
    assert given_names == [
        *("self", "user_id", "session_id", "query_text", "tmdb_endpoint", "extracted_entities", "disambiguation"),
        *("payloads", "request_id", "conversation_id", "user_message_id", "candidates_top3", "multi_results_raw"),
        *("discover_results_raw", "role_hint", "tmdb_language", "duration_ms", "logged_id"),
    ]


def test_the_plan_s_parameters_are_the_defaults():
    chosen = TmdbSettings(_env_file=None)
    assert (chosen.enrichment_async_write_enable, chosen.enrichment_write_queue_size) == (True, 100)
    assert chosen.language == "zh-CN"
    given = inspect.signature(PostgresTmdbStore).parameters
    assert [given[name].default for name in ("min_size", "max_size", "language")] == [1, 10, "zh-CN"]
    assert REQUEST_DAYS == 30
