"""The comment system, as the command line serves it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, select

from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.tables import shard
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.ops.systems.registry import System


def _leased_by(connection: Connection) -> list[str]:
    held = (shard.c.lease_until > SystemClock().now()) & (shard.c.owner != "")
    return sorted(connection.execute(select(shard.c.owner.distinct()).where(held)).scalars())


def _pool_limits() -> Mapping[str, int]:
    from douban_pipeline.comments.resources import POOL_LIMITS  # loads Dagster

    return POOL_LIMITS


SYSTEM = System(
    name="comments",
    settings=CommentsSettings,
    tree=TREE,
    pool_limits=_pool_limits,
    location="douban_pipeline.locations.comments",
    leased_by=_leased_by,
)
