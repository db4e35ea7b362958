"""The gate's rules on one row in memory."""

from __future__ import annotations

import itertools
import json
import pickle
from datetime import timedelta
from random import Random

import pytest

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
from douban_pipeline.core.gate_outcomes import IN_A_ROW, SUSPECT, CallOutcomes
from douban_pipeline.core.gate_rules import HEAD_START, GateRow, GateState
from douban_pipeline.core.gate_types import Admitted, GateRefusal, WaitForTurn
from douban_pipeline.douban.sources.errors import SubjectMismatch
from douban_pipeline_tests.core.gate_rows import DOWN, HOLD, MINUTE, SECOND, called, row
from douban_pipeline_tests.harness.fixtures.clocks import START


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


@pytest.mark.parametrize(
    ("retry_after", "least", "most"), [(None, 60, 90), (50.0, 50, 55), (0.0, 0, 0), (1e9, 86_400, 95_040)]
)
def test_a_throttle_opens_for_as_long_as_asked_and_a_little(
    retry_after: float | None, least: float, most: float
) -> None:
    pauses = []
    for seed in range(40):
        gate = row()
        gate.ask("a", START, MINUTE)
        gate.leave("a", SourceThrottled("douban", "HTTP 429", retry_after), START, Random(seed))
        assert gate.open_until is not None
        assert gate.failures == 0
        pauses.append((gate.open_until - START).total_seconds())
    assert least <= min(pauses) <= max(pauses) <= most
    assert max(pauses) - min(pauses) >= (most - least) / 2, "not all who were told the same come back together"


@pytest.mark.parametrize("error", [DOWN, SubjectMismatch("douban", "other")])
def test_ten_failed_calls_in_a_row_open_for_half_a_minute_to_a_minute(error: SourceError) -> None:
    gate = row()
    for count in range(1, IN_A_ROW):
        called(gate, error, 30 * count * SECOND)
        assert (gate.state, gate.failures) == (GateState.CLOSED, count)
    called(gate, error, 5 * MINUTE)
    assert (gate.state, gate.reason, gate.changed_by) == (GateState.OPEN, error.reason, "")
    assert gate.open_until is not None
    assert START + 5 * MINUTE + 30 * SECOND <= gate.open_until <= START + 6 * MINUTE


def test_a_row_is_one_whatever_good_answers_came_before_it() -> None:
    gate = row(interval=timedelta())
    for _ in range(500):
        called(gate, None)
    for _ in range(IN_A_ROW):
        assert gate.state is GateState.CLOSED
        called(gate, DOWN)
    assert gate.state is GateState.OPEN


@pytest.mark.parametrize("apart", [timedelta(minutes=5), timedelta(hours=1)])
def test_failures_far_apart_are_no_row(apart: timedelta) -> None:
    gate = row()
    for number in range(3 * IN_A_ROW):
        called(gate, DOWN, number * apart)
    assert (gate.state, gate.failures) == (GateState.CLOSED, 1)


@pytest.mark.parametrize(
    ("outcomes", "opens"),
    [
        ("x" * 9, False),
        ("x" * 9 + ".", False),
        (".x" * 100, False),  # half of them
        (".xx" * 6 + "..", False),  # 12 of 20, but the last was good
        (".xx" * 6 + ".x", True),  # 13 of 20
        ("." * 300 + "xxx." * 6, True),
        ("xxxxxxxxx." * 2, False),  # the breaker opens only when a call fails
        ("xxxxxxxxx." * 2 + "x", True),
    ],
)
def test_the_share_of_failures_of_the_last_twenty_calls_decides(outcomes: str, opens: bool) -> None:
    gate = row(interval=timedelta())
    for number, outcome in enumerate(outcomes):
        if gate.state is GateState.OPEN:
            break
        called(gate, DOWN if outcome == "x" else None, number * SECOND / 4)
    assert (gate.state is GateState.OPEN) is opens


def test_what_failed_before_it_closed_does_not_open_it_again() -> None:
    gate = row(interval=timedelta())
    for _ in range(9):
        called(gate, DOWN)
    called(gate, SourceWall("douban", "captcha"))
    gate.close(START, "小王")
    assert (gate.state, gate.changed_by) == (GateState.CLOSED, "小王")
    for _ in range(9):
        called(gate, DOWN, MINUTE)
    assert gate.state is GateState.CLOSED
    called(gate, DOWN, MINUTE)
    assert (gate.state, gate.changed_by) == (GateState.OPEN, "")


