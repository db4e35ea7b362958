"""A person orders an intro: shown first, then exactly that one is written, over a lock too, and locked again."""

from __future__ import annotations

import pytest

from douban_pipeline.cms.values import content_text
from douban_pipeline.dagster_kit.launchpad import RefusedConfigError
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.douban.intros.room import BARE, linked
from douban_pipeline_tests.harness.fixtures.library import video
from douban_pipeline_tests.harness.fixtures.runs import Run
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, WHALE, telling


def metadata_of(result):
    assert result.success, Run(result).failure
    return Run(result).output


def test_what_was_shown_is_what_is_written(room_everywhere):
    house = room_everywhere(linked(RIVER, 4))
    house.library.set_state(4, intro_locked=True)
    before = house.library.all_bytes(), house.library.states()
    shown = metadata_of(house.redo(4, dry_run=True))
    [intro] = house.intros()
    assert (shown["shown"], shown["written"], shown["asked"]) == (1, 0, 1)
    assert intro["intro_text"] in shown["intros"].replace("\\", "")
    assert (intro["state"], intro["task_id"], intro["cost_usd"] > 0) == ("preview", None, True)
    assert shown["cost_usd"] == pytest.approx(intro["cost_usd"], abs=1e-6)
    assert (house.library.all_bytes(), house.library.states(), house.library.log()) == (*before, [])
    house.clock.advance(hours=5)
    written = metadata_of(house.redo(4))
    assert (written["written"], written["asked"], house.calls) == (1, 0, 1), "not paid for again"
    assert content_text(house.content(4)) == intro["intro_text"]
    [change] = house.library.log()
    assert (change["action"], change["operator"], change["state"]) == ("intro", "小王", "applied")
    assert change["reason"].startswith("原简介剧透；AI 简介：模型 ")
    assert telling(house.intros(), "state", "change_id") == [("written", change["change_id"])]
    state = house.library.state(4)
    assert (state["intro_locked"], state["intro_lock_time"]) == (True, house.clock.now())
    assert house.failed_guards() == {}
    # Another order is another text; the one before is no longer to be had.
    assert metadata_of(house.redo(4))["asked"] == 1


def test_a_shown_text_is_not_written_when_the_facts_changed_or_a_day_has_passed(room):
    house = room(linked(RIVER, 4), linked(WHALE, 5))
    metadata_of(house.redo(4, 5, dry_run=True))
    house.library.set_cms(4, vod_actor="新人丁")
    assert metadata_of(house.redo(4))["asked"] == 1
    house.clock.advance(days=1, minutes=1)
    assert metadata_of(house.redo(5))["asked"] == 1


def test_a_shown_text_that_is_too_like_another_by_now_is_written_anew(room):
    house = room(linked(RIVER, 4), linked(WHALE, 5))
    house.upstream.faults.add("llm", "same_text")
    metadata_of(house.redo(5, dry_run=True))
    assert house.run(4)["written"] == 1
    house.upstream.faults.clear()
    assert metadata_of(house.redo(5))["written"] == 1
    assert telling(house.intros(5), "state") == [("refused",), ("written",)]


def test_the_guard_holds_for_people_too(room):
    house = room(linked(RIVER, 4))
    house.upstream.faults.add("llm", "invented_link", stubborn=True)
    before = house.library.all_bytes()
    result = metadata_of(house.redo(4))
    assert (result["refused"], result["written"], result["asked"]) == (1, 0, 2)
    assert "未通过核对" in result["intros"]
    assert house.library.all_bytes() == before
    assert house.library.state(4)["intro_ai_fail_count"] == 0


def test_a_row_that_the_cms_locked_is_written_on_a_persons_word(room):
    house = room(linked(RIVER, 4, vod_lock=1))
    refused = house.redo(4)
    assert "影片已在 CMS 中锁定（vod_lock）" in Run(refused).failure
    assert metadata_of(house.redo(4, override_cms_lock=True))["written"] == 1


