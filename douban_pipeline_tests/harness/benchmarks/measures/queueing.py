"""Putting what is due into the queue, and taking it out again by several processes at once."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

from sqlalchemy import delete, func, select

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import open_engine, reading, run_transaction
from douban_pipeline.core.owner import owner_name
from douban_pipeline.douban.chain.due.due_videos import DueScope, DueVideos
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.tables import SHARDS, own_tables
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import NewTask
from douban_pipeline_tests.harness.benchmarks.measuring import (
    Figure,
    Measure,
    Samples,
    Target,
    World,
    bare_cursor,
    when_due,
)

_START_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Workload:
    """Which queue, by whom, and how many tasks a process leases at a time."""

    url: str
    prefix: str
    run_id: str
    batch: int


@dataclass(frozen=True, slots=True)
class Done:
    """What the processes did."""

    seconds: float
    leased: list[list[int]]
    in_vain: int


def lease_and_finish(work: Workload, processes: int) -> Done:
    """Have ``processes`` lease and finish, shard after shard, one transaction a task, until nothing is left."""
    results = _at_once(_lease_all, [(work, number) for number in range(processes)])
    began, ended = min(item[0] for item in results), max(item[1] for item in results)
    return Done(ended - began, [item[2] for item in results], sum(item[3] for item in results))


def bare_updates(work: Workload, processes: int, task_ids: Sequence[int]) -> float:
    """Have ``processes`` update as many tasks by key, a transaction each; return the seconds."""
    parts = [task_ids[number::processes] for number in range(processes)]
    results = _at_once(_bare_updates, [(work, part) for part in parts])
    return max(item[1] for item in results) - min(item[0] for item in results)


def _at_once(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(arguments))
    with context.Pool(len(arguments), _wait_at, (barrier,)) as pool:
        calls = [pool.apply_async(function, each) for each in arguments]
        return [call.get() for call in calls]


_barriers: list[Barrier] = []


def _wait_at(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _wait_for_the_others() -> None:
    _barriers[0].wait(_START_SECONDS)


def _lease_all(work: Workload, number: int) -> tuple[float, float, list[int], int]:
    engine, tables = open_engine(work.url), own_tables(work.prefix)
    owner = owner_name(f"{work.run_id}-{number}")
    queue = TaskQueue(engine, tables, SystemClock(), owner=owner, lease=timedelta(minutes=15))
    left = f"SELECT 1 FROM {tables.task.name} WHERE shard = %s AND status = 'PENDING' LIMIT 1"
    done: list[int] = []
    in_vain = 0
    # Two begin with the same shard, as when somebody launches by hand what a sensor has launched.
    first = number // 2 * SHARDS // 2
    with engine.connect():
        _wait_for_the_others()
    began = time.monotonic()
    for position in range(SHARDS):
        shard = (first + position) % SHARDS
        while True:
            leased = queue.lease([shard], TaskStage.SEARCH, limit=work.batch)
            for task in leased:
                done.append(task.task_id)
                run_transaction(engine, partial(queue.finish, task_id=task.task_id, status=TaskStatus.SUCCESS))
            if leased:
                continue
            with bare_cursor(engine) as cursor:
                cursor.execute(left, (shard,))
                if cursor.fetchone() is None:
                    break
            in_vain += 1
    ended = time.monotonic()
    engine.dispose()
    return began, ended, done, in_vain


def _bare_updates(work: Workload, task_ids: Sequence[int]) -> tuple[float, float]:
    engine, table = open_engine(work.url), own_tables(work.prefix).task.name
    connection = engine.raw_connection()
    with connection.cursor() as cursor:  # type: ignore[attr-defined]
        _wait_for_the_others()
        began = time.monotonic()
        for task_id in task_ids:
            cursor.execute(f"UPDATE {table} SET status = 'FAIL', finished_at = NOW(6) WHERE task_id = %s", (task_id,))
            connection.commit()
        ended = time.monotonic()
    connection.close()
    engine.dispose()
    return began, ended


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
