"""What a person confirmed of a title holds for other videos with that title, as long as the decision holds."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.match.due_rechecks import RecheckReason, queue_due_rechecks
from douban_pipeline.douban.quality.stored_verdicts import RescoreSelection, StoredVerdicts
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.matching.profiles import make_profile
from douban_pipeline_tests.harness.fixtures.deciding import decide
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, row_of

OTHER_NAME = "晨江归来的人们"
"""How this site calls the film; Douban has no such name."""
DONE = {"state": DecisionState.APPLIED, "pending_key": None}


@pytest.fixture
def told(stage):
    """Return what sets a scene: a person chose a subject for video 4, and video 5 is due with ``columns``."""

    def scene(columns=(), decision=()):
        nobody = {"vod_director": "", "vod_actor": ""}
        rows = [
            row_of(RIVER, 4, vod_name=OTHER_NAME, **nobody),
            row_of(RIVER, 5, **{"vod_name": OTHER_NAME, **nobody, **dict(columns)}),
        ]
        scenario = stage(rows, FILMS)
        assert scenario.play(4, steps=STEPS[:3]).success
        [seen] = scenario.verdicts(4)
        assert seen["verdict"] != "CONFIRMED", "its name alone leads nowhere"
        given = {**DONE, "verdict_id": seen["verdict_id"], **dict(decision)}
        then = given.pop("then", "")
        scenario.decided = decide(scenario.library, 4, "set_id", RIVER["id"], **given)
        if then:
            decide(scenario.library, 4, then, **DONE)
        return scenario

    return scene


def test_the_name_links_a_video_with_the_reason(told):
    scenario = told({"vod_name": f"{OTHER_NAME} HD中字"})
    assert scenario.play(5).success
    assert scenario.cms(5, "vod_douban_id") == (RIVER["id"],)
    [verdict] = scenario.verdicts(5)
    [name] = verdict["facts"]["known_names"]
    assert (name["name"], name["vod_id"], name["decision_id"]) == (OTHER_NAME, 4, scenario.decided)
    reason = f"片名《{OTHER_NAME}》由 小王 确认过是条目 {RIVER['id']}（影片 4，决定 {scenario.decided}）。"
    assert verdict["explanation"].endswith(reason)
    [stored] = [
        each
        for batch in StoredVerdicts(scenario.services, RescoreSelection()).batches()
        for each in batch
        if each.vod_id == 5
    ]
    assert stored.case.judge(make_profile("calibrated")).explanation == verdict["explanation"], "it can be judged again"


@pytest.mark.parametrize(
    ("columns", "decision"),
    [
        ({"vod_year": "2015"}, {}),
        ({"vod_name": f"{OTHER_NAME} 第二季"}, {}),
        ({"vod_name": f"{OTHER_NAME} 舞台剧版"}, {}),
        ({"vod_name": "晨江归来的人"}, {}),
        ({"type_id": 2, "type_id_1": 0, "vod_total": 24}, {}),
        ({}, {"state": DecisionState.REVERTED}),
        ({}, {"state": DecisionState.REFUSED}),
        ({}, {"accept_conflicts": True}),
        ({}, {"verdict_id": None}),
        ({}, {"then": "clear_id"}),
    ],
)
def test_all_else_that_a_link_needs_stays_needed(told, columns, decision):
    scenario = told(columns, decision)
    assert scenario.play(5, steps=STEPS[:3]).success
    assert [verdict["verdict"] for verdict in scenario.verdicts(5)] != ["CONFIRMED"]


def test_a_decision_that_no_longer_holds_has_its_links_judged_again(told):
    scenario = told()
    assert scenario.play(5).success
    later = scenario.clock.now() + timedelta(days=400)
    scenario.library.set_state(5, douban_next_sync_at=later)
    scenario.library.set_state(4, douban_next_sync_at=later)

    def queued():
        return queue_due_rechecks(scenario.services, range(64), parts=1, run_id="rechecks").queued

    assert queued() == []
    table = scenario.library.tables.decision
    scenario.library.execute(sa.update(table).values(state=DecisionState.REVERTED))
    assert [(item.vod_id, item.reason) for item in queued()] == [(5, RecheckReason.NAMES)]
    assert scenario.play(5).success
    state = scenario.library.state(5)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (RIVER["id"], "REVIEW"), "a person looks at it"
    assert "所依据的片名确认已撤回" in state["douban_review_reason"]
