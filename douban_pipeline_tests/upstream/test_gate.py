"""The gate in a real database, shared by threads and processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, update

from douban_pipeline.catalog.database import open_engine
from douban_pipeline.catalog.tables import OwnTables, own_tables
from douban_pipeline.upstream.errors import (
    GateClosed,
    GateUnreadable,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceWall,
    SubjectMissing,
)
from douban_pipeline.upstream.gate import Gate
from douban_pipeline.upstream.gate_rules import FAILURES_TO_OPEN, GateState
from douban_pipeline_tests.clocks import START, SharedClock
from douban_pipeline_tests.upstream.conftest import HOLD, House


def call(house: House, error: BaseException | None = None) -> None:
    with house.gate.slot("douban"):
        if error is not None:
            raise error


def fail(house: House, error: BaseException) -> None:
    with pytest.raises(type(error)):
        call(house, error)


def test_calls_are_paced_on_the_injected_clock(any_house: House) -> None:
    for _ in range(4):
        call(any_house)
    assert any_house.clock.sleeps == pytest.approx([1.02] * 3)
    status = any_house.status()
    assert (status.granted, status.in_use, status.waiting) == (4, 0, 0)
    assert (status.requests_per_minute, status.concurrency) == (60.0, 2)
    assert status.state is GateState.CLOSED


def test_a_wall_closes_the_shop_until_one_probe_succeeds(any_house: House) -> None:
    fail(any_house, SourceWall("douban", "验证码"))
    with pytest.raises(GateClosed, match="验证码") as caught:
        call(any_house)
    until = caught.value.until
    assert timedelta(minutes=30) <= until - START <= timedelta(minutes=60)
    status = any_house.status()
    assert (status.state, status.open_until, status.reason) == (GateState.OPEN, until, "验证码")
    any_house.clock.sleep((until - any_house.clock.now()).total_seconds())
    with any_house.gate.slot("douban"):
        assert any_house.status().state is GateState.HALF_OPEN
        with pytest.raises(GateClosed):
            call(any_house)
    assert any_house.status().state is GateState.CLOSED
    call(any_house)


def test_each_kind_of_failure(any_house: House) -> None:
    for _ in range(FAILURES_TO_OPEN - 1):
        fail(any_house, SourceUnavailable("douban", "HTTP 500"))
    fail(any_house, SubjectMissing("douban", "条目不存在"))
    assert any_house.status().failures == 0
    for _ in range(FAILURES_TO_OPEN):
        fail(any_house, SourceUnavailable("douban", "HTTP 500"))
    with pytest.raises(GateClosed) as caught:
        call(any_house)
    any_house.clock.sleep((caught.value.until - any_house.clock.now()).total_seconds())
    fail(any_house, SourceThrottled("douban", "HTTP 429", 90))
    status = any_house.status()
    assert status.open_until == any_house.clock.now() + timedelta(seconds=90)
    any_house.clock.advance(seconds=90)
    call(any_house)
    assert any_house.status().state is GateState.CLOSED


def test_failures_with_a_long_silence_between_are_no_row(any_house: House) -> None:
    for _ in range(FAILURES_TO_OPEN - 1):
        fail(any_house, SourceUnavailable("douban", "HTTP 500"))
    any_house.clock.advance(minutes=6)
    fail(any_house, SourceUnavailable("douban", "HTTP 500"))
    assert (any_house.status().state, any_house.status().failures) == (GateState.CLOSED, 1)


def test_a_bug_says_nothing_of_the_source_and_frees_the_place(house: House) -> None:
    for _ in range(10):
        fail(house, ZeroDivisionError())
    fail(house, KeyboardInterrupt())
    status = house.status()
    assert (status.state, status.failures, status.in_use) == (GateState.CLOSED, 0, 0)


def test_an_interrupt_while_waiting_leaves_the_queue(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    call(house)
    monkeypatch.setattr(house.clock, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call(house)
    assert house.status().in_use == 0


def test_people_open_and_close(any_house: House) -> None:
    until = START + timedelta(hours=3)
    any_house.gate.open("douban", until, "网站维护")
    with pytest.raises(GateClosed, match="网站维护") as caught:
        call(any_house)
    assert caught.value.until == until
    any_house.gate.close("douban")
    call(any_house)


def test_configuring_again_keeps_the_breaker(any_house: House) -> None:
    any_house.gate.open("douban", START + timedelta(hours=3), "网站维护")
    any_house.gate.configure("douban", 30, 5)
    status = any_house.status()
    assert (status.requests_per_minute, status.concurrency, status.state) == (30.0, 5, GateState.OPEN)


@pytest.mark.parametrize(("rate", "concurrency"), [(0, 1), (-1, 1), (10, 0)])
def test_limits_out_of_range(house: House, rate: float, concurrency: int) -> None:
    with pytest.raises(ValueError, match="douban"):
        house.gate.configure("douban", rate, concurrency)


def spoil(house: House, **values: Any) -> None:
    with house.engine.begin() as connection:
        connection.execute(update(house.tables.gate).values(**values))


@pytest.mark.parametrize("how", ["no row", "no table", "holders", "state"])
def test_a_gate_that_cannot_be_read_lets_nothing_through(any_house: House, how: str) -> None:
    if how == "no table":
        any_house.tables.gate.drop(any_house.engine)
    elif how == "holders":
        spoil(any_house, holders=[{"owner": "x"}])
    elif how == "state":
        spoil(any_house, state="ajar")
    source = "nobody" if how == "no row" else "douban"
    entered = False
    with pytest.raises(GateUnreadable), any_house.gate.slot(source):
        entered = True
    assert not entered
    if how != "no row":
        with pytest.raises(GateUnreadable):
            any_house.gate.status()


def test_a_good_answer_survives_a_gate_that_breaks_meanwhile(house: House, caplog: pytest.LogCaptureFixture) -> None:
    with house.gate.slot("douban"):
        house.tables.gate.drop(house.engine)
    assert "could not give back" in caplog.text


def play(url: str, workers: int, minutes: int, rate: int, concurrency: int) -> list[tuple[int, float]]:
    """Let workers call as fast as the gate lets them, in virtual time; return who was granted when (seconds)."""
    engine: Engine = open_engine(url)
    tables: OwnTables = own_tables("mac_")
    tables.metadata.create_all(engine, tables=[tables.gate])
    clock = SharedClock()
    Gate(engine, tables, clock).configure("douban", rate, concurrency)
    granted: list[tuple[int, float]] = []
    inside = Counter[str]()
    end = START + timedelta(minutes=minutes)

    def work(worker: int) -> None:
        gate, rng = Gate(engine, tables, clock), Random(worker)
        while clock.now() < end:
            with gate.slot("douban") as slot:
                granted.append((worker, (slot.granted_at - START).total_seconds()))
                inside["now"] += 1
                assert inside["now"] <= concurrency
                clock.sleep(rng.uniform(0.3, 2.5))
                inside["now"] -= 1

    clock.run([lambda worker=worker: work(worker) for worker in range(workers)])  # type: ignore[misc]
    engine.dispose()
    return granted


def test_six_workers_use_the_whole_limit_never_more_and_share_it(database_url: str) -> None:
    minutes, rate = 3, 30
    granted = play(database_url, workers=6, minutes=minutes, rate=rate, concurrency=2)
    times = sorted(at for _, at in granted if at < minutes * 60)
    assert all(later - earlier >= 60 for earlier, later in zip(times, times[rate:], strict=False))
    assert len(times) >= 0.95 * rate * minutes
    shares = Counter(worker for worker, at in granted if at < minutes * 60)
    assert min(shares[worker] for worker in range(6)) >= 0.5 * len(times) / 6


RUNNER = """
import json, sys
from datetime import timedelta
from douban_pipeline.catalog.database import open_engine
from douban_pipeline.catalog.tables import own_tables
from douban_pipeline.upstream.gate import Gate
from douban_pipeline_tests.clocks import FakeClock
url, calls, hold = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "hold"
gate = Gate(open_engine(url), own_tables("mac_"), FakeClock(), hold=timedelta(seconds=60))
print("ready", flush=True)
sys.stdin.readline()
times = []
for _ in range(calls):
    with gate.slot("douban") as slot:
        times.append(slot.granted_at.isoformat())
        if hold:
            print("holding", flush=True)
            sys.stdin.readline()
