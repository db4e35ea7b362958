"""The operator closes the breakers that nobody could wait for, and leaves the others to themselves."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from douban_pipeline.core.gate_rules import GateState
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.soak.duties import Operator


class Stack:
    def __init__(self, down: bool = False) -> None:
        self.down = down
        self.launched: list[tuple[str, Any, dict[str, str]]] = []

    def launch(self, job: str, *, config: Any = None, tags: Any = None) -> str:
        if self.down:
            raise RigError("the code server is down")
        self.launched.append((job, config, dict(tags)))
        return "run"


def operator(stack: Stack, minutes: float, state: GateState = GateState.OPEN) -> Operator:
    clock = FakeClock()
    gate = SimpleNamespace(source="douban", state=state, open_until=clock.now() + timedelta(minutes=minutes))
    services = SimpleNamespace(gate=SimpleNamespace(status=lambda: [gate]), clock=clock)
    world: Any = SimpleNamespace(services=services, stack=stack)
    instance: Any = None
    return Operator(world, instance, seconds=600)


def test_a_breaker_that_stays_open_long_is_closed_once_its_source_is_well():
    stack = Stack()
    duty = operator(stack, minutes=45)
    duty.close_gates(10, unhealthy={"douban"})
    assert stack.launched == []
    duty.close_gates(15, unhealthy=())
    duty.close_gates(20, unhealthy=())
    [(job, config, tags)] = stack.launched
    given = config["ops"]["change_gate"]["config"]
    assert (job, given["source"], given["action"], given["dry_run"]) == ("set_gate", "douban", "close", False)
    assert given["reviewer"]
    assert given["note"]
    assert tags == {"soak": "operator"}
    duty.close_gates(60, unhealthy=())
    assert len(stack.launched) == 2, "a launch may be lost with what was killed"


@pytest.mark.parametrize("state", [GateState.OPEN, GateState.HALF_OPEN])
def test_a_breaker_that_soon_tries_again_is_left_alone(state: GateState):
    stack = Stack()
    operator(stack, minutes=1, state=state).close_gates(10, unhealthy=())
    assert stack.launched == []


def test_the_library_is_visited_bit_by_bit_and_swept_now_and_then():
    stack = Stack()
    duty = operator(stack, minutes=0, state=GateState.CLOSED)
    for passed in range(0, 600, 5):
        duty.step(passed, unhealthy=())
    firsts = [tags["dagster/asset_partition_range_start"] for job, _, tags in stack.launched if job == "douban_chain"]
    assert firsts == ["00", "08", "16", "24", "32", "40", "48", "56"]
    jobs = [job for job, _, _ in stack.launched]
    assert (jobs.count("sweep_library"), jobs.count("nightly_reports"), jobs.count("prune_history")) == (2, 1, 1)


def test_a_launch_that_fails_is_reported_and_harms_nobody():
    duty = operator(Stack(down=True), minutes=0, state=GateState.CLOSED)
    assert duty.launch("sweep_library") is None
    assert duty.refused == {"sweep_library": 1}
