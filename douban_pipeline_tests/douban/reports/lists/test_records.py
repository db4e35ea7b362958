"""Tasks, decisions and changes: reasons for what does not move, and what to do about what was not written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.core.owner import owner_name
from douban_pipeline.douban.reports.lists import task_figures
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.change_list import days_of_changes
from douban_pipeline.douban.store.states import ChangeState, DecisionAction
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline_tests.douban.reports.planting import (
    change,
    days_before,
    decision,
    figures,
    listed,
    opened,
    rows_in,
    task,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import dead_owner, video

HOUR = timedelta(hours=1)
MATCH, SYNC, INTRO = "MATCH_DOUBAN_ID", "SYNC_DOUBAN", "AI_INTRO"


@pytest.fixture
def videos(library):
    return library.renewed([video(n, vod_name=f"影片{'甲乙丙丁戊己庚辛'[n]}") for n in range(1, 8)])


def counts(library, name):
    return figures(library.services, name).counts


def rows(library, key, name="tasks"):
    return rows_in(figures(library.services, name).tables, key)


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_open_tasks_by_type_stage_and_status(videos):
    task(videos, 1, MATCH, "search", "PENDING", created_at=START - 3 * HOUR, run_after=START + HOUR)
    task(videos, 2, MATCH, "search", "PENDING", created_at=START - 9 * HOUR)
    task(videos, 3, MATCH, "score", "PENDING")
    task(videos, 4, SYNC, "sync", "RUNNING")
    task(videos, 5, SYNC, "sync", "SUCCESS", finished_at=START)
    found = rows(videos, "tasks_by_stage")
    assert [(row["kind"], row["stage"], row["status"], row["count"], row["later"]) for row in found] == [
        ("匹配条目", "判定", "排队", 1, 0),
        ("匹配条目", "搜索", "排队", 2, 1),
        ("更新字段", "写入", "进行中", 1, 0),
    ]
    assert found[1]["created"] == START - 9 * HOUR


def test_who_holds_tasks_and_whether_they_still_can(videos):
    for vod_id, owner, hours in ((1, owner_name("run-a"), 2), (2, owner_name("run-a"), 1), (3, dead_owner("run-b"), 3)):
        task(videos, vod_id, SYNC, "sync", "RUNNING", lease_owner=owner, lease_until=START + hours * HOUR)
    task(videos, 4, SYNC, "sync", "RUNNING", lease_owner="run-c@elsewhere:1", lease_until=START - HOUR)
    reported = [(row["run"].text, row["count"], row["until"], row["state"]) for row in rows(videos, "tasks_held")]
    assert reported == [
        ("run-c", 1, START - HOUR, "已过期，下次运行会接手"),
        ("run-a", 2, START + HOUR, "进行中"),
        ("run-b", 1, START + 3 * HOUR, "进程已结束，下次运行会接手"),
    ]
    assert rows(videos, "tasks_held")[1]["run"].address == "/runs/run-a"


def test_what_was_deferred_is_no_failure_and_reasons_differ_in_more_than_numbers(videos):
    for vod_id, hours, reason in (
        (1, 2, "douban: 关闭到 20260301040000"),
        (2, 1, "douban: 关闭到 20260301050000"),
        (3, 1, "时间用完"),
    ):
        task(videos, vod_id, SYNC, "sync", "PENDING", last_error=reason, run_after=START + hours * HOUR)
    task(videos, 4, MATCH, "search", "PENDING", last_error="时间用完")
    task(videos, 5, MATCH, "search", "PENDING")
    task(videos, 6, MATCH, "search", "PENDING", last_error="HTTP 500", attempts=1)
    reported = [(row["kind"], row["reason"], row["count"], row["until"]) for row in rows(videos, "tasks_put_off")]
    assert reported == [
        ("更新字段", "豆瓣：关闭到 20260301050000", 2, START + HOUR),
        ("匹配条目", "时间用完", 1, START),
        ("更新字段", "时间用完", 1, START + HOUR),
    ]


def test_failures_of_a_week_given_up_or_tried_again(videos):
    task(videos, 1, SYNC, "sync", "FAIL", last_error="asked for 90000001", finished_at=days_before(6))
    task(videos, 2, SYNC, "sync", "FAIL", last_error="asked for 90000002", finished_at=days_before(2))
    task(videos, 3, SYNC, "sync", "FAIL", last_error="asked for 90000003", finished_at=days_before(8))
    task(videos, 4, SYNC, "sync", "PENDING", last_error="asked for 90000004", attempts=1, run_after=START + HOUR)
    task(videos, 5, INTRO, "intro", "PENDING", last_error="HTTP 503", attempts=4, run_after=START + HOUR)
    task(videos, 6, INTRO, "intro", "PENDING", last_error="HTTP 504", attempts=4, run_after=START + HOUR)
    task(videos, 7, MATCH, "search", "SKIP", last_error="无需", finished_at=days_before(1))
    videos.set_state(4, douban_last_fail_at=days_before(3))
    videos.set_state(5, intro_ai_last_fail_at=days_before(1), douban_last_fail_at=days_before(9))
    videos.set_state(6, intro_ai_last_fail_at=days_before(9), douban_last_fail_at=days_before(1))
    reported = [
        (row["kind"], row["reason"], row["count"], row["open"], row["last"], row["example"].text)
        for row in rows(videos, "failures_by_reason")
    ]
    assert reported == [
        ("更新字段", "asked for 90000002", 3, 1, days_before(2), "2 影片丙（2024）"),
        ("AI 简介", "HTTP 503", 1, 1, days_before(1), "5 影片己（2024）"),
    ]
    assert counts(videos, "tasks")["failed_7_days"] == 4


# --- decisions --------------------------------------------------------------------------------------------------------


def test_decisions_that_wait_and_those_refused_lately(videos):
    decision(videos, 1, "set_id", state="pending", douban_id=90_000_101, pending_key="a", at=days_before(40))
    decision(videos, 2, "set_id", state="pending", douban_id=90_000_102, pending_key="b", checked_at=START)
    decision(videos, 3, "sync_now", state="queued")
    decision(videos, 4, "clear_id", state="applied")
    decision(videos, 5, "choose", state="refused", state_reason="年份不符", at=days_before(6))
    decision(videos, 6, "choose", state="refused", state_reason="影片已删除", at=days_before(5), note="看过")
    decision(videos, 7, "choose", state="refused", at=days_before(8))
    found = {row["vod_id"]: row for row in listed(videos.services, "decisions")}
    shown = [(row["action"], row["state"], row["why"]) for row in (found[1], found[2], found[3], found[6])]
    assert shown == [
        ("指定豆瓣 ID", "等待执行", "条目尚未核对"),
        ("指定豆瓣 ID", "等待执行", None),
        ("立即同步", "已排队", None),
        ("选择候选", "被拒绝", "影片已删除"),
    ]
    assert (found[1]["douban_id"], found[6]["note"], found[6]["reviewer"]) == (90_000_101, "看过", "小王")
    found_figures = figures(videos.services, "decisions")
    assert dict(found_figures.counts) == {"decisions_open": 3, "decisions_refused_7_days": 2}
    refused = found_figures.cards[-1]
    assert (refused.value, refused.tone) == ("2", "bad")
    assert refused.address.startswith("?since=2026-02-22&state=refused")


# --- changes ----------------------------------------------------------------------------------------------------------


def test_the_newest_changes_with_who_what_why_and_the_way_back(videos):
    change(videos, 1, "sync", new_values={"vod_pic": "x", "vod_tag": "y"}, old_values={"vod_pic": "", "vod_tag": ""})
    change(
        videos,
        2,
        "set_id",
        operator="小王",
        reason="海报一致",
        new_values={"vod_douban_id": 5},
        old_values={"vod_douban_id": 0},
        batch_id="3f2a",
    )
    change(videos, 99, "lock_id", operator="小王", reason="事实表 " + "0123456789abcdef" * 4)
    first, second, third = listed(videos.services, "log")
    assert (first["video"], first["what"]) == ("99（已删除）", "仅状态")
    assert (second["action"], second["what"], second["operator"]) == ("指定豆瓣 ID", "豆瓣 ID 0 → 5", "小王")
    assert (third["action"], third["what"], third["operator"]) == ("同步字段", "海报、标签", "自动")
    page = LISTS["log"](videos.services)
    chosen = {"undo": {"change_ids": [second["change_id"]]}, "undo_batch": {"batch_id": "3f2a"}}
    for key, meant in chosen.items():
        assert opened(page, second, key) == (
            "revert_changes",
            {"ops": {"revert_writes": {"config": {"reviewer": "", "reason": "", "dry_run": True, **meant}}}},
        )
    history = {"ops": {"show_history": {"config": {"vod_ids": [2]}}}}
    assert opened(page, second, "history") == ("video_history", history)


def test_changes_by_the_day_of_the_site_action_and_operator(videos):
    # Noon in Shanghai is the clock's hour; its day began twelve hours ago.
    for hours, state in ((1, "applied"), (11, "reverted"), (13, "applied")):
        change(videos, 1, at=START - hours * HOUR, state=state)
    change(videos, 1, "clear_id", operator="小王")
    change(videos, 1, state="refused")
    change(videos, 1, at=days_before(31))
    with videos.engine.connect() as connection:
        found = days_of_changes(videos.services, connection)
    assert [tuple(row.values()) for row in found] == [
        ("2026-03-01", "同步字段", "自动", 2, 1),
        ("2026-03-01", "清除豆瓣 ID", "小王", 1, 0),
        ("2026-02-28", "同步字段", "自动", 1, 0),
    ]
    assert counts(videos, "log")["changes_30_days"] == 4


def wanted(vod_id=1, operator="pipeline", **columns):
    old = {name: before for name, (before, _) in columns.items()}
    new = {name: after for name, (_, after) in columns.items()}
    return Change(vod_id, "sync", old, new, operator=operator, automatic=operator == "pipeline")


REFUSALS = {
    "the id is locked": (
        {"douban_id_locked": True},
        {},
        wanted(vod_douban_id=(0, 5)),
        "锁定优先",
        (DecisionAction.unlock_id,),
    ),
    "the intro is locked": (
        {"intro_locked": True},
        {},
        wanted(vod_blurb=("", "新")),
        "锁定优先",
        (DecisionAction.unlock_intro,),
    ),
    "the video is ignored": (
        {"douban_review_status": "IGNORED"},
        {},
        wanted(vod_pic=("", "x")),
        "忽略优先",
        (DecisionAction.rematch,),
    ),
    "the row is locked in the CMS": ({}, {"vod_lock": 1}, wanted(vod_pic=("", "x")), "在 CMS 中解锁", ()),
    "somebody wrote since": (
        {},
        {"vod_pic": "别人的"},
        wanted(vod_pic=("", "x")),
        "会自动重试",
        (DecisionAction.sync_now,),
    ),
    "somebody wrote before a person's decision": (
        {},
        {"vod_pic": "别人的"},
        wanted(operator="小王", vod_pic=("", "x")),
        "重新记录该决定",
        (),
    ),
    "the video is gone": ({}, {}, wanted(vod_id=99, vod_pic=("", "x")), "无需处理", ()),
}


@pytest.mark.parametrize(("state", "row", "change_wanted", "message", "actions"), REFUSALS.values(), ids=REFUSALS)
def test_what_to_do_about_a_write_that_was_refused(videos, state, row, change_wanted, message, actions):
    videos.set_cms(1, vod_pic="", vod_blurb="")
    if state:
        videos.set_state(1, **state)
    if row:
        videos.set_cms(1, **row)
    [outcome] = videos.change_log().write([change_wanted])
    assert outcome.state is ChangeState.REFUSED
    [row] = listed(videos.services, "log")
    assert message in row["remedy"]
    assert row["links"][: len(actions)] == tuple((str(action), change_wanted.vod_id) for action in actions)
    assert counts(videos, "log")["changes_troubled_7_days"] == 1


def test_what_does_not_fit_says_which_column(videos):
    if not videos.mysql:
        pytest.skip("SQLite holds anything")
    videos.set_cms(1, vod_pic="")
    [outcome] = videos.change_log().write([wanted(vod_pic=("", "长" * 5000))])
    assert outcome.state is ChangeState.REFUSED
    [row] = listed(videos.services, "log")
    assert "扩宽" in row["remedy"]


def test_a_conflict_asks_for_a_look(videos):
    videos.set_cms(1, vod_pic="第三个")
    change(videos, 1, state="prepared", new_values={"vod_pic": "新"}, old_values={"vod_pic": "旧"}, owner=dead_owner())
    videos.change_log().reconcile()
    [row] = listed(videos.services, "log")
    assert (row["state"], row["what"], row["links"][0]) == ("有冲突", "海报", ("sync_now", 1))
    assert "以 CMS 为准则无需处理" in row["remedy"]


def test_only_the_trouble_of_a_week_is_counted(videos):
    change(videos, 1, state="conflict", at=days_before(8))
    change(videos, 2, state="refused", at=days_before(6))
    change(videos, 3, state="conflict", at=days_before(2))
    change(videos, 4, state="applied")
    found_figures = figures(videos.services, "log")
    assert found_figures.counts["changes_troubled_7_days"] == 2
    assert [(card.label, card.value, card.address) for card in found_figures.cards[:2]] == [
        ("未写入：被拒绝", "1", "?since=2026-02-22&state=refused"),
        ("未写入：有冲突", "1", "?since=2026-02-22&state=conflict"),
    ]
    assert [row["remedy"] for row in listed(videos.services, "log") if row["vod_id"] == 4] == [None]


@pytest.mark.parametrize("name", ["tasks", "decisions", "log"])
def test_an_idle_library_has_nothing_to_tell(videos, name):
    found_figures = figures(videos.services, name)
    assert set(found_figures.counts.values()) == {0}
    assert not [table.key for table in found_figures.tables if table.rows]


def test_tables_of_reasons_are_bounded(videos):
    for number in range(task_figures.MOST + 3):
        task(videos, 1000 + number, SYNC, "sync", "PENDING", last_error=f"原因{chr(0x4E00 + number)}")
    assert len(rows(videos, "tasks_put_off")) == task_figures.MOST
    assert counts(videos, "tasks")["put_off"] == task_figures.MOST + 3
