"""The gate of one process: the rules of every gate, and no database."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from douban_pipeline.core.errors import GateUnreadable
from douban_pipeline.core.gate_memory import MemoryGate
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock


@pytest.fixture
def gate(clock: FakeClock) -> MemoryGate:
    made = MemoryGate(clock)
    made.configure("tmdb", 60, 1)
    return made


def test_limits_change_and_counters_stay(gate: MemoryGate):
    with gate.slot("tmdb"):
        pass
    gate.configure("tmdb", 120, 5, requests_per_day=9)
    [status] = gate.status()
    assert (status.granted, status.requests_per_minute, status.concurrency, status.requests_per_day) == (1, 120, 5, 9)
    with pytest.raises(ValueError, match="0 at a time"):
        gate.configure("tmdb", 60, 0)


def test_an_unknown_source_gets_nothing(gate: MemoryGate):
    with pytest.raises(GateUnreadable), gate.slot("imdb"):
        pass
    assert not gate.was_unhealthy("imdb", gate.status()[0].updated_at)


@pytest.mark.parametrize(("at_risk", "at_once"), [(10, 10), (64, 30)])
def test_as_many_are_under_way_as_may_be_lost_to_an_outage(clock: FakeClock, at_risk: int, at_once: int):
    gate = MemoryGate(clock, at_risk=at_risk)
    gate.configure("tmdb", 60_000, 64)
    started = clock.now()
    with ExitStack() as calls:
        for _ in range(at_once):
            calls.enter_context(gate.slot("tmdb", urgent=True))
        assert (clock.now() - started).total_seconds() < 1
        if at_risk == at_once:
            calls.enter_context(gate.slot("tmdb", urgent=True))
            # Not before the place of one that never ended is free again.
            assert (clock.now() - started).total_seconds() > 100


def test_no_two_threads_get_one_slot(clock: FakeClock):
    gate = MemoryGate(clock)
    gate.configure("tmdb", 60_000, 4)
    inside, most, lock = 0, 0, threading.Lock()

    def call() -> None:
        nonlocal inside, most
        for _ in range(20):
            with gate.slot("tmdb", urgent=True):
                with lock:
                    inside += 1
                    most = max(most, inside)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gate.status()[0].granted == 160
    assert most <= 4
