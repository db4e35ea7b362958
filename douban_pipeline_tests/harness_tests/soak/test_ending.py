"""The drain waits for a slow machine as long as anything moves, and leaves a standstill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.exc import OperationalError

from douban_pipeline_tests.harness.soak.duties import Waiting
from douban_pipeline_tests.harness.soak.ending import PATIENCE_SECONDS, drain

BUSY = Waiting(shards=8, tasks=40, runs=2)
IDLE = Waiting(shards=0, tasks=0, runs=0)


class Clockwork:
    """A pipeline whose state follows a list, and a clock that each look moves on by a minute."""

    def __init__(self, states: Iterator[Waiting | None]) -> None:
        self.states, self.now, self.launched = states, 0.0, []

    def close_gates(self, _passed: float, _unhealthy: tuple[str, ...]) -> None:
        self.now += 60

    def waiting(self) -> Waiting:
        state = next(self.states)
        if state is None:
            raise OperationalError("SELECT 1", {}, ConnectionError("gone"))
        return state

    def sweep(self) -> None:
        self.launched.append("sweep")

    def launch(self, job: str, _config: object = None) -> None:
        self.launched.append(job)

    def visit_shards(self, first: int, _pipeline: str) -> None:
        self.launched.append(f"shards from {first}")

    def drained(self, hurried: bool = False) -> bool:
        self.said: list[str] = []
        return drain(
            self,  # type: ignore[arg-type]
            self.said.append,
            lambda: hurried,
            clock=lambda: self.now,
            sleep=lambda _seconds: None,
        )


def constantly(state: Waiting) -> Iterator[Waiting]:
    while True:
        yield state


def slowly(minutes: int) -> Iterator[Waiting]:
    """Yield work of which a run ends every four minutes, then none."""
    for minute in range(minutes):
        yield Waiting(shards=8, tasks=400, runs=3, ended=minute // 4)
    yield from constantly(IDLE)


def test_all_is_taken_in_visited_and_looked_at_once_more():
    pipeline = Clockwork(constantly(IDLE))
    assert pipeline.drained()
    assert pipeline.launched[:2] == ["sweep", "take_in_changes"]
    assert [name for name in pipeline.launched if name.startswith("shards")] == [
        *(f"shards from {first}" for first in range(0, 64, 8)),
        "shards from 0",
    ]


def test_a_slow_machine_is_waited_for_while_runs_end():
    assert Clockwork(slowly(40)).drained()


def test_a_standstill_is_left_and_told():
    pipeline = Clockwork(constantly(BUSY))
    assert not pipeline.drained()
    assert PATIENCE_SECONDS < pipeline.now < 2 * PATIENCE_SECONDS
    assert "8 shards and 40 tasks wait, 2 runs under way" in pipeline.said[-1]


def test_a_database_that_is_away_is_asked_again():
    assert Clockwork(iter([None, None, *[IDLE] * 9])).drained()


@pytest.mark.parametrize("state", [BUSY, IDLE])
def test_who_is_in_a_hurry_leaves_it(state: Waiting):
    assert not Clockwork(constantly(state)).drained(hurried=True)