def probed(gate: GateRow, error: SourceError | None) -> timedelta:
    """Probe an open gate as soon as it lets one, and return for how long it was open."""
    assert gate.open_until is not None
    at = gate.open_until
    assert gate.ask("probe", at, HOLD) == Admitted()
    gate.leave("probe", error, at, Random(int(at.timestamp())))
    return at - START


def test_each_failed_probe_doubles_the_pause_up_to_a_quarter_of_an_hour() -> None:
    gate = row(interval=timedelta())
    for _ in range(IN_A_ROW):
        called(gate, DOWN)
    opened = [probed(gate, DOWN) for _ in range(9)]
    pauses = [opened[0], *(later - earlier for earlier, later in itertools.pairwise(opened))]
    for number, pause in enumerate(pauses[:4]):
        assert timedelta(seconds=30) <= pause / 2**number <= MINUTE
    assert all(10 * MINUTE <= pause <= 15 * MINUTE for pause in pauses[6:])
    # The next outage soon after goes on where this one was, until ten good answers came.
    probed(gate, None)
    for _ in range(IN_A_ROW):
        called(gate, DOWN, opened[-1] + 20 * MINUTE)
    assert gate.open_until is not None
    assert gate.open_until - START - opened[-1] >= 30 * MINUTE
    probed(gate, None)
    for number in range(10):
        called(gate, None, opened[-1] + timedelta(hours=1, seconds=number))
    at = opened[-1] + timedelta(hours=1, minutes=1)
    for _ in range(IN_A_ROW):
        called(gate, DOWN, at)
    assert gate.open_until is not None
    assert gate.open_until - START - at <= MINUTE


def test_together_with_what_failed_never_more_are_under_way_than_open_the_breaker() -> None:
    gate = row(concurrency=40, interval=timedelta())
    admitted = [name for name in map(str, range(40)) if gate.ask(name, START, HOLD) == Admitted()]
    assert len(admitted) == IN_A_ROW
    for count, name in enumerate(admitted, start=1):
        gate.leave(name, DOWN, START, Random(0))
        others = [str(number) for number in range(100 * count, 100 * count + 40)]
        assert not any(gate.ask(other, START, HOLD) == Admitted() for other in others)
    assert (gate.state, gate.granted) == (GateState.OPEN, IN_A_ROW)


def test_failures_of_an_outage_are_told_from_those_of_a_question() -> None:
    gate = row(interval=timedelta())
    called(gate, DOWN)
    called(gate, None, MINUTE)
    for number in range(SUSPECT):
        called(gate, DOWN, 2 * MINUTE + number * SECOND)
    assert [gate.was_unhealthy(START + at) for at in (timedelta(), 2 * MINUTE, 3 * MINUTE)] == [False, True, True]
    for number in range(SUSPECT):
        called(gate, DOWN, 3 * MINUTE + number * SECOND)
    assert gate.state is GateState.OPEN
    closed_at = probed(gate, None)
    assert [gate.was_unhealthy(START + at) for at in (2 * MINUTE, closed_at, closed_at + SECOND)] == [True, True, False]


def test_a_source_that_wants_money_is_left_alone_until_the_next_day() -> None:
    gate = row()
    called(gate, SourceUnpaid("openrouter", "余额不足"))
    assert (gate.open_until, gate.reason) == (START.replace(hour=16), "余额不足"), "midnight in Shanghai"
    gate.ask("probe", START.replace(hour=16), HOLD)
    gate.leave("probe", SourceUnpaid("openrouter", "余额不足"), START.replace(hour=16), Random(0))
    assert gate.open_until == START.replace(hour=16) + timedelta(days=1)


@pytest.mark.parametrize("good", [None, NotFound("douban", "条目不存在")])
def test_a_good_answer_ends_a_row_of_failures(good: SourceError | None) -> None:
    gate = row()
    for minute in range(4):
        called(gate, DOWN, timedelta(minutes=minute))
    assert gate.failures == 4
    called(gate, good, timedelta(minutes=5))
    assert gate.failures == 0


