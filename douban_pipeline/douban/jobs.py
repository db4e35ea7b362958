"""The chain as one job, the pools its steps wait in, and the shards its runs are at work on or paused."""

from datetime import datetime

import dagster as dg

from douban_pipeline.dagster_kit.runs import PAUSE, JobRuns, partition_range_tags, partitions_of_run, paused_partitions
from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.chain.linking.assets import SEARCH_POOL, scored_matches, search_candidates
from douban_pipeline.douban.chain.syncing.assets import DOUBAN_POOL, synced_fields
from douban_pipeline.douban.intros.assets import LLM_POOL, ai_intros
from douban_pipeline.douban.partitions import partition_key, shard_numbers, shards
from douban_pipeline.douban.resources import tags_of

CHAIN = "douban_chain"
CHAIN_ASSETS = (due_videos, search_candidates, scored_matches, synced_fields, ai_intros)
SYNC_TAGS = tags_of("sync")

POOL_LIMITS = {SEARCH_POOL: 2, DOUBAN_POOL: 2, LLM_POOL: 2}
"""Every pool of the code location: how many runs may be busy with one source at once. The gate paces their requests."""

chain_job = dg.define_asset_job(
    CHAIN,
    selection=dg.AssetSelection.assets(*CHAIN_ASSETS),
    tags=SYNC_TAGS,
    description="The main job: due videos are searched, judged, guarded and written, and get an intro where that is "
    "switched on; for one shard or several. Launched by the sensor `due_videos_sensor`, by backfills, or by hand; "
    "overlapping runs share out the work.",
)


def shard_range_tags(first: int, last: int) -> dict[str, str]:
    """Return the tags that make one run cover the shards ``first`` to ``last``, both included."""
    return partition_range_tags(partition_key(first), partition_key(last))


def chain_runs_under_way(instance: dg.DagsterInstance, location: str | None = None) -> list[list[int]]:
    """Return the shards of every run of the chain that is queued or at work on some, whoever launched it."""
    return [covered for run in _chain_runs(instance, location).under_way() if (covered := _shards_of(run))]


def paused_shards(instance: dg.DagsterInstance, now: datetime, location: str | None = None) -> set[int]:
    """Return the shards that are paused after failed runs of the chain; see `paused_partitions`."""
    failed = _chain_runs(instance, location).failed_since(now - PAUSE)
    return set(shard_numbers([*paused_partitions(failed, shards.get_partition_keys(), now)]))


def _chain_runs(instance: dg.DagsterInstance, location: str | None) -> JobRuns:
    return JobRuns(instance, location, CHAIN, frozenset(asset.key for asset in CHAIN_ASSETS))


def _shards_of(run: dg.DagsterRun) -> list[int]:
    return shard_numbers(partitions_of_run(run, shards.get_partition_keys()))
