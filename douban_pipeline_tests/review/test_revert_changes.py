"""Taking writes back as a person does it, in Dagster: to the byte, and so that it can itself be taken back."""

from __future__ import annotations

import dagster as dg
import pytest

from douban_pipeline.review.jobs import RevertConfig, revert_changes
from douban_pipeline_tests.scenario import FILMS, RIVER, TRAM, WHALE, row_of, telling


@pytest.fixture
def scenario(stage):
    rows = [row_of(RIVER, 4, vod_actor="内详"), row_of(WHALE, 5), row_of(TRAM, 6, vod_douban_id=90_000_103)]
    return stage(rows, FILMS)


def take_back(scenario, *, dry_run=False, operator="小王", reason="年份有误", **chosen):
    nothing = {"change_ids": [], "batch_id": "", "run_id": ""}
    config = {"operator": operator, "reason": reason, "dry_run": dry_run, **nothing, **chosen}
    return scenario.launch("revert_changes", {"take_back": {"config": config}})


@pytest.mark.parametrize("by", ["batch_id", "run_id", "change_ids"])
def test_a_batch_is_taken_back_to_the_byte_and_put_back_to_the_byte(scenario, by):
    before = scenario.library.all_bytes()
    written = scenario.play()
    after = scenario.library.all_bytes()
    assert after != before
    changes = [change["change_id"] for change in scenario.library.log()]
    batch = written.metadata("synced_fields")["batch"]
    chosen = {"batch_id": batch, "run_id": written.run_id, "change_ids": changes}[by]

    shown = take_back(scenario, dry_run=True, **{by: chosen})
    assert shown.success
    assert (shown.output["dry_run"], shown.output["selected"], shown.output["in_full"]) == (True, 3, 3)
    assert scenario.library.all_bytes() == after
    assert len(scenario.library.log()) == 3

    undone = take_back(scenario, **{by: chosen})
    assert (undone.success, undone.output["in_full"], undone.output["skipped"]) == (True, 3, 0)
    assert scenario.library.all_bytes() == before
    assert {change["state"] for change in scenario.library.log()[:3]} == {"reverted"}
    assert {(change["operator"], change["reason"]) for change in scenario.library.log()[3:]} == {("小王", "年份有误")}
    assert scenario.library.state(4)["douban_review_status"] == "REVIEW"
    assert scenario.library.state(4)["douban_review_reason"] == "关联 90000101 已被撤销：年份有误"
    assert scenario.check().failed_guards == set()

    redone = take_back(scenario, batch_id=undone.output["batch"], reason="是我看错了")
    assert (redone.success, redone.output["in_full"]) == (True, 3)
    assert scenario.library.all_bytes() == after
    assert {change["state"] for change in scenario.library.log()[:3]} == {"applied"}
    assert scenario.check().failed_guards == set()


def test_what_changed_since_is_left_and_listed(scenario):
    written = scenario.play()
    scenario.library.set_cms(4, vod_writer="站长改的")
    scenario.library.set_state(5, douban_id_locked=True, douban_id_lock_time=scenario.clock.now())
    undone = take_back(scenario, run_id=written.run_id)
    assert undone.success
    assert (undone.output["selected"], undone.output["in_full"], undone.output["in_part"]) == (3, 1, 2)
    told = undone.output["changes"].replace("\\", "")
    assert "之后已被改动" in told
    assert "之后已被锁定" in told
    assert scenario.cms(4, "vod_douban_id", "vod_writer", "vod_actor") == (0, "站长改的", "内详")
    assert scenario.cms(5, "vod_douban_id", "vod_writer") == (90_000_102, "")


def test_a_decision_is_taken_back_too(scenario):
    scenario.play()
    scenario.clock.advance(minutes=1)
    before = scenario.library.all_bytes()
    wish = [{"vod_id": 4, "action": "clear_id"}]
    config = {"reviewer": "小李", "note": "误操作", "dry_run": False, "decisions": wish}
    assert scenario.launch("record_decisions", {"store_decisions": {"config": config}}).success
    assert scenario.play(4).success
    assert scenario.cms(4, "vod_douban_id") == (0,)
    [change] = [change for change in scenario.library.log() if change["action"] == "clear_id"]
    assert take_back(scenario, change_ids=[change["change_id"]]).output["in_full"] == 1
    assert scenario.library.all_bytes() == before
    state = scenario.library.state(4)
    assert (state["vod_douban_id"], state["douban_review_status"]) == (90_000_101, "CONFIRMED")


def test_nothing_is_taken_back_without_a_name_a_reason_and_a_choice(scenario):
    written = scenario.play()
    after, log = scenario.library.all_bytes(), scenario.library.log()
    for missing in ({"operator": " "}, {"reason": ""}):
        run = take_back(scenario, run_id=written.run_id, **missing)
        assert not run.success
        assert f"请填写 {next(iter(missing))}" in run.failure
    run = take_back(scenario)
    assert not run.success
    assert "请填写 change_ids、batch_id 或 run_id 之一" in run.failure
    assert take_back(scenario, batch_id="no such batch").output["selected"] == 0
    assert (scenario.library.all_bytes(), scenario.library.log()) == (after, log)


def test_the_same_revert_twice_does_nothing_the_second_time(scenario):
    written = scenario.play()
    assert take_back(scenario, run_id=written.run_id).output["in_full"] == 3
    before = scenario.library.all_bytes()
    assert take_back(scenario, run_id=written.run_id).output["selected"] == 0
    assert scenario.library.all_bytes() == before
    assert telling(scenario.library.log(), "state") == [("reverted",)] * 3 + [("applied",)] * 3


def test_the_launchpad_is_prefilled_with_everything_and_every_default_is_safe():
    config = revert_changes.run_config["ops"]["take_back"]["config"]
    assert set(config) == set(RevertConfig.model_fields)
    assert config["dry_run"] is True
    assert not any(config[name] for name in ("operator", "reason", "change_ids", "batch_id", "run_id"))
    assert dg.validate_run_config(revert_changes, revert_changes.run_config)
