"""What may be wrong with an installation of the TMDB system, and what to do about it. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from neo4j.exceptions import DriverError, Neo4jError
from psycopg import Error
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import DatabaseError
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.settings import PREFIX, TmdbSettings
from douban_pipeline.tmdb.store import outbox
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.tables import metadata

OLDEST_POSTGRES = 13
"""Since then ``gen_random_uuid()`` needs no extension."""
_WAITING = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one thing: how it is, in words, and what to do about it if it is not well."""

    name: str
    state: Literal["ok", "warn", "fail"]
    message: str
    remedy: str = ""


def check_store(store: PostgresTmdbStore, settings: TmdbSettings, clock: Clock) -> Iterator[Finding]:
    """Look at PostgreSQL, the schema, its rights, the age of answers and the outbox."""
    try:
        with store.transaction() as connection:
            version = connection.info.server_version // 10000
            row = connection.execute(
                "SELECT current_database(), has_database_privilege(current_database(), 'CREATE'), "
                "to_regnamespace('tmdb') IS NOT NULL"
            ).fetchone()
            assert row is not None
            database, may_create, there = row
    except (Error, DatabaseError) as error:
        remedy = f"start it, or mend {PREFIX}DATABASE_URL"
        yield Finding("postgres", "fail", f"does not answer: {error}", remedy)
        return
    if version < OLDEST_POSTGRES:
        yield Finding(
            "postgres", "fail", f"version {version}", f"{OLDEST_POSTGRES} or newer is needed (for gen_random_uuid)"
        )
        return
    yield Finding("postgres", "ok", f"version {version}, database {database}")
    if not there and not may_create:
        owner = f"have its owner run CREATE SCHEMA tmdb AUTHORIZATION …, or GRANT CREATE ON DATABASE {database}"
        yield Finding("schema", "fail", "there is none, and this account may not create it", owner)
        return
    try:
        store.ready()
    except (DatabaseError, SQLAlchemyError) as error:
        yield Finding("schema", "fail", str(error), "run `douban-pipeline tmdb setup`")
        return
    yield Finding("schema", "ok", f"at version {TREE.head}")
    yield _strangers(store)
    yield _rows(store)
    yield _age(store, settings, clock)
    yield _outbox(store, clock)


def _strangers(store: PostgresTmdbStore) -> Finding:
    own = {table.name for table in metadata.sorted_tables} | {TREE.version_table}
    with store.transaction() as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'tmdb'").fetchall()
    if strangers := sorted({name for (name,) in rows} - own):
        remedy = "relations belong into the graph: keep them elsewhere"
        return Finding("tables", "warn", f"tables that are not ours in the schema: {', '.join(strangers)}", remedy)
    return Finding("tables", "ok", "only our own; relations are in the graph alone")


def _rows(store: PostgresTmdbStore) -> Finding:
    counts = store.row_counts()
    said = ", ".join(
        f"{entity.value} {found.full} full, {found.stubs} stubs, {found.gone} gone" for entity, found in counts.items()
    )
    return Finding("rows", "ok", said)


def _age(store: PostgresTmdbStore, settings: TmdbSettings, clock: Clock) -> Finding:
    before = clock.now() - timedelta(days=settings.raw_days)
    with store.transaction() as connection:
        row = connection.execute(
            """
            SELECT (SELECT count(*) FROM tmdb.movies WHERE data_state = 'full' AND fetched_at < %(before)s)
                 + (SELECT count(*) FROM tmdb.people WHERE data_state = 'full' AND fetched_at < %(before)s)
                 + (SELECT count(*) FROM tmdb.tv_shows WHERE data_state = 'full' AND fetched_at < %(before)s)
            """,
            {"before": before},
        ).fetchone()
    assert row is not None
    if row[0]:
        message = f"{row[0]} answers are older than {settings.raw_days} days, which TMDB's terms do not allow"
        return Finding("age", "warn", message, "fetch them again, or run `douban-pipeline tmdb prune`")
    return Finding("age", "ok", f"no answer is older than {settings.raw_days} days")


def _outbox(store: PostgresTmdbStore, clock: Clock) -> Finding:
    counts = store.run(outbox.counts)
    said = f"{counts.waiting} waiting, {counts.failing} of them failed before, {counts.dead} put aside"
    if counts.dead:
        [first, *_] = store.run(lambda connection: outbox.dead(connection, 1))
        reason = f"{first['entity_type']}/{first['tmdb_id']}: {first['last_error']}"
        return Finding("outbox", "warn", f"{said}; {reason}", "mend the cause, then run `douban-pipeline tmdb requeue`")
    if counts.oldest is not None and clock.now() - counts.oldest > _WAITING:
        return Finding("outbox", "warn", f"{said}, the oldest since {counts.oldest:%F %H:%M}", "run `tmdb sync`")
    return Finding("outbox", "ok", said)


def check_graph(target: GraphTarget) -> Iterator[Finding]:
    """Look at the graph database."""
    try:
        server, counts = target.server(), target.counts()
    except (DriverError, Neo4jError) as error:
        yield Finding("graph", "fail", f"{target.uri} does not answer: {error}", f"start it, or mend {PREFIX}GRAPH_URI")
        return
    said = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    yield Finding("graph", "ok", f"{server}: {said or 'empty'}")