print(json.dumps(times), flush=True)
"""


def start(url: str, calls: int, mode: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER, url, str(calls), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def end(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()
    process.wait(30)


def test_processes_at_once_never_get_the_same_slot(any_house: House, database_url: str) -> None:
    any_house.gate.configure("douban", 60, 10)
    processes = [start(database_url, 15, "run") for _ in range(3)]
    for process in processes:
        go(process)
    times: list[str] = []
    for process in processes:
        assert process.stdout is not None
        times += json.loads(process.stdout.readline())
        end(process)
    times.sort()
    assert len(times) == 45
    assert any_house.status().granted == 45
    assert any_house.status().in_use == 0
    seconds = [datetime.fromisoformat(at).timestamp() for at in times]
    assert min(later - earlier for earlier, later in pairwise(seconds)) >= 1.019


@pytest.mark.parametrize("known_to_be_gone", [True, False], ids=["of this machine", "of another machine"])
def test_a_killed_process_frees_its_place(
    any_house: House, database_url: str, known_to_be_gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not known_to_be_gone:
        monkeypatch.setattr("douban_pipeline.upstream.gate.is_dead", lambda owner: False)
    any_house.gate.configure("douban", 60, 1)
    process = start(database_url, 1, "hold")
    go(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "holding\n"
    os.kill(process.pid, signal.SIGKILL)
    end(process)
    assert any_house.status().in_use == 1
    # Only the hold tells of a process elsewhere; one that is gone from this machine frees its place at once.
    waited = timedelta(0) if known_to_be_gone else HOLD
    with any_house.gate.slot("douban") as slot:
        assert waited <= slot.granted_at - START < waited + timedelta(seconds=2)
    assert any_house.status().in_use == 0


def test_a_gate_closed_error_is_a_source_error() -> None:
    assert isinstance(GateClosed("s", "r", START), SourceError)
