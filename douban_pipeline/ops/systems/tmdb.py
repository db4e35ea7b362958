"""The TMDB system in the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, func, select

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.ui.language import said
from douban_pipeline.ops.results import CheckResult
from douban_pipeline.ops.systems.registry import System
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.services import open_store
from douban_pipeline.tmdb.settings import PREFIX, TmdbSettings
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline.tmdb.store.tables import neo4j_etl_outbox
from douban_pipeline.tmdb.troubleshooting import check_graph, check_store

_LOOKED_AT = ("postgres", "schema")
"""Results that `check` already has for every system."""


@contextmanager
def _database(settings: TmdbSettings) -> Iterator[Engine]:
    with open_store(settings) as store:
        engine = store.engine()
        try:
            yield engine
        finally:
            engine.dispose()


def _checks(settings: TmdbSettings, engine: Engine) -> Iterator[CheckResult]:
    """Check the age of answers, the outbox, the key, and the graph if one is configured; no graph is started for it."""
    with PostgresTmdbStore(engine.url.render_as_string(hide_password=False), 0) as store:
        found = [each for each in check_store(store, settings, SystemClock()) if each.name not in _LOOKED_AT]
    if settings.api_key.get_secret_value() or settings.api_token.get_secret_value():
        url, rate = settings.api_url, f"{settings.requests_per_second:g}"
        message = said(f"{url}，每秒最多 {rate} 个请求", f"{url}, at most {rate} requests a second")
        yield CheckResult("api", "ok", message)
    else:
        remedy = said(
            f"设置 {PREFIX}API_KEY 或 {PREFIX}API_TOKEN；没有它，请求 TMDB 的运行无事可做",
            f"set {PREFIX}API_KEY or {PREFIX}API_TOKEN; without one, runs that ask TMDB have nothing to do",
        )
        yield CheckResult("api", "warn", said("没有 TMDB 的密钥", "no TMDB key"), remedy)
    if settings.graph_uri:
        password = settings.graph_password.get_secret_value()
        with GraphTarget(settings.graph_uri, settings.graph_user, password, settings.graph_database) as target:
            found += check_graph(target)
    yield from (CheckResult(each.name, each.state, each.message, each.remedy) for each in found)
    if not settings.graph_uri:
        message = said(
            f"{PREFIX}GRAPH_URI 为空：使用 HOME 中的 ArcadeDB 试用",
            f"{PREFIX}GRAPH_URI names none: an ArcadeDB in HOME, for trying",
        )
        yield CheckResult("graph", "ok", message)


def _pool_limits() -> Mapping[str, int]:
    from douban_pipeline.tmdb.resources import POOL_LIMITS  # loads Dagster

    return POOL_LIMITS


def _leased_by(connection: Connection) -> list[str]:
    row = neo4j_etl_outbox.c
    held = row.locked_by.is_not(None) & row.processed_at.is_(None) & (row.available_at > func.now())
    return sorted(connection.execute(select(row.locked_by.distinct()).where(held)).scalars())


SYSTEM = System(
    name="tmdb",
    settings=TmdbSettings,
    tree=TREE,
    pool_limits=_pool_limits,
    location="douban_pipeline.locations.tmdb",
    database=_database,
    checks=_checks,
    leased_by=_leased_by,
)
