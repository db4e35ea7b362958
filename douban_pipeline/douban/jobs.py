"""The chain as one job, and which shards its runs are at work on."""

import dagster as dg
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.chain.linking.assets import scored_matches, search_candidates
from douban_pipeline.douban.chain.syncing.assets import synced_fields
from douban_pipeline.douban.intros.assets import ai_intros
from douban_pipeline.douban.partitions import partition_key

CHAIN = "douban_chain"
SYNC_TAGS = {"pipeline": "sync"}
UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

chain_job = dg.define_asset_job(
    CHAIN,
    selection=dg.AssetSelection.assets(due_videos, search_candidates, scored_matches, synced_fields, ai_intros),
    tags=SYNC_TAGS,
    description="The main job: due videos are searched, judged, guarded and written, and get an intro where that is "
    "switched on; for one shard or several. Launched by the sensor `due_videos_sensor`, by backfills, or by hand; "
    "overlapping runs share out the work.",
)


def shard_range_tags(first: int, last: int) -> dict[str, str]:
    """Return the tags that make one run cover the shards ``first`` to ``last``, both included."""
    return {ASSET_PARTITION_RANGE_START_TAG: partition_key(first), ASSET_PARTITION_RANGE_END_TAG: partition_key(last)}


def shards_of_run(run: dg.DagsterRun) -> list[int]:
    """Return the shards a run covers, as its tags say; empty if it covers none."""
    single = run.tags.get(PARTITION_NAME_TAG)
    if single is not None:
        return [int(single)] if single.isdecimal() else []
    first, last = run.tags.get(ASSET_PARTITION_RANGE_START_TAG), run.tags.get(ASSET_PARTITION_RANGE_END_TAG)
    return list(range(int(first), int(last) + 1)) if first is not None and last is not None else []


def chain_runs_under_way(instance: dg.DagsterInstance) -> list[list[int]]:
    """Return the shards of every run that is queued or at work on some, whoever launched it."""
    runs = instance.get_runs(filters=dg.RunsFilter(statuses=UNDER_WAY))
    return [covered for run in runs if (covered := shards_of_run(run))]
