"""The drain: everything is taken in, visited and looked back at, in this order, and it does not wait for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from douban_pipeline_tests.harness.soak import ending
from douban_pipeline_tests.harness.soak.duties import Waiting
from douban_pipeline_tests.harness.soak.ending import drain

REST = Waiting(0, 0, 0)


class Operator:
    """Somebody whose launches are done after one look, and before whom wait what the test says."""

    def __init__(self, waiting: Sequence[Waiting]) -> None:
        self._waiting = list(waiting)
        self.did: list[str] = []

    def waiting(self) -> Waiting:
        return self._waiting.pop(0) if self._waiting else REST

    def close_gates(self, passed: float, unhealthy: object) -> None:
        pass

    def sweep(self) -> None:
        self.did.append("sweep")

    def launch(self, job: str, config: Mapping[str, Any] | None = None, tags: object = None) -> None:
        self.did.append(job)

    def visit_shards(self, first: int, pipeline: str) -> None:
        assert pipeline == "sync"
        self.did.append(f"shards from {first}")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(seconds=0.0)

    def sleep(seconds: float) -> None:
        now.seconds += seconds

    monkeypatch.setattr(ending, "time", SimpleNamespace(monotonic=lambda: now.seconds, sleep=sleep))
    return now


def play(waiting: Sequence[Waiting], *, seconds: float = 100, hurried: bool = False) -> tuple[bool, list[str]]:
    operator: Any = Operator(waiting)
    return drain(operator, lambda _: None, lambda: hurried, seconds=seconds), operator.did


ROUND = [f"shards from {first}" for first in range(0, 64, 8)]
LAST = ["sweep", "nightly_reports", "shards from 0"]


def test_all_is_taken_in_then_visited_then_looked_back_at():
    drained, did = play([])
    assert drained
    assert did == ["sweep", "take_in_changes", *ROUND, *LAST]


def test_nothing_is_launched_while_runs_are_under_way():
    drained, did = play([Waiting(3, 0, 2)] * 4)
    assert drained
    assert did == ["sweep", "take_in_changes", *ROUND, *LAST]


def test_what_came_due_by_then_means_one_more_round():
    _, did = play([REST, REST, Waiting(2, 5, 0), REST])
    assert did[:2] == ["sweep", "take_in_changes"]
    assert did[2:18] == ROUND + ROUND
    assert did[18:] == LAST


def test_what_never_ends_is_given_up(clock: SimpleNamespace):
    drained, _ = play([Waiting(1, 1, 1)] * 1000, seconds=60)
    assert not drained
    assert 60 <= clock.seconds < 70


def test_who_is_in_a_hurry_leaves_it():
    assert play([], hurried=True) == (False, [])
