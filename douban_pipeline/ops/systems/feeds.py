"""The feeds system in the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, Engine, func, select

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.language import said
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.tables import source, stats
from douban_pipeline.feeds.types import SourceKind
from douban_pipeline.ops.results import CheckResult
from douban_pipeline.ops.source_checks import reached
from douban_pipeline.ops.systems.registry import System


def _pool_limits() -> Mapping[str, int]:
    from douban_pipeline.feeds.resources import POOL_LIMITS  # loads Dagster

    return POOL_LIMITS


def _checks(settings: FeedsSettings, engine: Engine) -> Iterator[CheckResult]:
    """Check the sources, and that WeRSS can be reached if accounts are followed or its address is set."""
    with reading(engine) as connection:
        query = select(source.c.kind, func.count().label("sources")).group_by(source.c.kind)
        kinds = connection.execute(query).all()
    counts = {row.kind: row.sources for row in kinds}
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or said("还没有", "none yet")
    yield CheckResult("sources", "ok", said(f"关注：{shown}", f"followed: {shown}"))
    if settings.werss_url:
        yield reached("werss", settings.variable("werss_url"), settings.werss_url)
    elif counts.get(SourceKind.WERSS):
        variable = settings.variable("werss_url")
        message = said(
            f"关注了公众号，但没有设置 {variable}", f"public accounts are followed, but {variable} is not set"
        )
        remedy = said("设为 WeRSS 的地址", "set it to the address of WeRSS")
        yield CheckResult("werss", "fail", message, remedy)


def _leased_by(connection: Connection) -> list[str]:
    now = int(SystemClock().now().timestamp())
    query = select(stats.c.lease_token.distinct()).where(stats.c.lease_token != "", stats.c.lease_until > now)
    return sorted(connection.execute(query).scalars())


SYSTEM = System(
    name="feeds",
    settings=FeedsSettings,
    tree=TREE,
    pool_limits=_pool_limits,
    location="douban_pipeline.locations.feeds",
    checks=_checks,
    leased_by=_leased_by,
)