@pytest.mark.parametrize("silent", [GateClosed("x", "open", START), GateUnreadable("x", "gone")])
def test_a_call_that_never_reached_the_source_says_nothing(silent: SourceError) -> None:
    gate = row()
    called(gate, SourceUnavailable("douban", "x"))
    called(gate, silent, timedelta(minutes=1))
    assert gate.failures == 1
    assert gate.holders == []


FAULTY = [f"faulty {number}" for number in range(5)]


def test_what_a_healthy_source_answers_badly_counts_for_that_alone() -> None:
    gate, at = row(interval=timedelta()), timedelta()
    for turn in range(60):
        at += 20 * SECOND
        called(gate, None, at, "well") if turn % 6 == 0 else called(gate, DOWN, at, FAULTY[turn % 5])
        gate.outcomes = CallOutcomes.from_json(json.loads(json.dumps(gate.outcomes.to_json())))  # another process
    assert (gate.state, gate.outcomes.failing_since) == (GateState.CLOSED, None)
    assert gate.failures <= 1
    # One of them is well again, and then fails as others do: the source falls ill.
    called(gate, None, at, FAULTY[0])
    for number in range(IN_A_ROW):
        called(gate, DOWN, at + number * SECOND, FAULTY[0] if number == 0 else f"other {number}")
    assert gate.state is GateState.OPEN


def test_a_probe_asks_for_something_else_than_what_failed_unless_nothing_else_is_asked() -> None:
    gate = row(interval=timedelta())
    for key in (*map(str, range(IN_A_ROW - 1)), FAULTY[0]):
        called(gate, DOWN, timedelta(), key)
    assert gate.open_until is not None
    refused = gate.ask("a", gate.open_until, HOLD, key=FAULTY[0])
    assert refused == GateRefusal(gate.open_until + HEAD_START, "HTTP 500", others=True)
    assert gate.ask("b", gate.open_until + HEAD_START, HOLD, key=FAULTY[0]) == Admitted()
    gate.forget("b")
    at = gate.open_until + SECOND - START
    called(gate, None, at, "well")
    assert gate.state is GateState.CLOSED
    for _ in range(2 * IN_A_ROW):
        called(gate, DOWN, at, FAULTY[0])
    assert (gate.state, gate.failures) == (GateState.CLOSED, 0)


def open_gate() -> GateRow:
    gate = row()
    gate.failures = 5
    gate.open(START + timedelta(minutes=5), "HTTP 500", "小王")
    return gate


AFTER = START + timedelta(minutes=5)


def test_an_open_gate_refuses_until_its_time() -> None:
    gate = open_gate()
    assert gate.ask("a", AFTER - SECOND, HOLD) == GateRefusal(AFTER, "HTTP 500")
    assert gate.holders == []


def test_one_probe_passes_and_closes() -> None:
    gate = open_gate()
    assert gate.ask("probe", AFTER, HOLD) == Admitted()
    assert gate.state is GateState.HALF_OPEN
    assert gate.ask("other", AFTER + SECOND, HOLD) == GateRefusal(AFTER + HOLD, "HTTP 500")
    gate.leave("probe", None, AFTER + 2 * SECOND, Random(0))
    assert (gate.state, gate.failures, gate.reason, gate.open_until) == (GateState.CLOSED, 0, "", None)
    assert gate.changed_by == "", "it closed by itself"
    assert gate.ask("other", AFTER + 2 * SECOND, HOLD) == Admitted()


def test_one_failed_probe_opens_again_and_no_two_sites_come_back_at_once() -> None:
    pauses = set()
    for seed in range(40):
        gate = open_gate()
        gate.ask("probe", AFTER, HOLD)
        gate.leave("probe", SourceUnavailable("douban", "HTTP 502"), AFTER + SECOND, Random(seed))
        assert (gate.state, gate.reason, gate.changed_by) == (GateState.OPEN, "HTTP 502", "")
        assert gate.open_until is not None
        pauses.add((gate.open_until - AFTER - SECOND) / SECOND)
    assert all(30 <= pause <= 60 for pause in pauses)
    assert max(pauses) - min(pauses) > 20


