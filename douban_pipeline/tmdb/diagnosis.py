"""Findings about an installation of the TMDB system, with remedies. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from neo4j.exceptions import DriverError, Neo4jError
from psycopg import Error
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import terminal_language, terminal_text
from douban_pipeline.tmdb import kept_servers
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.settings import PREFIX, TmdbSettings
from douban_pipeline.tmdb.store import expired_facts, outbox
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.tables import metadata

OLDEST_POSTGRES = 13
"""From this version on ``gen_random_uuid()`` needs no extension."""
_WAITING = timedelta(hours=1)


def check_store(store: PostgresTmdbStore, settings: TmdbSettings, clock: Clock) -> Iterator[CheckResult]:
    """Check PostgreSQL, the schema, its rights, the age of answers and the outbox."""
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
        remedy = terminal_text("start it, or mend {prefix}DATABASE_URL").format(prefix=PREFIX)
        yield CheckResult("postgres", "fail", terminal_text("does not answer: {error}").format(error=error), remedy)
        return
    if version < OLDEST_POSTGRES:
        remedy = terminal_text("{oldest_postgres} or newer is needed (for gen_random_uuid)").format(
            oldest_postgres=OLDEST_POSTGRES
        )
        yield CheckResult("postgres", "fail", terminal_text("version {version}").format(version=version), remedy)
        return
    yield CheckResult(
        "postgres",
        "ok",
        terminal_text("version {version}, database {database}").format(version=version, database=database),
    )
    if not there and not may_create:
        owner = terminal_text(
            "have its owner run CREATE SCHEMA tmdb AUTHORIZATION …, or GRANT CREATE ON DATABASE {database}"
        ).format(database=database)
        missing = terminal_text("there is none, and this account may not create it")
        yield CheckResult("schema", "fail", missing, owner)
        return
    try:
        store.ready()
    except (DatabaseError, SQLAlchemyError) as error:
        remedy = terminal_text("run `douban-pipeline tmdb setup`")
        yield CheckResult("schema", "fail", str(error), remedy)
        return
    yield CheckResult("schema", "ok", terminal_text("at version {head}").format(head=TREE.head))
    yield _strangers(store)
    yield _rows(store)
    yield _age(store, settings, clock)
    yield _outbox(store, clock)


def _strangers(store: PostgresTmdbStore) -> CheckResult:
    own = {table.name for table in metadata.sorted_tables} | {TREE.version_table}
    with store.transaction() as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'tmdb'").fetchall()
    if strangers := sorted({name for (name,) in rows} - own):
        remedy = terminal_text("relations belong in the graph: keep them elsewhere")
        named = ", ".join(strangers)
        message = terminal_text("tables that are not ours in the schema: {named}").format(named=named)
        return CheckResult("tables", "warn", message, remedy)
    own_only = terminal_text("only our own; relations are in the graph alone")
    return CheckResult("tables", "ok", own_only)


def _rows(store: PostgresTmdbStore) -> CheckResult:
    counts = store.row_counts()
    shown = [
        terminal_text("{entity} {full} full, {stubs} stubs, {gone} gone").format(
            entity=entity.value, full=found.full, stubs=found.stubs, gone=found.gone
        )
        for entity, found in counts.items()
    ]
    return CheckResult("rows", "ok", terminal_text(", ", "tmdb").join(shown))


def _age(store: PostgresTmdbStore, settings: TmdbSettings, clock: Clock) -> CheckResult:
    days = expired_facts.RAW_DAYS
    found = store.run(partial(expired_facts.counts, before=clock.now() - timedelta(days=days)))
    if not found:
        return CheckResult(
            "age", "ok", terminal_text("no column of TMDB's is older than {days} days").format(days=days)
        )
    named = {place: place.named_zh if terminal_language() == "zh" else place.what for place in found}
    places = terminal_text(", ").join(
        terminal_text("{count} rows of {table} ({named})").format(count=count, table=place.table, named=named[place])
        for place, count in found.items()
    )
    message = terminal_text("older than {days} days, which TMDB's terms do not allow: {places}").format(
        days=days, places=places
    )
    remedy = terminal_text("fetch them again, or run `douban-pipeline tmdb prune --no-dry-run`, then `tmdb sync`")
    return CheckResult("age", "warn", message, remedy)


def _outbox(store: PostgresTmdbStore, clock: Clock) -> CheckResult:
    counts = store.run(outbox.counts)
    waiting, failing, put_aside = counts.waiting, counts.failing, counts.dead
    shown = terminal_text("{waiting} waiting, {failing} of them failed before, {put_aside} put aside").format(
        waiting=waiting, failing=failing, put_aside=put_aside
    )
    if counts.dead:
        [first, *_] = store.run(lambda connection: outbox.dead(connection, 1))
        reason = f"{first['entity_type']}/{first['tmdb_id']}: {first['last_error']}"
        remedy = terminal_text("fix the cause, then run `douban-pipeline tmdb requeue`")
        return CheckResult("outbox", "warn", f"{shown}{terminal_text('; ')}{reason}", remedy)
    if counts.oldest is not None and clock.now() - counts.oldest > _WAITING:
        since = f"{counts.oldest:%F %H:%M}"
        late = terminal_text("{shown}, the oldest since {since}").format(shown=shown, since=since)
        return CheckResult("outbox", "warn", late, terminal_text("run `tmdb sync`"))
    return CheckResult("outbox", "ok", shown)


def check_kept(settings: TmdbSettings) -> Iterator[CheckResult]:
    """Say which servers run in HOME, where none is configured."""
    if settings.graph_uri and settings.database_url.get_secret_value():
        return
    found = ", ".join(kept_servers.running(settings.home)) or terminal_text("none runs now")
    text = terminal_text(
        "in HOME, for trying: {found}; one stops {minutes} minutes after its last use, or by {command}"
    )
    minutes = round(kept_servers.IDLE_SECONDS / 60)
    yield CheckResult("servers", "ok", text.format(found=found, minutes=minutes, command="`tmdb stop`"))


def check_graph(target: GraphTarget) -> Iterator[CheckResult]:
    """Check the graph database."""
    try:
        server, counts, sentence = target.server(), target.counts(), target.too_old()
    except (DriverError, Neo4jError) as error:
        message = terminal_text("{uri} does not answer: {error}").format(uri=target.uri, error=error)
        remedy = terminal_text("start it, or mend {prefix}GRAPH_URI").format(prefix=PREFIX)
        yield CheckResult("graph", "fail", message, remedy)
        return
    if sentence:
        yield CheckResult("graph", "fail", sentence, terminal_text("upgrade that Neo4j"))
        return
    shown = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    yield CheckResult("graph", "ok", f"{server}: {shown or terminal_text('empty')}")
