"""Six processes and one source over real HTTP: all of the limit is used, never more, and everyone has a share.

The processes are real, and so are the databases; time is virtual and shared by all of them. What is audited is what
the upstream saw, not what the gate believes.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.gate import Gate
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline_tests.core.gate_worker import FIRST, work
from douban_pipeline_tests.harness.fixtures.clocks import START, ClockManager
from douban_pipeline_tests.harness.fixtures.library import processes
from douban_pipeline_tests.stand_ins.replay import ReplayServer

WORKERS = 6


@pytest.fixture(scope="module")
def manager() -> Iterator[ClockManager]:
    """What serves clocks to all processes."""
    with ClockManager(ctx=processes()) as running:
        yield running


def seen_upstream(
    manager: Any, url: str, *, minutes: int, rate: int, concurrency: int, killed_at: datetime | None = None
) -> list[tuple[float, int]]:
    """Let six processes work, and return when (seconds after START) which of them arrived at the upstream."""
    engine, tables = open_engine(url), own_tables("mac_")
    tables.metadata.create_all(engine, tables=[tables.gate, tables.snapshot])
    clock: Clock = manager.SharedClock(START, WORKERS)
    Gate(engine, tables.gate, clock).configure("douban", rate, concurrency)
    until = START + timedelta(minutes=minutes)
    with ReplayServer([], now=lambda: clock.now().timestamp()) as upstream:
        crew: list[BaseProcess] = [
            processes().Process(
                target=work,
                args=(url, clock, upstream.douban_url, worker, until, killed_at if worker == 0 else None),
                daemon=True,
            )
            for worker in range(WORKERS)
        ]
        for process in crew:
            process.start()
        for process in crew:
            process.join(timeout=60)
            if process.exitcode == -signal.SIGKILL:
                clock.leave()  # type: ignore[attr-defined]
        assert [process.exitcode for process in crew] == [-signal.SIGKILL if killed_at else 0, *[0] * (WORKERS - 1)]
        log = upstream.requests.describe()["douban"]
    [status] = Gate(engine, tables.gate, clock).status()
    engine.dispose()
    assert (status.granted, status.in_use, status.waiting) == (log["count"], 0, 0)
    arrivals = zip(log["times"], log["keys"], strict=True)
    found = sorted((moment - START.timestamp(), int(key) - FIRST) for moment, key in arrivals)
    return [(at, worker) for at, worker in found if at < minutes * 60]


def assert_within(arrivals: list[tuple[float, int]], rate: int) -> None:
    """No 60 seconds, wherever they begin, hold more than ``rate`` requests."""
    times = [at for at, _ in arrivals]
    assert len(times) > rate
    assert min(later - earlier for earlier, later in zip(times, times[rate:], strict=False)) >= 60


@pytest.mark.parametrize(("rate", "concurrency", "minutes"), [(30, 2, 3), (60, 5, 2)])
def test_six_processes_use_the_whole_limit_never_more_and_share_it(
    manager: ClockManager, database_url: str, rate: int, concurrency: int, minutes: int
) -> None:
    arrivals = seen_upstream(manager, database_url, minutes=minutes, rate=rate, concurrency=concurrency)
    assert_within(arrivals, rate)
    assert len(arrivals) >= 0.95 * rate * minutes
    shares = Counter(worker for _, worker in arrivals)
    assert min(shares[worker] for worker in range(WORKERS)) >= 0.5 * len(arrivals) / WORKERS


def test_a_process_killed_with_a_place_in_its_hands_does_not_stop_the_others(
    manager: ClockManager, database_url: str
) -> None:
    killed_at = START + timedelta(seconds=70)
    arrivals = seen_upstream(manager, database_url, minutes=3, rate=30, concurrency=2, killed_at=killed_at)
    assert_within(arrivals, 30)
    assert max(at for at, worker in arrivals if worker == 0) < 90
    assert len(arrivals) >= 0.95 * 30 * 3
    shares = Counter(worker for at, worker in arrivals if at >= 90)
    assert min(shares[worker] for worker in range(1, WORKERS)) >= 0.5 * sum(shares.values()) / (WORKERS - 1)
