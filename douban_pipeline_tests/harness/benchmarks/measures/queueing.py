"""Putting what is due into the queue, and taking it out again by several processes at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import delete, func, select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.due.due_videos import DueScope, DueVideos
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline_tests.harness.benchmarks.bare import bare_cursor
from douban_pipeline_tests.harness.benchmarks.clocks import when_due
from douban_pipeline_tests.harness.benchmarks.contention import Workload, bare_updates, lease_and_finish
from douban_pipeline_tests.harness.benchmarks.measuring import (
    Figure,
    Measure,
    Samples,
    Target,
    World,
)

RUN = "bench"
TASKS, PROCESSES = 10_000, 4
_BATCH = 1_000
_SHARES = {"1 % due": 0.01, "10 % due": 0.1, "all due": 1.0}


def due(world: World) -> list[Figure]:
    """Select and queue the due videos of each shard in turn, as a run of that shard begins."""
    figures = []
    for name, share in _SHARES.items():
        world.say(f"due videos of each shard, {name}")
        services = when_due(world, share)
        with _emptied_queue(world):
            ours, taken = _take(services)
        bare = _bare_select(services)
        note = f"{taken / SHARDS:.0f} videos a shard taken at {world.size:,}, the queue's inserts among it"
        against = "bare SELECT … LIMIT by the index"
        figures += [
            Figure(f"one shard, {name}, p50", ours.p50, "ms", None, bare.p50, against),
            Figure(f"one shard, {name}, p95", ours.p95, "ms", Target(most=50, growth=2), bare.p95, against, note),
        ]
    return figures


def _take(services: Services) -> tuple[Samples, int]:
    samples, taken = Samples(), 0
    due = DueVideos(services)
    queue = services.queue(RUN)
    for shard in range(SHARDS):
        with samples.one():
            report = due.take(queue, [shard], scope=DueScope.due, limit=services.settings.batch_size, run_id=RUN)
        taken += len(report.taken)
    return samples, taken


def _bare_select(services: Services) -> Samples:
    samples = Samples()
    query = (
        f"SELECT * FROM {services.tables.video.name} WHERE shard = %s AND douban_next_sync_at <= %s "
        "ORDER BY douban_next_sync_at, vod_id LIMIT %s"
    )
    for shard in range(SHARDS):
        with samples.one(), bare_cursor(services.engine) as cursor:
            cursor.execute(query, (shard, services.clock.now().replace(tzinfo=None), services.settings.batch_size))
            cursor.fetchall()
    return samples


def contention(world: World) -> list[Figure]:
    """Have four processes lease and finish tasks, two and two of them of the same shard."""
    services, count = world.services, min(TASKS, world.size)
    task = services.tables.task
    work = Workload(services.settings.library_url, services.settings.table_prefix, RUN, services.settings.batch_size)
    with _emptied_queue(world):
        for start in range(0, count, _BATCH):
            with services.engine.begin() as connection:
                services.queue(RUN).enqueue(connection, _tasks(count)[start : start + _BATCH], run_id=RUN)
        with reading(services.engine) as connection:
            ids = list(connection.execute(select(task.c.task_id)).scalars())
        world.say(f"{count:,} tasks leased and finished by {PROCESSES} processes")
        done = lease_and_finish(work, PROCESSES)
        with reading(services.engine) as connection:
            closed = select(func.count()).where(
                task.c.status == "SUCCESS", task.c.open_key.is_(None), task.c.lease_owner.is_(None)
            )
            finished = connection.execute(closed).scalar_one()
        world.say("bare updates by as many processes")
        bare = bare_updates(work, PROCESSES, ids)
    twice = sum(map(len, done.leased)) - len(set().union(*map(set, done.leased)))
    shares = ", ".join(f"{len(part):,}" for part in done.leased)
    return [
        Figure(
            "leased and finished",
            count / done.seconds,
            "/s",
            Target(least=1_000),
            count / bare,
            "bare UPDATE by key and COMMIT, as many processes",
            f"a transaction a task; they did {shares}; {done.in_vain} looks in vain at {world.size:,}",
        ),
        Figure("leased twice", twice, "", Target(most=0)),
        Figure("not finished", len(ids) - finished, "", Target(most=0)),
    ]


def _tasks(count: int) -> list[NewTask]:
    return [
        NewTask(vod_id, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH, 10 * (vod_id % 5)) for vod_id in range(1, count + 1)
    ]


@contextmanager
def _emptied_queue(world: World) -> Iterator[None]:
    """Have nothing of ours in the queue afterwards; the library's queue is empty before."""
    engine, task = world.services.engine, world.services.tables.task
    try:
        yield
    finally:
        with engine.begin() as connection:
            connection.execute(delete(task).where(task.c.run_id == RUN))


MEASURES = (
    Measure("due", "selects and queues what is due in one shard", due),
    Measure("contention", f"four processes lease and finish {TASKS:,} tasks", contention),
)
