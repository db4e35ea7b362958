"""What a backfill of the whole library leaves in Dagster's instance."""

from __future__ import annotations

import time
from pathlib import Path

import dagster as dg
from dagster._daemon.controller import all_daemons_healthy
from sqlalchemy import URL, NullPool, create_engine, text

from douban_pipeline.dagster_kit.runs import UNDER_WAY
from douban_pipeline.douban.partitions import SHARDS_PER_RUN, partition_key
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.benchmarks.measuring import SMALL, Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.stack import (
    CHAIN_ASSETS,
    FREE,
    due_at_upstream,
    quiet_stack,
    videos_of_shard,
)
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack, Storage
from douban_pipeline_tests.harness.rig.waiting import wait_for

VIDEOS_PER_SHARD = 16
_BACKFILL_SECONDS = 1_800.0
_HEALTHY_SECONDS = 60.0


def bytes_of(stack: DagsterStack) -> int:
    """Return the bytes that a stack's history takes: its tables or SQLite files, and what runs printed."""
    folders = [stack.home / "storage"]
    if stack.storage == "sqlite":
        folders += [stack.home / "history", stack.home / "schedules"]
        return sum(_size(folder) for folder in folders)
    engine = create_engine(_postgres(stack), poolclass=NullPool)
    with engine.connect() as connection:
        # What was deleted is gone once it is vacuumed, as the server does by itself.
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM FULL"))
        tables = connection.execute(
            text(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = :public"
            ).bindparams(public=connection.execute(text("SELECT 'public'::regnamespace::oid")).scalar())
        ).scalar()
    return int(tables or 0) + sum(_size(folder) for folder in folders)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _postgres(stack: DagsterStack) -> URL:
    given = stack.environment
    return URL.create(
        "postgresql+psycopg2",
        given["DAGSTER_PG_USERNAME"] or None,
        given["DAGSTER_PG_PASSWORD"] or None,
        given["DAGSTER_PG_HOST"],
        int(given["DAGSTER_PG_PORT"]),
        given["DAGSTER_PG_DB"],
    )


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
        ]


def _measure(world: World) -> list[Figure]:
    return [*_backfill(world, "postgres"), *_backfill(world, "sqlite")]


MEASURES = (
    Measure(
        "instance",
        "What a backfill of all shards leaves in Dagster's instance.",
        _measure,
        (SMALL,),
    ),
)
