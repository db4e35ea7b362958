"""Processes that take work out of one queue at once."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import open_engine, run_transaction
from douban_pipeline.core.owner import owner_name
from douban_pipeline.douban.store.states import TaskStage, TaskStatus
from douban_pipeline.douban.store.tables import SHARDS, own_tables
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline_tests.harness.benchmarks.bare import bare_cursor

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
    """What the processes did.

    Attributes:
        seconds: From the first's start to the last's end.
        leased: The tasks that each was given, in its order.
        in_vain: How often one got none, though some were left: another was quicker.
    """

    seconds: float
    leased: list[list[int]]
    in_vain: int


def lease_and_finish(work: Workload, processes: int) -> Done:
    """Have ``processes`` lease and finish, shard after shard, one transaction a task, until nothing is left."""
    results = _at_once(_lease_and_finish, [(work, number) for number in range(processes)])
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


def _lease_and_finish(work: Workload, number: int) -> tuple[float, float, list[int], int]:
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
