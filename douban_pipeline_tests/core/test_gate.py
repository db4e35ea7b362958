"""The gate in a real database, shared by threads and processes."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
from sqlalchemy import update

from douban_pipeline.core.database import open_engine
from douban_pipeline.core.errors import (
    GateClosed,
    GateUnreadable,
    NotFound,
    QuotaSpent,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.core.gate import Gate
from douban_pipeline.core.gate_outcomes import IN_A_ROW
from douban_pipeline.core.gate_rules import ON_THE_WAY, GateState
from douban_pipeline.core.gate_usage import Minute
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline_tests.harness.fixtures.clocks import START, FakeClock
from douban_pipeline_tests.harness.fixtures.library import processes
from douban_pipeline_tests.harness.fixtures.scripted_source import HOLD, House


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


def pass_time_until_open(house: House) -> None:
    with pytest.raises(GateClosed) as caught:
        call(house)
    house.clock.sleep((caught.value.until - house.clock.now()).total_seconds())


def test_each_kind_of_failure(any_house: House) -> None:
    for _ in range(IN_A_ROW - 1):
        fail(any_house, SourceUnavailable("douban", "HTTP 500"))
    fail(any_house, NotFound("douban", "条目不存在"))
    assert (any_house.status().state, any_house.status().failures) == (GateState.CLOSED, 0)
    any_house.clock.advance(minutes=5)
    for _ in range(IN_A_ROW):
        fail(any_house, SourceUnavailable("douban", "HTTP 500"))
    assert any_house.status().failures == IN_A_ROW
    pass_time_until_open(any_house)
    fail(any_house, SourceThrottled("douban", "HTTP 429", 90))
    status = any_house.status()
    assert status.open_until is not None
    assert timedelta(seconds=90) <= status.open_until - any_house.clock.now() <= timedelta(seconds=99)
    any_house.clock.advance(seconds=100)
    fail(any_house, SourceUnpaid("douban", "余额不足"))
    assert any_house.status().open_until == START.replace(hour=16), "the next day in Shanghai"
    pass_time_until_open(any_house)
    call(any_house)
    assert any_house.status().state is GateState.CLOSED


def test_what_happened_is_counted_by_minute_and_by_day(any_house: House) -> None:
    any_house.gate.configure("douban", 60, 2, requests_per_day=6, tokens_per_minute=2000, tokens_per_day=5000)
    for error, used in ((None, 812), (None, None), (SourceUnavailable("douban", "HTTP 500"), None)):
        try:
            with any_house.gate.slot("douban", tokens=500) as slot:
                slot.tokens_used = used
                if error:
                    raise error
        except SourceError:
            pass
    any_house.clock.advance(minutes=2)
    call(any_house)
    with pytest.raises(ZeroDivisionError), any_house.gate.slot("douban", tokens=700) as slot:
        raise ZeroDivisionError
    status = any_house.status()
    assert status.minutes == (
        Minute(START, granted=3, succeeded=2, failed=1, tokens=1312),
        Minute(START + timedelta(minutes=2), granted=2, succeeded=1, failed=0, tokens=700),
    )
    assert (status.used_today, status.requests_per_day, status.granted) == (5, 6, 5)
    assert (status.tokens_today, status.tokens_per_minute, status.tokens_per_day) == (2012, 2000, 5000)
    any_house.clock.advance(hours=12)
    status = any_house.status()
    assert (status.used_today, status.tokens_today, status.minutes, status.granted) == (0, 0, (), 5)


def test_a_spent_day_begins_anew_in_the_zone_of_the_site(any_house: House) -> None:
    any_house.gate.configure("douban", 60, 2, requests_per_day=2)
    call(any_house)
    call(any_house)
    with pytest.raises(QuotaSpent, match="今日请求配额已用完（2 / 2 次）") as caught:
        call(any_house)
    assert caught.value.until == START.replace(hour=16)
    assert (any_house.status().granted, any_house.status().in_use) == (2, 0)
    any_house.clock.sleep((caught.value.until - any_house.clock.now()).total_seconds())
    call(any_house)
    assert any_house.status().used_today == 1


def test_tokens_are_waited_for_and_a_days_tokens_are_not(any_house: House) -> None:
    any_house.gate.configure("douban", 60, 2, tokens_per_minute=1000, tokens_per_day=2000)
    with any_house.gate.slot("douban", tokens=900) as slot:
        slot.tokens_used = 990
    with any_house.gate.slot("douban", tokens=100) as slot:
        assert slot.granted_at == START + timedelta(minutes=1)
    with pytest.raises(QuotaSpent, match="已用 1090 / 2000，本次预计 911"), any_house.gate.slot("douban", tokens=911):
        pytest.fail("let through")
    with pytest.raises(ValueError, match="-1 tokens"), any_house.gate.slot("douban", tokens=-1):
        pytest.fail("let through")


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


def test_people_open_and_close_and_are_named(any_house: House) -> None:
    until = START + timedelta(hours=3)
    any_house.gate.open("douban", until, "网站\n维护" + "……" * 400, by="小王" * 50)
    with pytest.raises(GateClosed, match="网站 维护") as caught:
        call(any_house)
    assert caught.value.until == until
    assert any_house.status().changed_by == "小王" * 32
    any_house.gate.close("douban", by="小李")
    call(any_house)
    status = any_house.status()
    assert (status.state, status.reason, status.changed_by) == (GateState.CLOSED, "", "小李")
    fail(any_house, SourceWall("douban", "验证码"))
    assert any_house.status().changed_by == "", "it opened by itself"


def test_closing_does_not_let_calls_come_closer_together(any_house: House) -> None:
    call(any_house)
    any_house.gate.close("douban")
    call(any_house)
    assert any_house.clock.sleeps == [1.02]


def test_configuring_again_keeps_breaker_and_counters(any_house: House) -> None:
    call(any_house)
    any_house.gate.open("douban", START + timedelta(hours=3), "网站维护")
    any_house.gate.configure("douban", 30, 5, requests_per_day=100)
    status = any_house.status()
    assert (status.requests_per_minute, status.concurrency, status.state) == (30.0, 5, GateState.OPEN)
    assert (status.requests_per_day, status.used_today, status.updated_at) == (100, 1, START)
    any_house.clock.advance(minutes=1)
    any_house.gate.configure("douban", 30, 5, requests_per_day=100)
    assert any_house.status().updated_at == START, "nothing is written where nothing changes"
    any_house.gate.configure("douban", 30, 5)
    assert any_house.status().requests_per_day is None


@pytest.mark.parametrize(("rate", "concurrency"), [(0, 1), (-1, 1), (10, 0)])
def test_limits_out_of_range(house: House, rate: float, concurrency: int) -> None:
    with pytest.raises(ValueError, match="douban"):
        house.gate.configure("douban", rate, concurrency)


@pytest.mark.parametrize("name", ["requests_per_day", "tokens_per_minute", "tokens_per_day"])
def test_budgets_out_of_range(house: House, name: str) -> None:
    with pytest.raises(ValueError, match=f"douban: {name} 0"):
        house.gate.configure("douban", 60, 2, **{name: 0})


def spoil(house: House, **values: Any) -> None:
    with house.engine.begin() as connection:
        connection.execute(update(house.tables.gate).values(**values))


@pytest.mark.parametrize("how", ["no row", "no table", "holders", "state", "usage"])
def test_a_gate_that_cannot_be_read_lets_nothing_through(any_house: House, how: str) -> None:
    if how == "no table":
        any_house.tables.gate.drop(any_house.engine)
    elif how == "holders":
        spoil(any_house, holders=[{"owner": "x"}])
    elif how == "state":
        spoil(any_house, state="ajar")
    elif how == "usage":
        spoil(any_house, usage={"day": "2026-03-01"})
    source = "nobody" if how == "no row" else "douban"
    entered = False
    with pytest.raises(GateUnreadable), any_house.gate.slot(source):
        entered = True
    assert not entered
    if how != "no row":
        with pytest.raises(GateUnreadable):
            any_house.gate.status()


def test_a_good_answer_survives_a_gate_that_breaks_during_the_call(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    with house.gate.slot("douban"):
        house.tables.gate.drop(house.engine)
    assert "could not release" in caplog.text


def test_a_row_of_the_release_before_can_be_read(any_house: House) -> None:
    until = (START + timedelta(minutes=1)).isoformat()
    spoil(any_house, usage=None, holders=[{"owner": "elsewhere:1:x", "until": until, "slot_at": START.isoformat()}])
    call(any_house)
    assert (any_house.status().in_use, any_house.status().used_today) == (1, 1)


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


def test_processes_at_once_never_get_the_same_slot(any_house: House) -> None:
    any_house.gate.configure("douban", 60, 10)
    crew = [Asking.start(any_house, 15) for _ in range(3)]
    for asking in crew:
        asking.go()
    times: list[datetime] = []
    for asking in crew:
        times += asking.receive()
        asking.end()
    times.sort()
    assert len(times) == 45
    assert any_house.status().granted == 45
    assert any_house.status().in_use == 0
    seconds = [at.timestamp() for at in times]
    assert min(later - earlier for earlier, later in pairwise(seconds)) >= 1.019


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


def test_a_gate_closed_error_is_a_source_error() -> None:
    assert isinstance(GateClosed("s", "r", START), SourceError)


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
