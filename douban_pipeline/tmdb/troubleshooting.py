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
from douban_pipeline.core.database import DatabaseError
from douban_pipeline.core.ui.language import said
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.settings import PREFIX, TmdbSettings
from douban_pipeline.tmdb.store import expiring, outbox
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
        remedy = said(f"启动它，或改正 {PREFIX}DATABASE_URL", f"start it, or mend {PREFIX}DATABASE_URL")
        yield CheckResult("postgres", "fail", said(f"没有应答：{error}", f"does not answer: {error}"), remedy)
        return
    if version < OLDEST_POSTGRES:
        remedy = said(
            f"需要 {OLDEST_POSTGRES} 或更新的版本（gen_random_uuid）",
            f"{OLDEST_POSTGRES} or newer is needed (for gen_random_uuid)",
        )
        yield CheckResult("postgres", "fail", said(f"版本 {version}", f"version {version}"), remedy)
        return
    yield CheckResult(
        "postgres", "ok", said(f"版本 {version}，数据库 {database}", f"version {version}, database {database}")
    )
    if not there and not may_create:
        owner = said(
            f"由其所有者执行 CREATE SCHEMA tmdb AUTHORIZATION …，或 GRANT CREATE ON DATABASE {database}",
            f"have its owner run CREATE SCHEMA tmdb AUTHORIZATION …, or GRANT CREATE ON DATABASE {database}",
        )
        missing = said("不存在，而此账号不能建立它", "there is none, and this account may not create it")
        yield CheckResult("schema", "fail", missing, owner)
        return
    try:
        store.ready()
    except (DatabaseError, SQLAlchemyError) as error:
        remedy = said("运行 `douban-pipeline tmdb setup`", "run `douban-pipeline tmdb setup`")
        yield CheckResult("schema", "fail", str(error), remedy)
        return
    yield CheckResult("schema", "ok", said(f"版本 {TREE.head}", f"at version {TREE.head}"))
    yield _strangers(store)
    yield _rows(store)
    yield _age(store, settings, clock)
    yield _outbox(store, clock)


def _strangers(store: PostgresTmdbStore) -> CheckResult:
    own = {table.name for table in metadata.sorted_tables} | {TREE.version_table}
    with store.transaction() as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'tmdb'").fetchall()
    if strangers := sorted({name for (name,) in rows} - own):
        remedy = said("关系属于图：请放到别处", "relations belong in the graph: keep them elsewhere")
        named = ", ".join(strangers)
        message = said(f"模式中有不属于我们的表：{named}", f"tables that are not ours in the schema: {named}")
        return CheckResult("tables", "warn", message, remedy)
    own_only = said("只有自有的表；关系只在图中", "only our own; relations are in the graph alone")
    return CheckResult("tables", "ok", own_only)


def _rows(store: PostgresTmdbStore) -> CheckResult:
    counts = store.row_counts()
    shown = [
        said(
            f"{entity.value} 完整 {found.full}、占位 {found.stubs}、已消失 {found.gone}",
            f"{entity.value} {found.full} full, {found.stubs} stubs, {found.gone} gone",
        )
        for entity, found in counts.items()
    ]
    return CheckResult("rows", "ok", said("；", ", ").join(shown))


def _age(store: PostgresTmdbStore, settings: TmdbSettings, clock: Clock) -> CheckResult:
    days = settings.raw_days
    found = store.run(partial(expiring.counts, before=clock.now() - timedelta(days=days)))
    if not found:
        return CheckResult(
            "age", "ok", said(f"没有一列 TMDB 资料超过 {days} 天", f"no column of TMDB's is older than {days} days")
        )
    places = said(
        "、".join(f"{place.table} 的{place.named_zh} {count} 行" for place, count in found.items()),
        ", ".join(f"{count} rows of {place.table} ({place.what})" for place, count in found.items()),
    )
    message = said(
        f"超过 {days} 天，TMDB 的条款不允许：{places}",
        f"older than {days} days, which TMDB's terms do not allow: {places}",
    )
    remedy = said(
        "重新获取，或运行 `douban-pipeline tmdb prune --no-dry-run`，再运行 `tmdb sync`",
        "fetch them again, or run `douban-pipeline tmdb prune --no-dry-run`, then `tmdb sync`",
    )
    return CheckResult("age", "warn", message, remedy)


def _outbox(store: PostgresTmdbStore, clock: Clock) -> CheckResult:
    counts = store.run(outbox.counts)
    waiting, failing, put_aside = counts.waiting, counts.failing, counts.dead
    shown = said(
        f"等待 {waiting}，其中失败过 {failing}，搁置 {put_aside}",
        f"{waiting} waiting, {failing} of them failed before, {put_aside} put aside",
    )
    if counts.dead:
        [first, *_] = store.run(lambda connection: outbox.dead(connection, 1))
        reason = f"{first['entity_type']}/{first['tmdb_id']}: {first['last_error']}"
        remedy = said(
            "排除原因后运行 `douban-pipeline tmdb requeue`", "fix the cause, then run `douban-pipeline tmdb requeue`"
        )
        return CheckResult("outbox", "warn", f"{shown}{said('；', '; ')}{reason}", remedy)
    if counts.oldest is not None and clock.now() - counts.oldest > _WAITING:
        since = f"{counts.oldest:%F %H:%M}"
        late = said(f"{shown}，最早的始于 {since}", f"{shown}, the oldest since {since}")
        return CheckResult("outbox", "warn", late, said("运行 `tmdb sync`", "run `tmdb sync`"))
    return CheckResult("outbox", "ok", shown)


def check_graph(target: GraphTarget) -> Iterator[CheckResult]:
    """Check the graph database."""
    try:
        server, counts = target.server(), target.counts()
    except (DriverError, Neo4jError) as error:
        message = said(f"{target.uri} 没有应答：{error}", f"{target.uri} does not answer: {error}")
        remedy = said(f"启动它，或改正 {PREFIX}GRAPH_URI", f"start it, or mend {PREFIX}GRAPH_URI")
        yield CheckResult("graph", "fail", message, remedy)
        return
    shown = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    yield CheckResult("graph", "ok", f"{server}: {shown or said('空', 'empty')}")
