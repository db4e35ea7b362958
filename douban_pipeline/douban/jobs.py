"""The jobs of the chain and of people's decisions, and the shards that have active runs or are paused."""

from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.launchpad import asset_job_manual
from douban_pipeline.dagster_kit.runs import (
    BACKFILL_ID_TAG,
    PAUSE,
    JobRuns,
    partition_range_tags,
    partitions_of_run,
    paused_partitions,
)
from douban_pipeline.douban.chain.decision_lane.assets import applied_decisions
from douban_pipeline.douban.chain.due.assets import DueConfig, due_videos
from douban_pipeline.douban.chain.due.due_videos import DueScope
from douban_pipeline.douban.chain.match.assets import scored_matches, search_candidates
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.intros.assets import ai_intros, ordered_intros
from douban_pipeline.douban.partitions import partition_key, shard_numbers, shards
from douban_pipeline.douban.resources import tags_of

CHAIN = "douban_chain"
CHAIN_ASSETS = (due_videos, search_candidates, scored_matches, synced_fields, ai_intros)
SYNC_TAGS = tags_of("sync")
DECISION_TAGS = {"dagster/priority": "20", **tags_of("decisions")}
"""Tags of the lane of people's decisions: its runs come before all others, including jobs that people launch."""

chain_job = dg.define_asset_job(
    CHAIN,
    selection=dg.AssetSelection.assets(*CHAIN_ASSETS),
    owners=owners(),
    tags=SYNC_TAGS,
    description=asset_job_manual(
        page_text(
            "The main job: searches, judges, checks and writes due videos, and writes intros if enabled; "
            "for one shard or several. Launched by the sensor `due_videos_sensor`, by backfills, or by "
            "hand; concurrent runs divide the work."
        ),
        writes=page_text(
            "Verdicts and states; confirmed ids, fields and intros into the CMS, through the change log, unless "
            "`DOUBAN_PIPELINE_DRY_RUN=true`."
        ),
        when=page_text(
            "By itself, as videos come due. By hand to see something at once, for a few partitions: the config "
            "below also takes videos that are not due."
        ),
        ops={due_videos.node_def.name: DueConfig(scope=DueScope.everything, batch_size=20)},
    ),
)

decisions_job = dg.define_asset_job(
    "apply_decisions",
    selection=dg.AssetSelection.assets(applied_decisions),
    owners=owners(),
    tags=DECISION_TAGS,
    description=asset_job_manual(
        page_text(
            "Immediately applies people's decisions. Launched by the sensor `decisions_sensor`; safe to launch by hand."
        ),
        writes=page_text(
            "What waiting decisions say, into the CMS, through the change log; nothing while "
            "`DOUBAN_PIPELINE_DRY_RUN=true`."
        ),
        when=page_text("By itself, as decisions wait; by hand when the sensor is off."),
    ),
)
ordered_intros_job = dg.define_asset_job(
    "write_ordered_intros",
    selection=dg.AssetSelection.assets(ordered_intros),
    owners=owners(),
    tags=DECISION_TAGS,
    description=asset_job_manual(
        page_text("Immediately writes the intros that people requested. Launched by the sensor `decisions_sensor`."),
        writes=page_text(
            "Requested intros, into the CMS, through the change log; nothing while `DOUBAN_PIPELINE_DRY_RUN=true`."
        ),
        when=page_text("By itself, as requests wait; by hand when the sensor is off."),
    ),
)
jobs = [chain_job, decisions_job, ordered_intros_job]

LANE_JOBS = {decisions_job.name: applied_decisions.key, ordered_intros_job.name: ordered_intros.key}
"""The jobs of the lane, with the asset of each."""


def shard_range_tags(first: int, last: int) -> dict[str, str]:
    """Return the tags that make one run cover the shards ``first`` to ``last``, both included."""
    return partition_range_tags(partition_key(first), partition_key(last))


@dataclass(frozen=True, slots=True)
class ChainRuns:
    """Runs of the chain that are queued or active, whoever launched them.

    Attributes:
        shards: The shards of each run that covers any.
        backfills: Number of these runs that belong to a backfill.
    """

    shards: list[list[int]]
    backfills: int


def chain_runs_under_way(instance: dg.DagsterInstance, location: str | None = None) -> ChainRuns:
    """Return the runs of the chain that are queued or active."""
    runs = [(run, covered) for run in _chain_runs(instance, location).under_way() if (covered := _shards_of(run))]
    return ChainRuns([covered for _, covered in runs], sum(_of_backfill(run) for run, _ in runs))


def _of_backfill(run: dg.DagsterRun) -> bool:
    return BACKFILL_ID_TAG in run.tags or run.tags.get("pipeline") == "backfill"


def paused_shards(instance: dg.DagsterInstance, now: datetime, location: str | None = None) -> set[int]:
    """Return the shards that are paused after failed runs of the chain; see `paused_partitions`."""
    failed = _chain_runs(instance, location).failed_since(now - PAUSE)
    return set(shard_numbers([*paused_partitions(failed, shards.get_partition_keys(), now)]))


def _chain_runs(instance: dg.DagsterInstance, location: str | None) -> JobRuns:
    return JobRuns(instance, location, CHAIN, frozenset(asset.key for asset in CHAIN_ASSETS))


def _shards_of(run: dg.DagsterRun) -> list[int]:
    return shard_numbers(partitions_of_run(run, shards.get_partition_keys()))
