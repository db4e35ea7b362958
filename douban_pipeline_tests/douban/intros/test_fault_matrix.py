"""Every fault of the language model: nothing is written or lost, and once it is well every video gets its intro."""

from __future__ import annotations

import pytest

from douban_pipeline.core.gate_rules import GateState
from douban_pipeline_tests.douban.intros.room import linked
from douban_pipeline_tests.harness.fixtures.scenario import FILMS
from douban_pipeline_tests.stand_ins.faults import FAULTS, MODEL_FAULTS

VIDEOS = [linked(film, number) for number, film in enumerate(FILMS, start=4)]


@pytest.mark.usefixtures("told_timeouts")
@pytest.mark.parametrize("fault", [*FAULTS, *MODEL_FAULTS])
def test_an_unhealthy_model_costs_time_and_nothing_else(room, fault):
    house = room(*VIDEOS)
    states = house.library.states()
    before = house.library.all_bytes()
    house.upstream.faults.add("llm", fault)
    metadata = house.run()
    assert metadata["written"] == 0
    assert house.library.all_bytes() == before
    tasks = house.library.tasks()
    assert sorted(task["vod_id"] for task in tasks) == sorted(states), "one task a video, none lost or doubled"
    for task in tasks:
        # Only a text that the guard refused twice ends its task; everything else is tried again.
        assert task["status"] == ("FAIL" if fault == "wrong_id" else "PENDING")
        assert (task["lease_owner"], bool(task["last_error"])) == (None, True)
    for vod_id, state in house.library.states().items():
        links = [name for name in state if name.startswith("douban_")]
        assert [state[name] for name in links] == [states[vod_id][name] for name in links]
        assert not state["intro_locked"]

    house.upstream.faults.clear()
    house.clock.advance(days=31 if fault == "wrong_id" else 1)
    for _ in range(3):
        house.run()
        house.clock.advance(hours=2)
    [gate] = [status for status in house.library.services.gate.status() if status.source == "openrouter"]
    assert gate.state is GateState.CLOSED
    assert sorted(change["vod_id"] for change in house.changes()) == sorted(states), "each written once"
    assert {state["intro_ai_fail_count"] for state in house.library.states().values()} == {0}
    assert house.failed_guards() == {}