def test_late_failures_of_calls_before_do_not_end_a_probe() -> None:
    gate = row(concurrency=12, interval=timedelta())
    for number in range(9):
        assert gate.ask(f"slow {number}", START, HOLD) == Admitted()
    gate.open(START + SECOND, "captcha", "")
    assert gate.ask("probe", START + SECOND, HOLD) == Admitted()
    for number in range(9):
        gate.leave(f"slow {number}", DOWN, START + 2 * SECOND, Random(0))
    assert gate.state is GateState.HALF_OPEN
    gate.leave("probe", None, START + 2 * SECOND, Random(0))
    assert gate.state is GateState.CLOSED
    gate.ask("next", START + 2 * SECOND, HOLD)
    gate.leave("next", DOWN, START + 2 * SECOND, Random(0))
    assert gate.state is GateState.CLOSED, "they do not count afterwards either"


def test_an_interrupted_probe_is_handed_on() -> None:
    gate = open_gate()
    gate.ask("probe", AFTER, HOLD)
    gate.forget("probe")
    assert gate.ask("next", AFTER + 2 * SECOND, HOLD) == Admitted()


def test_a_killed_probe_is_taken_over_when_its_lease_ends() -> None:
    gate = open_gate()
    gate.ask("probe", AFTER, HOLD)
    assert gate.ask("next", AFTER + HOLD - SECOND, HOLD) == GateRefusal(AFTER + HOLD, "HTTP 500")
    assert gate.ask("next", AFTER + HOLD, HOLD) == Admitted()


def test_a_probe_waiting_for_its_slot_stays_the_probe() -> None:
    gate = open_gate()
    gate.next_slot_at = AFTER + SECOND
    assert gate.ask("probe", AFTER, HOLD) == WaitForTurn(1.0)
    assert isinstance(gate.ask("other", AFTER, HOLD), GateRefusal)
    assert gate.ask("probe", AFTER + SECOND, HOLD) == Admitted()


def test_those_who_wait_leave_when_it_opens() -> None:
    gate = row()
    gate.ask("a", START, HOLD)
    gate.ask("b", START, HOLD)
    gate.leave("a", SourceWall("douban", "captcha"), START + SECOND, Random(0))
    assert isinstance(gate.ask("b", START + 2 * SECOND, HOLD), GateRefusal)
    assert gate.holders == []


def test_a_late_good_answer_does_not_close_an_open_gate() -> None:
    gate = row()
    gate.ask("slow", START, HOLD)
    gate.open(AFTER, "captcha", "")
    gate.leave("slow", None, START + SECOND, Random(0))
    assert gate.state is GateState.OPEN


def test_an_answer_never_shortens_what_a_person_opened_but_may_lengthen_it() -> None:
    gate = row()
    gate.ask("slow", START, HOLD)
    gate.ask("slower", START, HOLD)
    gate.open(START + 10 * MINUTE, "维护", "小王")
    gate.leave("slow", SourceThrottled("douban", "HTTP 429", 5), START + SECOND, Random(0))
    assert (gate.open_until, gate.reason, gate.changed_by) == (START + 10 * MINUTE, "维护", "小王")
    gate.leave("slower", SourceWall("douban", "captcha"), START + SECOND, Random(0))
    assert gate.open_until is not None
    assert gate.open_until > START + 30 * MINUTE
    assert (gate.reason, gate.changed_by) == ("captcha", "")


def test_a_person_may_shorten_what_opened_by_itself() -> None:
    gate = row()
    called(gate, SourceWall("douban", "captcha"))
    gate.open(START + MINUTE, "已换地址", "小王")
    assert (gate.open_until, gate.reason, gate.changed_by) == (START + MINUTE, "已换地址", "小王")


@pytest.mark.parametrize(
    "error",
    [
        SourceUnavailable("s", "r", retryable=True),
        SourceThrottled("s", "r", 7.0),
        SourceWall("s", "r"),
        GateClosed("s", "r", START),
        QuotaSpent("s", "r", START),
        SourceUnpaid("s", "r"),
        NotFound("s", "r"),
    ],
)
def test_errors_survive_pickling_and_name_their_source(error: SourceError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == "s: r"
