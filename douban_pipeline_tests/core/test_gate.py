"""The gate in a real database: its pace, its breaker and its budgets, and what people do to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from douban_pipeline.core.errors import (
    GateClosed,
    GateUnreadable,
    QuotaSpent,
    SourceError,
    SourceUnavailable,
    SourceWall,
)
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.core.gate_usage import Minute
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.scripted_source import House


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
