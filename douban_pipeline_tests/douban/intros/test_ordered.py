"""An intro that a person orders: over a lock, in the person's name, and never lost without a word."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.cms.values import content_text
from douban_pipeline.douban.chain.decision_lane.open_orders import open_orders
from douban_pipeline.douban.decisions.application import apply_decisions, decisions_of_run
from douban_pipeline.douban.intros.ledger import IntroLedger
from douban_pipeline.douban.intros.writer import IntroWriter
from douban_pipeline.douban.store.decisions import DecisionStatus
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.revert import ChangeSelection, revert
from douban_pipeline_tests.douban.intros.room import linked
from douban_pipeline_tests.douban.intros.test_writer import Killed, dies_after, dies_before
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.deciding import decide, decisions
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, WHALE, telling

HOUR = timedelta(hours=1)


def order(house, vod_id=4, status=DecisionStatus.QUEUED, **columns):
    """Order an intro, and have the decision applied as far as the step that writes fields does; return its id."""
    decision_id = decide(house.library, vod_id, "redo_intro", note="原简介剧透", **columns)
    services, run_id = house.library.services, f"order-{decision_id}"
    deadline = house.clock.now() + HOUR
    log = services.change_log(run_id)
    queue = services.queue(run_id)
    assert apply_decisions(services, queue, log, [vod_id % 64], deadline=deadline) == 1
    [decision] = decisions_of_run(services, queue, [])
    assert decision.status is status, decision.reason
    return decision_id


def decided(house):
    """Return how many ordered intros the lane would be launched for."""
    return open_orders(house.library.services).intros


LOCKED = {"intro_locked": True, "intro_lock_time": START, "intro_ai_last_at": START, "intro_ai_last_fail_at": START}


def test_an_order_is_applied_over_locks_and_whatever_was_tried_lately(room_everywhere):
    house = room_everywhere(linked(RIVER, 4, vod_lock=1))
    house.library.set_state(4, **LOCKED)
    assert house.run()["asked"] == 0, "nobody ordered it"
    decision_id = order(house, override_cms_lock=True)
    assert decided(house) == 1
    house.clock.advance(minutes=5)
    metadata = house.run()
    assert (metadata["written"], metadata["ordered"], metadata["asked"]) == (1, 1, 1)
    [change], [intro] = house.changes(), house.intros()
    assert (change["operator"], change["decision_id"], change["state"]) == ("小王", decision_id, "applied")
    assert change["reason"].startswith("原简介剧透；AI 简介：模型 ")
    assert content_text(house.content(4)) == intro["intro_text"]
    state = house.library.state(4)
    assert (state["intro_locked"], state["intro_lock_time"]) == (True, house.clock.now())
    [task] = house.library.tasks()
    assert (task["status"], task["task_id"]) == ("SUCCESS", intro["task_id"])
    assert decisions(house.library, "state", "state_reason", "task_id") == [("applied", "", task["task_id"])]
    assert decided(house) == 0
    assert house.failed_guards() == {}
    # Another order is a decision of its own, and reverting it says so of that decision.
    house.clock.advance(minutes=5)
    order(house, override_cms_lock=True)
    assert house.run()["asked"] == 1
    log = house.library.change_log("undo")
    selection = ChangeSelection((house.changes()[-1]["change_id"],))
    revert(log, selection, operator="王", reason="不好", dry_run=False, override_cms_lock=True)
    assert decisions(house.library, "state") == ["applied", "reverted"]
    assert content_text(house.content(4)) == intro["intro_text"]


def test_an_order_is_not_lost_when_intros_are_switched_off_later(room):
    house = room(linked(RIVER, 4))
    order(house)
    metadata = house.under(ai_intros=False, openrouter_api_key="").run()
    assert (metadata["switched_off"], metadata["dropped"]) == (True, 1)
    assert decisions(house.library, "state", "state_reason") == [("refused", "AI 简介未开启")]


def test_a_spent_budget_lets_an_order_wait_for_the_next_day(room):
    house = room(linked(RIVER, 4), llm_budget_usd_per_day=0, site_timezone="Asia/Shanghai")
    order(house)
    metadata = house.run()
    assert (metadata["deferred"], metadata["asked"], house.calls) == (1, 0, 0)
    assert decisions(house.library, "state") == ["queued"]
    assert decided(house) == 0, "or the sensor would launch a run every half minute"
    house.clock.advance(hours=12, minutes=1)
    rich = house.under(llm_budget_usd_per_day=1)
    assert decided(rich) == 1
    assert rich.run()["written"] == 1
    assert decisions(house.library, "state") == ["applied"]


@pytest.mark.parametrize("fault", ["login_redirect", "unpaid", "throttled", "server_error"])
def test_an_unhealthy_source_lets_an_order_wait(room, fault):
    house = room(linked(RIVER, 4))
    house.upstream.faults.add("llm", fault)
    order(house)
    before = house.library.all_bytes()
    assert house.run()["written"] == 0
    assert (decisions(house.library, "state"), house.library.all_bytes()) == (["queued"], before)
    assert decided(house) == 0
    house.upstream.faults.clear()
    house.library.services.gate.close("openrouter")
    house.clock.advance(days=1)
    assert decided(house) == 1
    assert house.run()["written"] == 1
    assert decisions(house.library, "state") == ["applied"]


def test_a_text_that_the_guard_refuses_twice_is_not_written_and_that_is_reported(room_everywhere):
    house = room_everywhere(linked(RIVER, 4))
    house.library.set_state(4, **LOCKED)
    house.upstream.faults.add("llm", "invented_link", stubborn=True)
    order(house)
    before = house.library.all_bytes()
    metadata = house.run()
    assert (metadata["refused_by_guard"], metadata["asked"], house.library.all_bytes()) == (1, 2, before)
    [(state, reason)] = decisions(house.library, "state", "state_reason")
    assert (state, reason) == ("refused", house.intros()[-1]["reason"])
    assert reason
    assert house.library.state(4)["intro_locked"] is True


@pytest.mark.parametrize(
    ("state", "cms", "reason"),
    [
        ({"douban_review_status": "REVIEW"}, {}, "影片不是已确认状态"),
        ({}, {"vod_douban_id": WHALE["id"]}, f"CMS 中的豆瓣 ID 已变为 {WHALE['id']}"),
    ],
)
def test_what_changed_while_the_order_waited_is_reported(room, state, cms, reason):
    house = room(linked(RIVER, 4))
    order(house)
    if state:
        house.library.set_state(4, **state)
    if cms:
        house.library.set_cms(4, **cms)
    assert house.run()["skipped"] == 1
    assert decisions(house.library, "state", "state_reason") == [("refused", reason)]


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(dies_after(IntroLedger, "record"), id="noted, not judged"),
        pytest.param(dies_after(ChangeLog, "_prepare"), id="prepared"),
        pytest.param(dies_after(ChangeLog, "_apply"), id="written, not settled"),
        pytest.param(dies_before(IntroWriter, "_settle"), id="settled, task open"),
    ],
)
def test_a_killed_run_carries_an_order_out_once(room_everywhere, monkeypatch, point):
    house = room_everywhere(linked(RIVER, 4))
    house.library.set_state(4, **LOCKED)
    order(house)
    with monkeypatch.context() as patch:
        patch.setattr(*point)
        with pytest.raises(Killed):
            house.run()
    house.run()
    [change] = [change for change in house.changes() if change["state"] == "applied"]
    assert (house.calls, len(house.intros())) == (1, 1), "no answer was paid for twice"
    assert content_text(house.content(4)) == house.intros()[0]["intro_text"]
    assert house.intros()[0]["change_id"] == change["change_id"]
    assert decisions(house.library, "state") == ["applied"]
    assert not [task for task in house.library.tasks() if task["open_key"]]
    assert house.failed_guards() == {}


@pytest.mark.parametrize("ordered", [False, True], ids=["due", "ordered"])
def test_an_intro_of_a_killed_run_that_was_reverted_is_not_tried_again(room_everywhere, monkeypatch, ordered):
    house = room_everywhere(linked(RIVER, 4))
    if ordered:
        order(house)
    with monkeypatch.context() as patch:
        patch.setattr(*dies_before(IntroWriter, "_settle"))
        with pytest.raises(Killed):
            house.run()
    [change] = house.changes()
    selection = ChangeSelection((change["change_id"],))
    revert(house.library.change_log("revert-1"), selection, operator="小王", reason="剧透", dry_run=False)
    written = house.run(run_id="next")
    assert (house.content(4), house.calls) == ("<p>原有简介</p>", 1)
    assert telling(house.intros(), "state", "change_id") == [("withdrawn", change["change_id"])]
    [task] = house.library.tasks()
    assert (task["status"], task["open_key"], written["skipped"]) == ("SUCCESS", None, 1)
    assert "已由中断的运行写入" in written["texts"]
    assert telling(house.changes(), "state") == [("reverted",)]
    assert house.failed_guards() == {}
