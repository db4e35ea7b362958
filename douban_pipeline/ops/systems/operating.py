"""Setup, upgrade and grants for any system of the registry."""

from __future__ import annotations

import os
from collections.abc import Iterator

from douban_pipeline.core.ui.language import said
from douban_pipeline.ops.console import console, plain
from douban_pipeline.ops.grants import table_grants
from douban_pipeline.ops.systems.registry import MYSQL, System, installed


def set_up(system: System) -> None:
    """Create or upgrade a system's tables, and set the limits of its pools where there is a Dagster instance."""
    upgrade(system, dry_run=False)
    if "DAGSTER_HOME" not in os.environ:
        console.print(
            said(
                "没有设置 DAGSTER_HOME：Dagster 并发池的上限保持不变",
                "DAGSTER_HOME is not set: the limits of Dagster's pools are left as they are",
            )
        )
        return
    from dagster import DagsterInstance

    from douban_pipeline.dagster_kit.runs import set_pool_limits

    limits = system.pool_limits()
    with DagsterInstance.get() as instance:
        set_pool_limits(instance, limits)
    shown = ", ".join(f"{pool} {limit}" for pool, limit in limits.items())
    plain(f"{system.name:<10} {said('并发池', 'pools')} {shown}")


def upgrade(system: System, *, dry_run: bool) -> None:
    """Upgrade a system's tables to this release, or print the SQL."""
    with installed(system) as there:
        if dry_run:
            plan = there.tree.plan(there.engine)
            plain(f"-- {there.name}: {_version_line(there.shown_url, plan.before, plan.after)}")
            plain(plan.sql or said("-- 无事可做", "-- nothing to do"))
            return
        before, after = there.tree.upgrade(there.engine)
        plain(f"{there.name:<10} {_version_line(there.shown_url, before, after)}")


def _version_line(url: str, before: str | None, after: str) -> str:
    return said(
        f"{url} 中的表：版本 {before or '无'} → {after}", f"tables in {url}: version {before or 'none'} → {after}"
    )


def grants(system: System, user: str, host: str) -> Iterator[str]:
    """Yield the grants an account needs for a system's tables, as SQL; a comment where there is nothing to grant."""
    with installed(system) as there:
        url, backend = there.engine.url, there.engine.url.get_backend_name()
        if backend in MYSQL:
            names = (*sorted(there.tree.metadata.tables), there.tree.version_table)
            yield from table_grants(names, database=url.database or "", user=user, host=host)
        else:
            owned = said("账号拥有此数据库", "its account owns the database")
            what = owned if backend == "postgresql" else said("文件没有账号", "a file has no accounts")
            needless = said("不需要授权", "needs no grants of ours")
            yield f"-- {there.name}: {there.shown_url} {needless}: {what}"
        yield from system.grants(there.settings, user, host)
