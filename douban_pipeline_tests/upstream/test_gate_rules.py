"""The gate's rules on one row in memory."""

from __future__ import annotations

import pickle
from datetime import timedelta
from random import Random

import pytest

from douban_pipeline.upstream.errors import (
    GateClosed,
    GateUnreadable,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceWall,
    SubjectMismatch,
    SubjectMissing,
)
from douban_pipeline.upstream.gate_rules import FAILURES_TO_OPEN, Admitted, GateRow, GateState, Refused, Wait
from douban_pipeline_tests.clocks import START

HOLD = timedelta(seconds=60)
SECOND = timedelta(seconds=1)


def row(concurrency: int = 2, interval: timedelta = 2 * SECOND) -> GateRow:
    return GateRow("douban", START, interval, concurrency)


def test_slots_are_an_interval_apart_in_order_of_arrival() -> None:
    gate = row(concurrency=3)
    assert gate.ask("a", START, HOLD) == Admitted()
    assert gate.ask("b", START, HOLD) == Wait(2.0)
    assert gate.ask("c", START, HOLD) == Wait(4.0)
    assert gate.ask("c", START + 2 * SECOND, HOLD) == Wait(2.0)
    assert gate.ask("b", START + 2 * SECOND, HOLD) == Admitted()
    assert gate.ask("c", START + 4 * SECOND, HOLD) == Admitted()
    assert gate.granted == 3


def test_an_idle_gate_saves_no_slots_up() -> None:
    gate = row()
    later = START + timedelta(hours=1)
    assert gate.ask("a", later, HOLD) == Admitted()
    assert gate.ask("b", later, HOLD) == Wait(2.0)


def test_places_are_handed_on_in_order_of_arrival() -> None:
    gate = row(concurrency=1, interval=timedelta())
    assert gate.ask("a", START, HOLD) == Admitted()
    for waiter in "bc":
        assert isinstance(gate.ask(waiter, START, HOLD), Wait)
    gate.leave("a", None, START, Random(0))
    assert isinstance(gate.ask("c", START, HOLD), Wait)
    assert gate.ask("b", START, HOLD) == Admitted()


def test_a_dead_holder_and_a_dead_waiter_lose_their_turn() -> None:
    gate = row(concurrency=1)
    assert gate.ask("dead holder", START, HOLD) == Admitted()
    gate.ask("dead waiter", START, HOLD)
    gate.ask("alive", START, HOLD)
    gate.ask("alive", START + 19 * SECOND, HOLD)
    gate.ask("alive", START + 38 * SECOND, HOLD)
    assert isinstance(gate.ask("alive", START + 55 * SECOND, HOLD), Wait)
    assert gate.ask("alive", START + 61 * SECOND, HOLD) == Admitted()


def test_a_clock_set_back_does_not_stop_the_source() -> None:
    gate = row()
    gate.next_slot_at = START + timedelta(hours=5)
    assert gate.ask("a", START, HOLD) == Admitted()


def called(gate: GateRow, error: SourceError | None, at: timedelta = timedelta()) -> None:
    while isinstance(answer := gate.ask("me", START + at, HOLD), Wait):
        at += timedelta(seconds=answer.seconds)
    assert isinstance(answer, Admitted)
    gate.leave("me", error, START + at, Random(1))


def test_a_wall_opens_at_once_for_half_an_hour_to_an_hour() -> None:
    pauses = set()
    for seed in range(40):
        gate = row()
        gate.ask("a", START, HOLD)
        gate.leave("a", SourceWall("douban", "captcha"), START, Random(seed))
        assert (gate.state, gate.reason) == (GateState.OPEN, "captcha")
        assert gate.open_until is not None
        pauses.add((gate.open_until - START).total_seconds() / 60)
    assert all(30 <= pause <= 60 for pause in pauses)
    assert max(pauses) - min(pauses) > 20


@pytest.mark.parametrize(("retry_after", "seconds"), [(None, 60), (5.0, 5), (0.0, 0), (1e9, 86_400)])
def test_a_throttle_opens_for_as_long_as_asked(retry_after: float | None, seconds: float) -> None:
    gate = row()
    called(gate, SourceThrottled("douban", "HTTP 429", retry_after))
    assert gate.open_until == START + timedelta(seconds=seconds)
    assert gate.failures == 0


@pytest.mark.parametrize("error", [SourceUnavailable("douban", "HTTP 500"), SubjectMismatch("douban", "other")])
def test_enough_failures_in_a_row_open(error: SourceError) -> None:
    gate = row()
    for count in range(1, FAILURES_TO_OPEN):
        called(gate, error, count * timedelta(seconds=1))
        assert (gate.state, gate.failures) == (GateState.CLOSED, count)
    called(gate, error, timedelta(minutes=5))
    assert gate.state is GateState.OPEN
    assert gate.open_until == START + timedelta(minutes=10)


