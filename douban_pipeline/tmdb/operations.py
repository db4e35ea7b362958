"""What the operators' commands ask of the TMDB system."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, func, select

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.operations import Operations
from douban_pipeline.core.ui.language import said
from douban_pipeline.tmdb.graph.target import GraphTarget
from douban_pipeline.tmdb.services import TmdbServices
from douban_pipeline.tmdb.settings import PREFIX
from douban_pipeline.tmdb.store.tables import neo4j_etl_outbox
from douban_pipeline.tmdb.troubleshooting import check_graph, check_store

_LOOKED_AT = ("postgres", "schema")
"""Results that `check` already has for every system."""


class TmdbOperations(Operations):
    """The TMDB system in the operators' commands."""

    def checks(self, services: TmdbServices) -> Iterator[CheckResult]:
        """Check the age of answers, the outbox, the key, and the graph if one is configured; none is started for it."""
        settings = services.settings
        found = [each for each in check_store(services.store, settings, services.clock) if each.name not in _LOOKED_AT]
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
        yield from found
        if not settings.graph_uri:
            message = said(
                f"{PREFIX}GRAPH_URI 为空：使用 HOME 中的 ArcadeDB 试用",
                f"{PREFIX}GRAPH_URI names none: an ArcadeDB in HOME, for trying",
            )
            yield CheckResult("graph", "ok", message)

    def leased_by(self, connection: Connection, services: TmdbServices) -> list[str]:
        """Return who holds leases now."""
        row = neo4j_etl_outbox.c
        held = row.locked_by.is_not(None) & row.processed_at.is_(None) & (row.available_at > func.now())
        return sorted(connection.execute(select(row.locked_by.distinct()).where(held)).scalars())


OPERATIONS = TmdbOperations()
"""The TMDB system's."""
