"""What a source is allowed a day, and in tokens a minute: kept in order of arrival, corrected by what calls took."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pytest

from douban_pipeline.core.errors import GateUnreadable, NotFound, SourceError, SourceThrottled, SourceUnavailable
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.core.gate_types import Admitted, GateRefusal, WaitForTurn
from douban_pipeline_tests.core.gate_rows import DOWN, HOLD, MINUTE, SECOND, SHANGHAI, called, row
from douban_pipeline_tests.harness.fixtures.clocks import START


def midnight(days: int = 0) -> datetime:
    """Return when the day of START, or a later one, ends in Shanghai."""
    return START.replace(hour=16) + timedelta(days=days)


def test_the_requests_of_a_day_are_let_through_and_not_one_more() -> None:
    gate = row(interval=timedelta(), requests_per_day=3)
    for _ in range(3):
        called(gate, None)
    refused = gate.ask("a", START, HOLD)
    assert refused == GateRefusal(midnight(), "今日请求配额已用完（3 / 3 次）", spent=True)
    assert gate.holders == []
    assert isinstance(gate.ask("a", midnight() - SECOND, HOLD), GateRefusal)
    assert gate.ask("a", midnight(), HOLD) == Admitted()


def test_those_who_wait_are_refused_once_the_day_is_spent() -> None:
    gate = row(requests_per_day=2)
    called(gate, None)
    assert gate.ask("second", START, HOLD) == WaitForTurn(2.0)
    assert gate.ask("third", START, HOLD) == WaitForTurn(4.0)
    assert gate.ask("second", START + 2 * SECOND, HOLD) == Admitted()
    assert isinstance(gate.ask("third", START + 4 * SECOND, HOLD), GateRefusal)
    assert [holder.owner for holder in gate.holders] == ["second"]


def test_a_spent_day_does_not_use_the_probe_up() -> None:
    gate = row(requests_per_day=1)
    called(gate, DOWN)
    gate.open(START + MINUTE, "captcha", "")
    assert gate.ask("a", START, HOLD) == GateRefusal(START + MINUTE, "captcha"), "the breaker speaks first"
    refused = gate.ask("a", START + MINUTE, HOLD)
    assert isinstance(refused, GateRefusal)
    assert (refused.spent, gate.state, gate.probe_owner) == (True, GateState.OPEN, None)


def test_tokens_of_the_last_minute_are_waited_for() -> None:
    gate = row(interval=timedelta(), tokens_per_minute=1000)
    assert gate.ask("a", START, HOLD, 600) == Admitted()
    gate.leave("a", None, START + SECOND, Random(0), 700)
    assert gate.ask("b", START + SECOND, HOLD, 300) == Admitted()
    gate.leave("b", None, START + SECOND, Random(0))
    assert gate.ask("c", START + 2 * SECOND, HOLD, 1) == WaitForTurn(5.0), "looks again before the minute is over"
    assert gate.ask("c", START + 59 * SECOND, HOLD, 1) == WaitForTurn(1.0)
    assert gate.ask("c", START + 60 * SECOND, HOLD, 700) == Admitted()


def test_a_small_call_does_not_pass_a_large_one_that_waits_for_tokens() -> None:
    gate = row(concurrency=3, interval=timedelta(), tokens_per_minute=1000)
    gate.ask("a", START, HOLD, 600)
    assert gate.ask("large", START, HOLD, 900) == WaitForTurn(5.0)
    assert gate.ask("small", START, HOLD, 1) == WaitForTurn(0.02)
    gate.ask("large", START + 15 * SECOND, HOLD, 900)
    gate.ask("small", START + 15 * SECOND, HOLD, 1)
    gate.leave("a", None, START + 20 * SECOND, Random(0), 50)
    assert isinstance(gate.ask("small", START + 20 * SECOND, HOLD, 1), WaitForTurn)
    assert gate.ask("large", START + 20 * SECOND, HOLD, 900) == Admitted()
    assert gate.ask("small", START + 20 * SECOND, HOLD, 1) == Admitted()


def test_who_dies_waiting_for_tokens_loses_its_turn() -> None:
    gate = row(interval=timedelta(), tokens_per_minute=1000)
    gate.ask("a", START, HOLD, 600)
    gate.ask("dead", START, HOLD, 900)
    gate.ask("b", START, HOLD, 400)
    gate.ask("b", START + 19 * SECOND, HOLD, 400)
    assert gate.ask("b", START + 20 * SECOND, HOLD, 400) == Admitted()


def test_more_tokens_than_a_minute_may_take_pass_when_the_minute_is_empty() -> None:
    gate = row(concurrency=3, interval=timedelta(), tokens_per_minute=1000)
    gate.ask("a", START, HOLD, 100)
    assert gate.ask("huge", START + 58 * SECOND, HOLD, 5000) == WaitForTurn(2.0)
    assert gate.ask("huge", START + 60 * SECOND, HOLD, 5000) == Admitted()
    assert isinstance(gate.ask("b", START + 61 * SECOND, HOLD, 1), WaitForTurn)


@pytest.mark.parametrize(
    ("error", "used", "counted"),
    [
        (None, None, 400),
        (None, 812, 812),
        (None, 0, 0),
        (NotFound("s", "r"), None, 400),
        (DOWN, None, 0),
        (SourceThrottled("s", "r"), None, 0),
        (GateUnreadable("s", "r"), None, 0),
        (SourceUnavailable("s", "答非所问"), 250, 250),
        (None, -5, 0),
    ],
)
def test_what_a_call_took_is_corrected_when_it_ends(error: SourceError | None, used: int | None, counted: int) -> None:
    gate = row(interval=timedelta(), tokens_per_minute=1000, tokens_per_day=5000)
    gate.ask("a", START, HOLD, 400)
    assert gate.usage.of_day(midnight().astimezone(SHANGHAI).date() - timedelta(days=1)) == (1, 400)
    gate.leave("a", error, START + 2 * SECOND, Random(0), used)
    assert gate.usage.tokens == counted
    assert [minute.tokens for minute in gate.usage.minutes] == [counted]
    assert sum(spending.tokens for spending in gate.usage.spendings) == counted


def test_tokens_of_a_day() -> None:
    gate = row(interval=timedelta(), tokens_per_day=1000)
    gate.ask("a", START, HOLD, 600)
    refused = GateRefusal(midnight(), "今日 token 配额不足（已用 600 / 1000，本次预计 500）", spent=True)
    assert gate.ask("b", START, HOLD, 500) == refused
    gate.leave("a", None, START, Random(0), 500)
    assert gate.ask("b", START, HOLD, 500) == Admitted()
    assert isinstance(gate.ask("c", START, HOLD, 1), GateRefusal)
    assert gate.ask("c", midnight(), HOLD, 1) == Admitted()


def test_a_call_over_midnight_is_of_the_day_it_began() -> None:
    gate = row(interval=timedelta(), tokens_per_day=1000)
    gate.ask("a", midnight() - SECOND, HOLD, 600)
    gate.ask("b", midnight(), HOLD, 100)
    gate.leave("a", None, midnight() + SECOND, Random(0), 900)
    assert (gate.usage.requests, gate.usage.tokens) == (1, 100)
