"""A source that throttles gets half as many calls at once, and more again after good answers."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random

import pytest

from douban_pipeline.core.errors import SourceThrottled
from douban_pipeline.core.gate_outcomes import RAISED_AFTER, CallOutcomes
from douban_pipeline.core.gate_rules import GateRow
from douban_pipeline.core.gate_status import status_of
from douban_pipeline.core.gate_types import Admitted
from douban_pipeline_tests.core.gate_rows import DOWN, HOLD, SECOND, called, row
from douban_pipeline_tests.harness.fixtures.clocks import START

OUTCOMES = {"t": SourceThrottled("douban", "HTTP 429", 0.0), "g": None, "f": DOWN}
SOME = "g" * RAISED_AFTER


def at_once(gate: GateRow, at: timedelta = timedelta()) -> int:
    """Return how many calls are admitted before one ends; they end unsent."""
    admitted = [name for name in map(str, range(99)) if gate.ask(name, START + at, HOLD) == Admitted()]
    for name in map(str, range(99)):
        gate.forget(name)
    return len(admitted)


@pytest.mark.parametrize(
    ("configured", "calls", "now"),
    [
        (8, "g", 8),
        (8, "t", 4),
        (8, "tt", 2),
        (8, "ttttt", 1),
        (8, "t" + SOME[1:], 4),
        (8, "t" + SOME, 5),
        (8, "t" + 4 * SOME, 8),
        (8, "t" + 9 * SOME, 8),
        (8, "t" + SOME[1:] + "t" + SOME[1:], 2),
        (8, "t" + "gf" * RAISED_AFTER, 5),
        (3, "t", 1),
        (2, "t", 1),
        (2, "t" + SOME, 2),
        (1, "t", 1),
        (1, "t" + SOME, 1),
    ],
)
def test_how_many_calls_at_once_are_admitted(configured: int, calls: str, now: int) -> None:
    gate = row(concurrency=configured, interval=timedelta())
    for number, outcome in enumerate([*calls, "g"] if calls[-1] == "t" else calls):
        called(gate, OUTCOMES[outcome], number * SECOND)
    assert at_once(gate, 1000 * SECOND) == now
    assert gate.outcomes.at_once(configured) == now


def test_calls_of_one_burst_count_once() -> None:
    gate = row(concurrency=8, interval=timedelta())
    names = [name for name in map(str, range(8)) if gate.ask(name, START, HOLD) == Admitted()]
    for name in names:
        gate.leave(name, SourceThrottled("douban", "HTTP 429", 30.0), START, Random(1))
    called(gate, None, 60 * SECOND)
    assert (len(names), at_once(gate, 90 * SECOND)) == (8, 4)


def test_a_person_who_closes_the_gate_trusts_the_source_again() -> None:
    gate = row(concurrency=8, interval=timedelta())
    called(gate, OUTCOMES["t"])
    gate.close(START, "小王")
    assert at_once(gate) == 8


def test_it_is_shared_by_processes_and_shown() -> None:
    gate = row(concurrency=8)
    called(gate, OUTCOMES["t"])
    called(gate, None)
    stored = json.loads(json.dumps(gate.outcomes.to_json()))
    assert CallOutcomes.from_json(stored) == gate.outcomes
    assert status_of(gate, START, START).at_once == 4
