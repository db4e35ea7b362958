"""A sync that a person orders: Douban is asked anew at once, and the decision shares the task's fate."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.chain.decision_lane.open_orders import open_orders
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.douban.chain.sync.test_decisions import changes_of, run_decisions
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.runs import STEPS
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of


@pytest.fixture
def synced(stage):
    """Video 5 is linked and was synced a moment ago."""
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], FILMS, videos_at_once=1)
    assert scenario.play().success
    scenario.clock.advance(minutes=1)
    return scenario


def decided(scenario):
    """Return how many decisions and ordered syncs the lane would be launched for."""
    found = open_orders(scenario.services)
    return found.decisions + found.syncs


def test_douban_is_asked_anew_whatever_the_archive_holds(synced):
    asked = synced.upstream.requests.count("douban")
    synced.library.set_cms(5, vod_douban_score=Decimal("1.0"))
    decision_id = decide(synced.library, 5, "sync_now")
    assert decided(synced) == 1
    metadata = run_decisions(synced, 5, applied=1)
    assert (metadata["written"], synced.upstream.requests.count("douban")) == (1, asked + 1)
    [change] = changes_of(synced, decision_id)
    assert (change["action"], change["operator"], change["new_values"]) == (
        "sync",
        "pipeline",
        {"vod_douban_score": "7.9"},
    )
    assert change["reason"] == "审核员要求立即同步，按豆瓣条目更新字段"
    task = synced.task(5)
    assert (task["status"], task["priority"]) == ("SUCCESS", 1000)
    assert decisions(synced.library, "state", "state_reason", "task_id") == [("applied", "", task["task_id"])]
    assert decided(synced) == 0
    # Taken back, the decision says so; nothing else was done for it.
    revert(
        synced.library.change_log("undo"),
        ChangeSelection((change["change_id"],)),
        operator="小李",
        reason="不对",
        dry_run=False,
    )
    assert synced.cms(5, "vod_douban_score") == (Decimal("1.0"),)
    assert decisions(synced.library, "state") == ["reverted"]


def test_the_id_is_locked_too_if_so_wanted(synced):
    decision_id = decide(synced.library, 5, "sync_now", lock=True)
    run_decisions(synced, 5, applied=1)
    [change] = changes_of(synced, decision_id)
    assert (change["action"], change["operator"], change["new_values"]) == ("sync_now", "小王", {})
    assert synced.library.state(5)["douban_id_locked"] is True


@pytest.mark.parametrize(
    ("meddle", "reason"),
    [
        (lambda library: library.set_cms(5, vod_lock=1), "影片已在 CMS 中锁定（vod_lock）"),
        (lambda library: library.set_state(5, douban_review_status="REVIEW"), "影片不是已确认状态"),
        (lambda library: library.set_cms(5, vod_douban_id=RIVER["id"]), f"CMS 中的豆瓣 ID 已变为 {RIVER['id']}"),
        (lambda library: library.execute(sa.delete(library.cms.vod)), "影片已从 CMS 中删除"),
    ],
)
def test_what_prevents_it_is_reported(synced, meddle, reason):
    """Between the order and its application: a sync that waited for its source."""
    library = synced.library
    synced.upstream.faults.add("douban", "captcha")
    decide(library, 5, "sync_now")
    run_decisions(synced, 5, queued=1)
    [(state, task_id, key, settled)] = decisions(library, "state", "task_id", "pending_key", "settled_at")
    assert (state, task_id, key, settled) == ("queued", synced.task(5)["task_id"], None, None)
    assert decided(synced) == 0, "not before the source may be asked again"
    library.set_cms(5, vod_douban_score=Decimal("1.0"))
    meddle(library)
    synced.upstream.faults.clear()
    synced.services.gate.close("douban")
    synced.clock.advance(hours=1)
    assert decided(synced) == 1
    metadata = synced.play(5, steps=["synced_fields"]).metadata("synced_fields")
    assert (metadata["decisions_applied"], metadata["decisions_refused"]) == (0, 1)
    assert reason in metadata["refused_decisions"].replace("\\", "")
    assert decisions(library, "state", "state_reason") == [("refused", reason)]
    assert decided(synced) == 0


def test_a_lock_that_was_set_too_stays_though_the_sync_is_refused(synced):
    library = synced.library
    synced.upstream.faults.add("douban", "captcha")
    decision_id = decide(library, 5, "sync_now", lock=True)
    run_decisions(synced, 5, queued=1)
    library.set_cms(5, vod_lock=1)
    library.set_cms(5, vod_douban_score=Decimal("1.0"))
    synced.upstream.faults.clear()
    synced.services.gate.close("douban")
    synced.clock.advance(hours=1)
    metadata = synced.play(5, steps=["synced_fields"]).metadata("synced_fields")
    assert (metadata["decisions_applied"], metadata["decisions_refused"]) == (1, 0)
    reason = "豆瓣 ID 已锁定，但未同步：影片已在 CMS 中锁定（vod_lock）"
    assert decisions(library, "state", "state_reason") == [("applied", reason)]
    assert [change["action"] for change in changes_of(synced, decision_id) if change["state"] == "applied"] == [
        "sync_now"
    ]
    assert library.state(5)["douban_id_locked"] is True


def test_a_subject_that_is_gone_is_reported_and_a_person_is_asked(stage):
    scenario = stage([row_of(WHALE, 5, vod_douban_id=WHALE["id"])], [RIVER])
    scenario.library.set_state(5, douban_review_status="CONFIRMED")
    decide(scenario.library, 5, "sync_now")
    metadata = run_decisions(scenario, 5, refused=1)
    assert metadata["sent_to_review"] == 1
    gone = f"豆瓣条目 {WHALE['id']} 已不存在"
    assert decisions(scenario.library, "state", "state_reason") == [("refused", gone)]
    assert scenario.library.state(5)["douban_review_status"] == "REVIEW"


def test_a_category_that_falls_out_of_scope_loses_no_order_silently(synced):
    synced.upstream.faults.add("douban", "captcha")
    decide(synced.library, 5, "sync_now")
    run_decisions(synced, 5, queued=1)
    excluded = synced.under(excluded_type_ids="6")
    assert excluded.play(5, steps=STEPS[:1]).metadata("due_videos")["dropped_out_of_scope"] == 1
    assert decisions(synced.library, "state", "state_reason") == [("refused", "分类不在处理范围内")]


def test_an_order_waits_out_a_dry_run(synced):
    synced.upstream.faults.add("douban", "captcha")
    decide(synced.library, 5, "sync_now")
    run_decisions(synced, 5, queued=1)
    synced.upstream.faults.clear()
    synced.services.gate.close("douban")
    synced.clock.advance(hours=1)
    synced.library.set_cms(5, vod_douban_score=Decimal("1.0"))
    dry = synced.under(dry_run=True)
    assert dry.play(5).metadata("synced_fields")["planned"] == 1
    assert decided(dry) == 0
    assert synced.cms(5, "vod_douban_score") == (Decimal("1.0"),)
    assert decisions(synced.library, "state") == ["queued"]
    synced.clock.advance(days=1, minutes=1)
    run_decisions(synced, 5, applied=1)
    assert synced.cms(5, "vod_douban_score") == (Decimal("7.9"),)


@pytest.mark.parametrize("lock", [False, True])
def test_an_order_about_a_video_that_the_cms_just_moved_out_of_scope_is_refused_and_waits_for_no_task(synced, lock):
    """Our state still has the former category: intake comes later."""
    excluded = synced.under(excluded_type_ids="7")
    synced.library.set_cms(5, type_id=7)
    decide(synced.library, 5, "sync_now", WHALE["id"], lock=lock)
    run_decisions(excluded, 5, refused=1)
    [(state, reason)] = decisions(synced.library, "state", "state_reason")
    assert (state, reason.partition("，")[0]) == ("refused", "分类 7 不在处理范围内")
    assert synced.library.state(5)["douban_id_locked"] is False


def test_an_order_whose_lock_was_written_by_a_run_that_died_does_not_wait_for_a_task_that_never_comes(synced):
    decision_id = decide(synced.library, 5, "sync_now", WHALE["id"], lock=True)
    lock = Change(5, "sync_now", {}, {}, {"douban_id_locked": True}, operator="小王", decision_id=decision_id)
    synced.library.change_log("died").write([lock])
    synced.library.set_cms(5, type_id=7)
    run_decisions(synced.under(excluded_type_ids="7"), 5, applied=1)
    [(state, reason)] = decisions(synced.library, "state", "state_reason")
    assert (state, reason) == ("applied", "豆瓣 ID 已锁定，但未同步：分类不在处理范围内")
