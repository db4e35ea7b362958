"""Whatever a person decides can be taken back: the CMS to the byte, and our state but for when work was done."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of

ALONE = {"videos_at_once": 1}
RHYTHM = {"douban_last_sync_at", "douban_next_sync_at", "intro_ai_last_at"}

LINKED, DOUBTED = 4, 5
OTHER = 90_000_107

CASES = {
    DecisionAction.confirm_top1: [{"vod_id": DOUBTED}],
    DecisionAction.choose: [{"vod_id": DOUBTED, "rank": 1}],
    DecisionAction.set_id: [{"vod_id": LINKED, "douban_id": OTHER, "accept_conflicts": True, "lock": True}],
    DecisionAction.replace_and_lock: [{"vod_id": LINKED, "douban_id": OTHER, "accept_conflicts": True}],
    DecisionAction.clear_id: [{"vod_id": LINKED, "lock": True}],
    DecisionAction.ignore: [{"vod_id": LINKED}, {"vod_id": DOUBTED, "days": 30}],
    DecisionAction.lock_id: [{"vod_id": LINKED}],
    DecisionAction.unlock_id: [{"vod_id": LINKED}],
    DecisionAction.lock_intro: [{"vod_id": LINKED}],
    DecisionAction.unlock_intro: [{"vod_id": LINKED}],
    DecisionAction.rematch: [{"vod_id": LINKED}],
    DecisionAction.sync_now: [{"vod_id": LINKED, "lock": True}],
}
BEFORE = {DecisionAction.unlock_id: DecisionAction.lock_id, DecisionAction.unlock_intro: DecisionAction.lock_intro}
"""What must have been decided for an action to have a meaning."""


@pytest.fixture
def scenario(stage):
    """Video 4 is linked; video 5 has a candidate that a person is asked about."""
    scenario = stage([row_of(RIVER, LINKED), row_of(WHALE, DOUBTED, vod_name="蓝鲸与灯塔")], FILMS, **ALONE)
    assert scenario.play().success
    assert scenario.library.state(DOUBTED)["douban_review_status"] == "REVIEW"
    return scenario


def decide(scenario, action, rows):
    scenario.clock.advance(minutes=1)
    decisions = [{"action": action.value, **row} for row in rows]
    config = {"reviewer": "小李", "note": "看过海报", "dry_run": False, "decisions": decisions}
    run = scenario.launch("record_decisions", {"store_decisions": {"config": config}})
    assert run.success, run.failure
    scenario.clock.advance(minutes=1)
    # The writing step alone: what a decision has the machine do afterwards is another matter.
    assert scenario.play(steps=("synced_fields",)).success
    assert {row["state"] for row in scenario.decisions()[-len(rows) :]} == {"applied"}
    return scenario.decisions()[-1]["batch_id"]


def reported(scenario):
    """Return the CMS, our state but for when work was done, and what binds automation."""
    states = {
        vod_id: {name: value for name, value in state.items() if name not in RHYTHM}
        for vod_id, state in scenario.library.states().items()
    }
    return scenario.library.all_bytes(), states


@pytest.mark.parametrize("action", CASES)
def test_what_was_decided_is_reverted_and_applied_again(scenario, action):
    if action in BEFORE:
        decide(scenario, BEFORE[action], CASES[action])
    if action is DecisionAction.sync_now:
        scenario.library.set_cms(LINKED, vod_douban_score=1.0)
    before = reported(scenario)
    batch = decide(scenario, action, CASES[action])
    decided = reported(scenario)
    assert decided != before

    def revert_writes(batch_id):
        scenario.clock.advance(minutes=1)
        config = {"reviewer": "小王", "reason": "看错了", "dry_run": False, "batch_id": batch_id}
        run = scenario.launch("revert_changes", {"revert_writes": {"config": config}})
        assert run.success, run.failure
        assert run.output["skipped"] == run.output["in_part"] == 0
        return run.output["batch"]

    undone = revert_writes(batch)
    assert reported(scenario) == before
    assert {row["state"] for row in scenario.decisions() if row["batch_id"] == batch} == {"reverted"}
    for vod_id in (LINKED, DOUBTED):
        assert scenario.library.state(vod_id)["douban_next_sync_at"] is not None
    revert_writes(undone)
    assert reported(scenario) == decided
    assert {row["state"] for row in scenario.decisions() if row["batch_id"] == batch} == {"applied"}


def test_every_action_has_a_case():
    # `redo_intro` needs a language model; its change is an intro's, whose reverts have tests of their own.
    assert set(CASES) == set(DecisionAction) - {DecisionAction.redo_intro}