def test_an_unhealthy_source_ends_it_and_says_so(room):
    house = room(linked(RIVER, 4), linked(WHALE, 5))
    house.upstream.faults.add("llm", "throttled")
    result = metadata_of(house.redo(4, 5))
    assert (result["failed"], result["skipped"], house.calls) == (1, 1, 1)
    assert result["intros"].count("429") == 2


def test_a_failed_call_does_not_end_it_and_its_cost_is_kept(room):
    house = room(linked(RIVER, 4), linked(WHALE, 5), linked(BARE, 6, vod_class=""))
    house.upstream.faults.add("llm", "cut_off", times=1)
    result = metadata_of(house.redo(4, 5, 6))
    assert (result["failed"], result["written"], result["skipped"]) == (1, 1, 1)
    assert telling(house.intros(), "vod_id", "state") == [(4, "failed"), (5, "written")]
    assert house.intros()[0]["cost_usd"] > 0


def test_the_budget_holds_for_people_too(room):
    house = room(linked(RIVER, 4), linked(WHALE, 5), llm_budget_usd_per_day=0.000_001)
    result = metadata_of(house.redo(4, 5))
    assert (result["written"], result["failed"], house.calls) == (1, 1, 1)
    assert "今日预算" in result["intros"]


def test_an_order_over_an_intro_is_taken_back_step_by_step(room):
    house = room(linked(RIVER, 4))
    before = house.library.all_bytes()
    house.run()
    first = house.content(4)
    house.library.set_cms(4, vod_actor="新人丁")
    metadata_of(house.redo(4))
    second = [change["change_id"] for change in house.changes()][-1]
    undo = house.library.change_log("undo")
    revert(undo, ChangeSelection((second,)), operator="小王", reason="还是原来的好", dry_run=False)
    assert house.content(4) == first
    assert house.library.state(4)["intro_locked"] is True
    assert telling(house.intros(), "state") == [("written",), ("withdrawn",)]
    revert(undo, ChangeSelection((house.changes()[0]["change_id"],)), operator="小王", reason="都不好", dry_run=False)
    house.library.set_cms(4, vod_actor="长河甲,长河乙")
    assert house.library.all_bytes() == before
    assert house.library.state(4)["intro_locked"] is False


def test_all_that_is_wrong_is_said_at_once_and_nobody_is_asked(room):
    house = room(linked(RIVER, 4), video(5), linked(WHALE, 6), dry_run=True)
    house.library.set_state(5, douban_review_status="NOT_FOUND")
    house.library.set_state(6, douban_review_status="REVIEW")
    with pytest.raises(RefusedConfigError, match="reviewer: 不能为空，请填写你的名字"):
        house.redo(4, reviewer=" ")
    with pytest.raises(RefusedConfigError, match="vod_ids: 不能为空，请填写影片的编号"):
        house.redo()
    result = house.redo(4, 4, 5, 6, 77)
    failure = Run(result).failure
    assert not result.success
    for problem in (
        "未重写任何简介",
        "影片 4：写了 2 次",
        "影片 5：影片不是已确认状态",
        "影片 6：影片不是已确认状态",
        "影片 77：没有这部影片",
        "DOUBAN_PIPELINE_DRY_RUN=true 时不写入",
    ):
        assert problem in failure
    # In the name of what is automatic, a rewritten locked text would be a breach that stops the chain.
    named = house.under(dry_run=False).redo(4, reviewer="Pipeline")
    assert "reviewer: pipeline 代表自动写入，请填写你的名字" in Run(named).failure
    off = house.under(ai_intros=False, openrouter_api_key="").redo(4)
    assert "AI 简介未开启" in Run(off).failure
    assert (house.calls, house.intros()) == (0, [])
    assert metadata_of(house.redo(4, dry_run=True))["shown"] == 1, "showing is allowed where writing is not"
