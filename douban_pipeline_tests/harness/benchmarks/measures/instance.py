"""What a backfill of the whole library leaves in Dagster's instance, and what pruning gives."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._daemon.controller import all_daemons_healthy

from douban_pipeline.dagster_kit.runs import UNDER_WAY
from douban_pipeline.douban.partitions import SHARDS_PER_RUN, partition_key
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.upkeep.jobs import HISTORY_DAYS
from douban_pipeline_tests.harness.benchmarks.chain_runs import CHAIN_ASSETS, launch_chain, wait_for_runs
from douban_pipeline_tests.harness.benchmarks.cloned_runs import clone_runs
from douban_pipeline_tests.harness.benchmarks.due_batch import due_at_upstream, videos_of_shard
from douban_pipeline_tests.harness.benchmarks.kept_by_dagster import bytes_of, rows_of, run_files
from douban_pipeline_tests.harness.benchmarks.measuring import SMALL, Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.stack_environment import (
    FREE,
    quiet_stack,
)
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack, Storage
from douban_pipeline_tests.harness.rig.waiting import wait_for

VIDEOS_PER_SHARD = 16
OLD_RUNS, YOUNG_RUNS = 300, 50
"""Copies of a run that are past `HISTORY_DAYS`, and that are not."""
_BACKFILL_SECONDS = 1_800.0
_HEALTHY_SECONDS = 60.0


def problems_of(stack: DagsterStack) -> list[str]:
    """Return what is not well with an instance on which nothing should be going on, in words."""
    with stack.instance() as instance:
        # Heartbeats come now and then.
        well = wait_for(lambda: all_daemons_healthy(instance), seconds=_HEALTHY_SECONDS, poll=1)
        found = [] if well else ["a daemon does not report"]
        under_way = instance.get_runs_count(dg.RunsFilter(statuses=UNDER_WAY))
        failed = instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
        found += [f"{under_way} runs are queued or under way"] * bool(under_way)
        found += [f"{failed} runs failed"] * bool(failed)
    return found


def _backfill(world: World, storage: Storage) -> list[Figure]:
    shards = SHARDS if world.size >= SMALL else SHARDS_PER_RUN
    vod_ids = [n for shard in range(shards) for n in videos_of_shard(world, shard, VIDEOS_PER_SHARD)]
    world.say(f"{storage}: a backfill of {shards} shards with {len(vod_ids)} due videos")
    home = world.scratch / storage / "home"
    with (
        due_at_upstream(world, vod_ids, home, **FREE, batch_size=VIDEOS_PER_SHARD) as (_, environment),
        quiet_stack(world.scratch / storage / "dagster", environment, storage=storage) as stack,
    ):
        before, began = bytes_of(stack), time.perf_counter()
        backfill = stack.launch_backfill(CHAIN_ASSETS, [partition_key(shard) for shard in range(shards)])
        status = stack.wait_for_backfill(backfill, seconds=_BACKFILL_SECONDS)
        seconds = time.perf_counter() - began
        grown = bytes_of(stack) - before
        with stack.instance() as instance:
            runs = instance.get_runs_count()
        signs = problems_of(stack) + ([] if status == "COMPLETED_SUCCESS" else [f"the backfill is {status}"])
        return [
            Figure(f"backfill, {storage}", seconds, "s", note=f"{shards} shards, {runs} runs, through the daemon"),
            Figure(
                f"signs of illness after it, {storage}",
                len(signs),
                "",
                Target(most=0),
                note="; ".join(signs) or "daemons report, backfill succeeded, nothing queued, stuck or failed",
            ),
            Figure(
                f"history per 1,000 videos, {storage}",
                grown / len(vod_ids) * 1000 / 1e6,
                "MB",
                note=f"{grown / runs / 1e3:.0f} KB a run of {len(vod_ids) // runs} videos",
            ),
            *_pruned(world, stack, shards),
        ]


def _pruned(world: World, stack: DagsterStack, shards: int) -> list[Figure]:
    real = launch_chain(stack, 0, 0)
    wait_for_runs(stack, real)
    now = datetime.now(UTC)
    old = now - timedelta(days=HISTORY_DAYS + 1)
    world.say(f"{stack.storage}: {OLD_RUNS} runs past their days are pruned")
    with stack.instance() as instance:
        clones = clone_runs(instance, real, [old - timedelta(minutes=15 * n) for n in range(OLD_RUNS)])
        # Copied last, so that these hold what the asset pages show, and nobody needs the old ones.
        clone_runs(instance, real, [now - timedelta(minutes=15 * n) for n in range(YOUNG_RUNS)])
        runs = instance.get_runs_count()
    full, rows = bytes_of(stack), rows_of(stack)
    prune = stack.launch("prune_history", config={"ops": {"prune": {"config": {"dry_run": False}}}})
    wait_for_runs(stack, prune)
    with stack.instance() as instance:
        record = instance.get_run_record_by_id(prune)
        left = instance.run_storage.get_run_ids(filters=dg.RunsFilter(run_ids=clones))
        missing = [
            f"{asset} {shard}"
            for asset in CHAIN_ASSETS
            for shard in sorted(
                {partition_key(shard) for shard in range(shards)}
                - instance.get_materialized_partitions(dg.AssetKey(asset))
            )
        ]
        kept = instance.get_runs_count()
    after, freed = rows_of(stack), full - bytes_of(stack)
    seconds = (record.end_time or 0) - (record.start_time or 0) if record else 0.0
    unpruned = [name for name in ("event_logs", "asset_check_executions", "run_tags") if after[name] >= rows[name]]
    remains = len(left) + len(run_files(stack) & set(clones)) + len(missing) + len(unpruned)
    return [
        Figure(
            f"remains of old runs, {stack.storage}",
            remains,
            "",
            Target(most=0),
            note=f"runs, files and rows of {OLD_RUNS} runs past their days, and shards that would show as never made; "
            f"{kept} of {runs} runs are kept",
        ),
        Figure(f"pruning a run, {stack.storage}", seconds * 1000 / OLD_RUNS, "ms"),
        Figure(
            f"freed per pruned run, {stack.storage}",
            freed / OLD_RUNS / 1e3,
            "KB",
            note="on disk" if stack.storage == "sqlite" else "after the server's vacuum",
        ),
    ]


def _measure(world: World) -> list[Figure]:
    return [*_backfill(world, "postgres"), *_backfill(world, "sqlite")]


MEASURES = (
    Measure(
        "instance",
        "What a backfill of all shards leaves in Dagster's instance, and what pruning gives.",
        _measure,
        (SMALL,),
    ),
)
