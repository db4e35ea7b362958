"""A backfill over all shards by two Celery workers, each a process as on a host of its own, at a tight limit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import dagster as dg
from sqlalchemy import func, select

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.partitions import partition_key
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline_tests.harness.benchmarks.due_batch import due_at_upstream, videos_of_shard
from douban_pipeline_tests.harness.benchmarks.measuring import SMALL, Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.requests_seen import (
    Request,
    TimedReplay,
    most_within,
    used_share,
)
from douban_pipeline_tests.harness.benchmarks.stack_environment import stop_instigators
from douban_pipeline_tests.harness.rig.celery_workers import REDIS, CeleryWorkers, broker_url
from douban_pipeline_tests.harness.rig.dagster_stack import DagsterStack

NAMES = ("first", "second")
PER_SHARD = 1
"""Due videos of each shard."""
RATE = 60
"""Requests a minute that each source is allowed, as public ones are: two workers have to share them."""
MINUTE = 60.0
CHAIN_ASSETS = ("due_videos", "search_candidates", "scored_matches", "synced_fields", "ai_intros")
_SECONDS = 900.0
_TWO_AT_A_TIME = {"runs": {"max_concurrent_runs": len(NAMES)}}
"""In place of the limits of dagster.yaml, by which the runs of a backfill come one after another."""


@dataclass(slots=True)
class _Seen:
    """What came of the backfill."""

    status: str = ""
    wall: float = 0.0
    runs: Counter[str] = field(default_factory=Counter)
    by_worker: Counter[str] = field(default_factory=Counter)
    requests: list[Request] = field(default_factory=list)


def _measure(world: World) -> list[Figure]:
    vod_ids = [vod_id for shard in range(SHARDS) for vod_id in videos_of_shard(world, shard, PER_SHARD)]
    world.say(f"{len(vod_ids)} videos made due in {SHARDS} shards")
    paced = {
        "douban_requests_per_minute": RATE,
        "search_requests_per_minute": RATE,
        "batch_size": PER_SHARD,
        "run_seconds": 600,
    }
    with due_at_upstream(world, vod_ids, world.scratch / "home", **paced) as (upstream, environment):
        seen = _backfill(world, upstream, environment)
        done = _finished_tasks(world.services, vod_ids)
        left = _left_undone(world.services, set(vod_ids) - set(done))
    world.say(f"left undone: {left or 'none'}")
    return _figures(seen, done, len(vod_ids), left)


def _backfill(world: World, upstream: TimedReplay, environment: Mapping[str, str]) -> _Seen:
    workers = CeleryWorkers(broker_url(REDIS), concurrency=_TWO_AT_A_TIME)
    seen = _Seen()
    with ExitStack() as closing:
        stack = DagsterStack(
            world.scratch / "dagster", {**environment, **workers.environment}, changes=workers.changes, daemon=False
        )
        closing.enter_context(stack)
        closing.enter_context(workers)
        stop_instigators(stack)
        workers.start(stack, *NAMES)
        stack.daemon.start()
        closing.callback(stack.daemon.stop)
        began = time.perf_counter()
        backfill = stack.launch_backfill(CHAIN_ASSETS, [partition_key(shard) for shard in range(SHARDS)])
        seen.status = stack.wait_for_backfill(backfill, seconds=_SECONDS)
        seen.wall = time.perf_counter() - began
        with stack.instance() as instance:
            seen.runs.update(
                run.status.value for run in instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": backfill}))
            )
        seen.by_worker.update({name: len(workers.tasks_of(name)) for name in NAMES})
        seen.requests = list(upstream.seen)
    world.say(f"{seen.status} after {seen.wall:.0f} s: {dict(seen.by_worker)}, {len(seen.requests)} requests")
    return seen


def _finished_tasks(services: Services, vod_ids: Collection[int]) -> Counter[int]:
    """Return how many tasks of each video were closed with success."""
    task, found = services.tables.task, Counter[int]()
    with reading(services.engine) as connection:
        for some in chunks(sorted(vod_ids)):
            query = (
                select(task.c.vod_id, func.count().label("tasks"))
                .where(task.c.vod_id.in_(some), task.c.status.in_((TaskStatus.SUCCESS, TaskStatus.SKIP)))
                .group_by(task.c.vod_id)
            )
            found.update({row.vod_id: row.tasks for row in connection.execute(query)})
    return found


def _left_undone(services: Services, vod_ids: Collection[int]) -> str:
    """Return what the tasks and states of videos say that were left undone; empty if there are none."""
    task, video, found = services.tables.task, services.tables.video, []
    columns = (task.c.vod_id, task.c.task_type, task.c.stage, task.c.status, task.c.attempts, task.c.last_error)
    with reading(services.engine) as connection:
        for row in connection.execute(select(*columns).where(task.c.vod_id.in_(vod_ids))):
            found.append(" ".join(map(str, row)))
        named = (video.c.vod_id, video.c.douban_review_status, video.c.douban_next_sync_at)
        for row in connection.execute(select(*named).where(video.c.vod_id.in_(vod_ids))):
            found.append(" ".join(map(str, row)))
    return "; ".join(found)


def _figures(seen: _Seen, done: Counter[int], videos: int, left: str) -> list[Figure]:
    douban = [request.began for request in seen.requests if request.path == "/douban.php"]
    search = [request.began for request in seen.requests if request.path == "/search"]
    runs = sum(seen.runs.values())
    reported = ", ".join(f"{status} {count}" for status, count in sorted(seen.runs.items()))
    return [
        Figure(
            "runs that succeeded",
            100 * seen.runs["SUCCESS"] / max(runs, 1),
            "%",
            Target(least=100),
            note=f"backfill {seen.status}; runs: {reported}",
        ),
        Figure("wall time", seen.wall, "s", note=f"{videos} videos, {runs} runs, {len(seen.requests)} requests"),
        Figure(
            "least runs of a worker",
            min(seen.by_worker[name] for name in NAMES),
            "",
            Target(least=1),
            note=", ".join(f"{name} {seen.by_worker[name]}" for name in NAMES),
        ),
        *_kept("Douban", douban),
        *_kept("search", search),
        Figure(
            "videos done once",
            100 * sum(count == 1 for count in done.values()) / max(videos, 1),
            "%",
            Target(least=100),
            note=f"{sum(count > 1 for count in done.values())} twice, {videos - len(done)} not at all {left}".strip(),
        ),
    ]


def _kept(source: str, moments: Sequence[float]) -> list[Figure]:
    if len(moments) < 2:
        return []
    share = used_share(moments, min(moments), max(moments), RATE)
    return [
        Figure(
            f"most {source} requests in any minute",
            most_within(moments, MINUTE),
            "",
            Target(most=RATE),
            note=f"{RATE} allowed over both workers",
        ),
        Figure(f"{source} budget used", 100 * share, "%", note="from its first request to its last"),
    ]


MEASURES = (
    Measure("workers", "A backfill over 64 shards by two Celery workers that share one limit.", _measure, (SMALL,)),
)
