"""What every asset of the chain has in common: its partitions and group, how a run of it begins, its tables."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dagster as dg

from douban_pipeline.core.ui.presentation import MOST_ROWS, panel
from douban_pipeline.dagster_kit.runs import BACKFILL_ID_TAG, is_automatic
from douban_pipeline.douban.chain.due.due_videos import DueScope
from douban_pipeline.douban.chain.progress import backfill_line
from douban_pipeline.douban.chain.session import Session, open_session
from douban_pipeline.douban.partitions import partition_key, shard_backfill, shard_numbers, shards
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.tasks import shard_of


def chain_asset(
    *, deps: Sequence[dg.AssetsDefinition] = (), pool: str | None = None
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return the decorator that makes an asset of the chain: partitioned by shard, in the chain's group.

    Args:
        deps: The steps before it.
        pool: The pool that its runs wait in, of those that ask a source.
    """
    return dg.asset(
        deps=deps,
        partitions_def=shards,
        backfill_policy=shard_backfill,
        group_name="chain",
        kinds={"mysql", "python"},
        pool=pool,
    )


def begin_step(context: dg.AssetExecutionContext, services: Services) -> Session:
    """Begin a step of the chain for the shards of its run; raises as `open_session` does."""
    shards_of_run = shard_numbers(context.partition_keys)
    return open_session(
        services,
        context.run.run_id,
        shards_of_run,
        context.log,
        automatic=is_automatic(context.run),
        further=_backfill_followed(context, services),
    )


def figures_of(
    context: dg.AssetExecutionContext, session: Session, vod_ids: Mapping[str, Iterable[int]]
) -> dict[str, int]:
    """Return how many videos each figure counts over the run, for its metadata; every partition gets its own figures.

    What is not among them in the metadata, such as the seconds, is the run's in each of its partitions.

    Args:
        context: The asset's context.
        session: The step.
        vod_ids: By the name of a figure, the videos that it counts; one that it counts twice stands there twice.
    """
    counted = {name: Counter(map(shard_of, ids)) for name, ids in vod_ids.items()}
    if context.has_partition_key_range:
        for shard in session.shards:
            own = {name: counts[shard] for name, counts in counted.items()}
            context.add_asset_metadata(own, partition_key=partition_key(shard))
    return {name: counts.total() for name, counts in counted.items()}


def _backfill_followed(context: dg.AssetExecutionContext, services: Services) -> Callable[[], str] | None:
    """Return what says how far the backfill is that a run belongs to; None for a run of none."""
    backfill_id = context.run.tags.get(BACKFILL_ID_TAG)
    backfill = context.instance.get_backfill(backfill_id) if backfill_id else None
    if backfill is None:
        return None
    ops: Any = context.run.run_config.get("ops") or {}
    config = (ops.get("due_videos") or {}).get("config") or {}
    scope = DueScope[config.get("scope", DueScope.due.name)]
    return partial(backfill_line, services, scope, datetime.fromtimestamp(backfill.backfill_timestamp, UTC))


def tables_with_rows(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], *, most: int = MOST_ROWS
) -> dict[str, dg.MetadataValue]:
    """Return each of ``tables`` as Markdown under its name, leaving out those without rows."""
    return {name: dg.MetadataValue.md(panel(rows, most=most)) for name, rows in tables.items() if rows}
