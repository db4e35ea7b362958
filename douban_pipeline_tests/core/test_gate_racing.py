"""Threads and processes that ask the gate at the same moment, and one that is killed with a slot in its hands."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from douban_pipeline.core.database import open_engine
from douban_pipeline.core.errors import GateClosed, QuotaSpent, SourceError
from douban_pipeline.core.gate import Gate
from douban_pipeline.core.gate_rules import ON_THE_WAY, GateState
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline_tests.harness.fixtures.clocks import START, FakeClock
from douban_pipeline_tests.harness.fixtures.library import processes
from douban_pipeline_tests.harness.fixtures.scripted_source import HOLD, House


def race(house: House, racers: int) -> list[type[SourceError] | None]:
    """Let threads call at the same moment; whoever gets through stays until all others were answered."""
    ready, answered = threading.Barrier(racers), threading.Semaphore(0)
    outcomes: list[type[SourceError] | None] = []

    def run() -> None:
        ready.wait(30)
        try:
            with house.gate.slot("douban"):
                outcomes.append(None)
                answered.release()
                assert finished.wait(30)
        except SourceError as error:
            outcomes.append(type(error))
            answered.release()

    finished = threading.Event()
    threads = [threading.Thread(target=run, daemon=True) for _ in range(racers)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert answered.acquire(timeout=30)
    finished.set()
    for thread in threads:
        thread.join(30)
    return outcomes


def test_of_many_that_race_exactly_one_is_the_probe(any_house: House) -> None:
    any_house.gate.configure("douban", 60, 20)
    any_house.gate.open("douban", START, "维护")
    assert Counter(race(any_house, 8)) == {None: 1, GateClosed: 7}
    assert any_house.status().state is GateState.CLOSED


def test_of_many_that_race_no_more_than_the_quota_get_through(any_house: House) -> None:
    any_house.gate.configure("douban", 60_000, 20, requests_per_day=5)
    assert Counter(race(any_house, 9)) == {None: 5, QuotaSpent: 4}
    assert (any_house.status().used_today, any_house.status().in_use) == (5, 0)


LASTS = timedelta(seconds=20)


def ask(url: str, calls: int, hold: bool, lasts: timedelta | None, pipe: Connection) -> None:
    """Take a slot ``calls`` times as a process of its own, and send when; ``hold`` it until told to go on."""
    gate = Gate(open_engine(url), own_tables("mac_").gate, FakeClock(), hold=timedelta(seconds=60))
    pipe.send("ready")
    pipe.recv()
    times = []
    for _ in range(calls):
        with gate.slot("douban", lasts=lasts) as slot:
            times.append(slot.granted_at)
            if hold:
                pipe.send("holding")
                pipe.recv()
    pipe.send(times)


@dataclass(frozen=True)
class Asking:
    """A process that asks at the gate of a house, ready to begin when it is told to."""

    process: BaseProcess
    pipe: Connection

    @classmethod
    def start(cls, house: House, calls: int, *, hold: bool = False, lasts: timedelta | None = None) -> Asking:
        ours, its = processes().Pipe()
        url = house.engine.url.render_as_string(hide_password=False)
        process = processes().Process(target=ask, args=(url, calls, hold, lasts, its))
        process.start()
        its.close()
        asking = cls(process, ours)
        assert asking.receive() == "ready"
        return asking

    def go(self) -> None:
        self.pipe.send("go on")

    def receive(self) -> Any:
        assert self.pipe.poll(60), "the process is stuck"
        return self.pipe.recv()

    def end(self) -> None:
        self.pipe.close()
        self.process.join(30)
        self.process.close()


@pytest.mark.parametrize(
    ("known_to_be_gone", "lasts", "waited"),
    [(True, LASTS, LASTS + ON_THE_WAY), (True, None, HOLD), (False, LASTS, HOLD)],
    ids=["of this machine", "of this machine, its call unbounded", "of another machine"],
)
def test_a_killed_process_frees_its_place_when_its_source_surely_answers_it_no_more(
    any_house: House,
    known_to_be_gone: bool,
    lasts: timedelta | None,
    waited: timedelta,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not known_to_be_gone:
        monkeypatch.setattr("douban_pipeline.core.gate.is_dead", lambda owner: False)
    any_house.gate.configure("douban", 60, 1)
    asking = Asking.start(any_house, 1, hold=True, lasts=lasts)
    asking.go()
    assert asking.receive() == "holding"
    asking.process.kill()
    asking.end()
    assert any_house.status().in_use == 1
    # Only the hold tells of a process elsewhere.
    with any_house.gate.slot("douban") as slot:
        assert waited <= slot.granted_at - START < waited + timedelta(seconds=2)
    assert any_house.status().in_use == 0


def test_of_one_process_one_thread_at_a_time_asks_for_its_turn(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.gate.configure("douban", 6000, 8)
    wait = Gate._wait
    asking: list[int] = []
    most = 0

    def counted(self: Gate, *args: Any, **options: Any) -> datetime:
        nonlocal most
        asking.append(threading.get_ident())
        most = max(most, len(asking))
        threading.Event().wait(0.001)  # lets the others try
        try:
            return wait(self, *args, **options)
        finally:
            asking.remove(threading.get_ident())

    monkeypatch.setattr(Gate, "_wait", counted)
    all_in = threading.Barrier(8, timeout=30)

    def under_way(_number: int) -> None:
        with house.gate.slot("douban"):
            all_in.wait()  # who calls keeps nobody from asking

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(under_way, range(8)))
    assert most == 1