@pytest.mark.parametrize("good", [None, SubjectMissing("douban", "条目不存在")])
def test_a_good_answer_starts_the_count_again(good: SourceError | None) -> None:
    gate = row()
    for minute in range(4):
        called(gate, SourceUnavailable("douban", "x"), timedelta(minutes=minute))
    called(gate, good, timedelta(minutes=5))
    assert gate.failures == 0


@pytest.mark.parametrize("silent", [GateClosed("x", "open", START), GateUnreadable("x", "gone")])
def test_a_call_that_never_reached_the_source_says_nothing(silent: SourceError) -> None:
    gate = row()
    called(gate, SourceUnavailable("douban", "x"))
    called(gate, silent, timedelta(minutes=1))
    assert gate.failures == 1
    assert gate.holders == []


def open_gate() -> GateRow:
    gate = row()
    gate.failures = 5
    gate.open(START + timedelta(minutes=5), "HTTP 500")
    return gate


AFTER = START + timedelta(minutes=5)


def test_an_open_gate_refuses_until_its_time() -> None:
    gate = open_gate()
    assert gate.ask("a", AFTER - SECOND, HOLD) == Refused(AFTER)
    assert gate.holders == []


def test_one_probe_passes_and_closes() -> None:
    gate = open_gate()
    assert gate.ask("probe", AFTER, HOLD) == Admitted()
    assert gate.state is GateState.HALF_OPEN
    assert gate.ask("other", AFTER + SECOND, HOLD) == Refused(AFTER + HOLD)
    gate.leave("probe", None, AFTER + 2 * SECOND, Random(0))
    assert (gate.state, gate.failures, gate.reason, gate.open_until) == (GateState.CLOSED, 0, "", None)
    assert gate.ask("other", AFTER + 2 * SECOND, HOLD) == Admitted()


def test_a_failed_probe_opens_again() -> None:
    gate = open_gate()
    gate.ask("probe", AFTER, HOLD)
    gate.leave("probe", SourceUnavailable("douban", "HTTP 502"), AFTER + SECOND, Random(0))
    assert (gate.state, gate.reason) == (GateState.OPEN, "HTTP 502")
    assert gate.open_until == AFTER + SECOND + timedelta(minutes=5)


def test_an_interrupted_probe_is_handed_on() -> None:
    gate = open_gate()
    gate.ask("probe", AFTER, HOLD)
    gate.forget("probe")
    assert gate.ask("next", AFTER + 2 * SECOND, HOLD) == Admitted()


def test_a_killed_probe_is_taken_over_when_its_lease_ends() -> None:
    gate = open_gate()
    gate.ask("probe", AFTER, HOLD)
    assert gate.ask("next", AFTER + HOLD - SECOND, HOLD) == Refused(AFTER + HOLD)
    assert gate.ask("next", AFTER + HOLD, HOLD) == Admitted()


def test_a_probe_waiting_for_its_slot_stays_the_probe() -> None:
    gate = open_gate()
    gate.next_slot_at = AFTER + SECOND
    assert gate.ask("probe", AFTER, HOLD) == Wait(1.0)
    assert isinstance(gate.ask("other", AFTER, HOLD), Refused)
    assert gate.ask("probe", AFTER + SECOND, HOLD) == Admitted()


def test_those_who_wait_leave_when_it_opens() -> None:
    gate = row()
    gate.ask("a", START, HOLD)
    gate.ask("b", START, HOLD)
    gate.leave("a", SourceWall("douban", "captcha"), START + SECOND, Random(0))
    assert isinstance(gate.ask("b", START + 2 * SECOND, HOLD), Refused)
    assert gate.holders == []


def test_a_late_good_answer_does_not_close_an_open_gate() -> None:
    gate = row()
    gate.ask("slow", START, HOLD)
    gate.open(AFTER, "captcha")
    gate.leave("slow", None, START + SECOND, Random(0))
    assert gate.state is GateState.OPEN


def test_an_open_gate_is_never_shortened() -> None:
    gate = row()
    gate.ask("slow", START, HOLD)
    gate.open(START + timedelta(days=1), "a person closed the shop")
    gate.leave("slow", SourceThrottled("douban", "HTTP 429", 5), START + SECOND, Random(0))
    assert (gate.open_until, gate.reason) == (START + timedelta(days=1), "a person closed the shop")


@pytest.mark.parametrize(
    "error",
    [
        SourceUnavailable("s", "r", retryable=True),
        SourceThrottled("s", "r", 7.0),
        SourceWall("s", "r"),
        GateClosed("s", "r", START),
        SubjectMissing("s", "r"),
    ],
)
def test_errors_survive_pickling_and_name_their_source(error: SourceError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == "s: r"
