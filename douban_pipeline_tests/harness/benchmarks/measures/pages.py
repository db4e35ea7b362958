"""How fast the asset pages open on a history of a backfill and a day of runs."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta

from douban_pipeline.douban.partitions import SHARDS_PER_RUN
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.benchmarks.browsing import browser, chromium, seconds_to_show
from douban_pipeline_tests.harness.benchmarks.cloned_runs import clone_runs
from douban_pipeline_tests.harness.benchmarks.measuring import SMALL, Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.stack import (
    FREE,
    due_at_upstream,
    launch_chain,
    quiet_stack,
    videos_of_shard,
    wait_for_runs,
)
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack, Storage

TIMES = 5
VIDEOS_PER_SHARD = 8
CHAIN_RUNS, HEALTH_RUNS = 720, 288
"""Of a busy day: a run of the chain every two minutes, and a look at the pipeline's health every five."""
PAGES = ("synced_fields", "review_queue")


def _measure(world: World) -> list[Figure]:
    return [*_on(world, "postgres"), *_on(world, "sqlite")]


def _on(world: World, storage: Storage) -> list[Figure]:
    vod_ids = [n for shard in range(SHARDS) for n in videos_of_shard(world, shard, VIDEOS_PER_SHARD)]
    folder = world.scratch / storage
    wanted = {**FREE, "batch_size": VIDEOS_PER_SHARD}
    with (
        due_at_upstream(world, vod_ids, folder / "home", **wanted) as (_, environment),
        quiet_stack(folder / "dagster", environment, storage=storage) as stack,
    ):
        return _seen(world, stack, _make_history(world, stack))


def _make_history(world: World, stack: DagsterStack) -> int:
    """Let the chain pass over all shards, renew the reports, and add a day of runs; return how many runs there are."""
    world.say(f"{stack.storage}: the chain passes over all shards")
    for first in range(0, SHARDS if world.size >= SMALL else SHARDS_PER_RUN, SHARDS_PER_RUN):
        wait_for_runs(stack, launch_chain(stack, first, first + SHARDS_PER_RUN - 1))
    small, reports, health = launch_chain(stack, 0, 0), stack.launch("nightly_reports"), stack.launch("watch_health")
    wait_for_runs(stack, small, reports, health)
    count = {small: CHAIN_RUNS, health: HEALTH_RUNS} if world.size >= SMALL else {small: 60, health: 20}
    world.say(f"{stack.storage}: {sum(count.values())} runs of a day are added")
    now = datetime.now(UTC)
    with stack.instance() as instance:
        for run_id, copies in count.items():
            clone_runs(instance, run_id, [now - timedelta(days=1) * part / copies for part in range(copies, 0, -1)])
        return instance.get_runs_count()


def _seen(world: World, stack: DagsterStack, runs: int) -> list[Figure]:
    path = chromium()
    if path is None:
        world.say("no Chromium here: pages are not opened")
        return []
    figures = []
    with browser(path) as started:
        for name in PAGES:
            view = "?view=partitions" if name == "synced_fields" else ""
            for warm in (False, True):
                url = f"{stack.url}/assets/{name}{view}"
                taken = [seconds_to_show(started, url, warm=warm) for _ in range(TIMES)]
                figures.append(
                    Figure(
                        f"{name} in Chromium, {'warm' if warm else 'cold'}, {stack.storage}",
                        statistics.median(taken),
                        "s",
                        Target(most=2),
                        note=f"from the address to the button Materialize, median of {TIMES}; history of {runs} runs",
                    )
                )
    return figures


MEASURES = (Measure("pages", "How fast asset pages open after a backfill and a day of runs.", _measure, (SMALL,)),)
