"""A person's decision about a link also decides about the intro that was written from it."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.douban.writes.test_revert_intros import intros, states, tell
from douban_pipeline_tests.harness.fixtures.deciding import decide as record
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, TRAM, row_of

CHAIN = [step for step in STEPS if step != "ai_intros"]
"""The intro is planted, with no facts behind it."""


@pytest.fixture
def scenario(stage):
    """Video 4 is linked by a run, and has an intro written from its subject."""
    linked = stage([row_of(RIVER, 4, vod_content="<p>原有简介</p>")], [*FILMS])
    assert linked.play().success
    tell(linked.library, 4, RIVER["id"])
    linked.clock.advance(minutes=5)
    return linked


def decide(scenario, action, **decision):
    record(scenario.library, 4, action, **decision)
    run = scenario.play(steps=CHAIN)
    assert (run.success, run.failed_guards) == (True, set())
    return scenario.decisions()[-1]


@pytest.mark.parametrize(("action", "decision"), [("clear_id", {}), ("set_id", {"douban_id": TRAM["id"]})])
def test_the_intro_goes_with_the_link_it_was_written_from(scenario, action, decision):
    settled = decide(scenario, action, **decision)
    assert (settled["state"], settled["state_reason"]) == ("applied", "")
    assert scenario.cms(4, "vod_content") == ("<p>原有简介</p>",)
    assert states(scenario.library) == ["withdrawn"]
    assert scenario.library.state(4)["intro_locked"] is False
    [undone] = [change for change in scenario.library.log() if change["action"] == "revert"]
    assert (undone["operator"], undone["state"]) == ("小王", ChangeState.APPLIED)
    assert undone["reason"] == "所依据的豆瓣关联已撤销，简介一并撤销"
    assert undone["decision_id"] == settled["decision_id"]
    # Whoever takes the decision back gets the intro back with the link.
    ids = tuple(change["change_id"] for change in scenario.library.log() if change["decision_id"])
    log = scenario.library.change_log("undo")
    assert not any(
        result.skipped for result in revert(log, ChangeSelection(ids), operator="王", reason="", dry_run=False)
    )
    assert scenario.cms(4, "vod_douban_id", "vod_content") == (RIVER["id"], "根据条目写的简介")
    assert states(scenario.library) == ["written"]


@pytest.mark.parametrize(
    ("action", "decision"), [("lock_id", {}), ("set_id", {"douban_id": RIVER["id"]}), ("rematch", {}), ("ignore", {})]
)
def test_a_link_that_stays_keeps_its_intro(scenario, action, decision):
    decide(scenario, action, **decision)
    assert scenario.cms(4, "vod_content") == ("根据条目写的简介",)
    assert states(scenario.library) == ["written"]


def test_an_intro_that_somebody_rewrote_is_left_and_said_so(scenario):
    saved = int(scenario.clock.now().timestamp()) + 60
    scenario.library.set_cms(4, vod_content="站长写的", vod_blurb="站长写的", vod_time=saved)
    settled = decide(scenario, "clear_id")
    assert settled["state"] == "applied"
    change_id = intros(scenario.library)[0]["change_id"]
    assert settled["state_reason"] == f"简介（变更 {change_id}）未撤销：之后已被改动"
    assert scenario.cms(4, "vod_douban_id", "vod_content") == (0, "站长写的")


def test_a_run_that_died_between_the_two_is_made_good(scenario, monkeypatch):
    def die(*_given, **_named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("douban_pipeline.douban.decisions.application.revert", die)
        with pytest.raises(KeyboardInterrupt):
            decide(scenario, "set_id", douban_id=TRAM["id"])
    assert scenario.cms(4, "vod_douban_id", "vod_content") == (TRAM["id"], "根据条目写的简介")
    scenario.clock.advance(minutes=20)
    assert scenario.play(steps=CHAIN).success
    assert scenario.cms(4, "vod_content") == ("<p>原有简介</p>",)
    assert states(scenario.library) == ["withdrawn"]
    assert scenario.decisions()[-1]["state"] == "applied"
