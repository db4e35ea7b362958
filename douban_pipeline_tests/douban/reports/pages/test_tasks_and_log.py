"""Tasks, decisions and changes: reasons for what does not move, and what to do about what was not written."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from douban_pipeline.core.owner import owner_name
from douban_pipeline.douban.reports.pages import changes, work
from douban_pipeline.douban.reports.pages import tasks_and_log as decided
from douban_pipeline.douban.reports.pages.changes import DayOfChanges, remedy_of
from douban_pipeline.douban.reports.pages.tasks_and_log import tasks_and_log_of
from douban_pipeline.douban.reports.pages.tasks_and_log_report import tasks_and_log_report
from douban_pipeline.douban.store.states import ChangeState, DecisionAction
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline_tests.douban.reports.pages.planting import (
    change,
    days_before,
    decision,
    launched,
    rows_of,
    task,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import dead_owner, video

HOUR = timedelta(hours=1)
MATCH, SYNC, INTRO = "MATCH_DOUBAN_ID", "SYNC_DOUBAN", "AI_INTRO"


@pytest.fixture
def videos(library):
    return library.renewed([video(n, vod_name=f"影片{'甲乙丙丁戊己庚辛'[n]}") for n in range(1, 8)])


def report_of(library):
    return tasks_and_log_report(tasks_and_log_of(library.services))


def rows(library, key):
    return rows_of(report_of(library).chapters, key)


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_open_tasks_by_type_stage_and_status(videos):
    task(videos, 1, MATCH, "search", "PENDING", created_at=START - 3 * HOUR, run_after=START + HOUR)
    task(videos, 2, MATCH, "search", "PENDING", created_at=START - 9 * HOUR)
    task(videos, 3, MATCH, "score", "PENDING")
    task(videos, 4, SYNC, "sync", "RUNNING")
    task(videos, 5, SYNC, "sync", "SUCCESS", finished_at=START)
    found = tasks_and_log_of(videos.services).open_tasks
    assert [(item.task_type, item.stage, item.status, item.count, item.later) for item in found] == [
        (MATCH, "score", "PENDING", 1, 0),
        (MATCH, "search", "PENDING", 2, 1),
        (SYNC, "sync", "RUNNING", 1, 0),
    ]
    assert found[1].created == START - 9 * HOUR
    assert rows(videos, "tasks_by_stage")[1] == {
        "任务": "匹配条目",
        "阶段": "搜索",
        "状态": "排队",
        "数量": 2,
        "其中未到时间": 1,
        "最早入队": START - 9 * HOUR,
    }


def test_who_holds_tasks_and_whether_they_still_can(videos):
    for vod_id, owner, hours in ((1, owner_name("run-a"), 2), (2, owner_name("run-a"), 1), (3, dead_owner("run-b"), 3)):
        task(videos, vod_id, SYNC, "sync", "RUNNING", lease_owner=owner, lease_until=START + hours * HOUR)
    task(videos, 4, SYNC, "sync", "RUNNING", lease_owner="run-c@elsewhere:1", lease_until=START - HOUR)
    reported = [(row["运行"].text, row["任务数"], row["持有至"], row["情况"]) for row in rows(videos, "tasks_held")]
    assert reported == [
        ("run-c", 1, START - HOUR, "已过期，下次运行会接手"),
        ("run-a", 2, START + HOUR, "进行中"),
        ("run-b", 1, START + 3 * HOUR, "进程已结束，下次运行会接手"),
    ]
    assert rows(videos, "tasks_held")[1]["运行"].address == "/runs/run-a"


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
    reported = [(row["任务"], row["原因"], row["数量"], row["最早继续"]) for row in rows(videos, "tasks_put_off")]
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
        (row["任务"], row["原因"], row["次数"], row["其中会重试"], row["最近一次"], row["例"])
        for row in rows(videos, "failures_by_reason")
    ]
    assert reported == [
        ("更新字段", "asked for 90000002", 3, 1, days_before(2), "2 影片丙（2024）"),
        ("AI 简介", "HTTP 503", 1, 1, days_before(1), "5 影片己（2024）"),
    ]
    assert report_of(videos).counts["failed_7_days"] == 4


# --- decisions --------------------------------------------------------------------------------------------------------


def test_decisions_that_wait_and_those_refused_lately(videos):
    decision(videos, 1, "set_id", state="pending", douban_id=90_000_101, pending_key="a", at=days_before(40))
    decision(videos, 2, "set_id", state="pending", douban_id=90_000_102, pending_key="b", checked_at=START)
    decision(videos, 3, "sync_now", state="queued")
    decision(videos, 4, "clear_id", state="applied")
    decision(videos, 5, "choose", state="refused", state_reason="年份不符", at=days_before(6))
    decision(videos, 6, "choose", state="refused", state_reason="影片已删除", at=days_before(5), note="看过")
    decision(videos, 7, "choose", state="refused", at=days_before(8))
    report = report_of(videos)
    waiting = rows_of(report.chapters, "pending_decisions")
    assert [(row["影片"], row["决定"], row["状态"]) for row in waiting] == [
        ("1 影片乙（2024）", "指定豆瓣 ID", "等待执行：条目尚未核对"),
        ("2 影片丙（2024）", "指定豆瓣 ID", "等待执行"),
        ("3 影片丁（2024）", "立即同步", "已排队"),
    ]
    assert waiting[0]["条目"].douban_id == 90_000_101
    refused = rows_of(report.chapters, "refused_decisions")
    assert [(row["影片"], row["理由"], row["审核员"], row["状态"]) for row in refused] == [
        ("6 影片庚（2024）", "看过", "小王", "被拒绝：影片已删除"),
        ("5 影片己（2024）", "海报一致", "小王", "被拒绝：年份不符"),
    ]
    assert (report.counts["decisions_open"], report.counts["decisions_refused_7_days"]) == (3, 2)


def test_a_long_list_of_decisions_is_reported_in_part_and_counted_in_whole(videos):
    for number in range(decided.MOST + 5):
        decision(videos, 1, "ignore", state="refused", state_reason=f"第{number}条")
    report = report_of(videos)
    [chapter] = [chapter for chapter in report.chapters if chapter.key == "refused_decisions"]
    assert (len(chapter.rows), chapter.total) == (decided.MOST, decided.MOST + 5)
    assert chapter.rows[0]["状态"] == f"被拒绝：第{decided.MOST + 4}条"


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
    first, second, third = rows(videos, "newest_changes")
    assert (first["影片"], first["内容"], first["为什么"]) == ("99（已删除）", "仅状态", "事实表 01234567…")
    assert (second["变更"], second["内容"], second["谁"]) == ("指定豆瓣 ID", "豆瓣 ID 0 → 5", "小王")
    assert (third["变更"], third["内容"], third["谁"]) == ("同步字段", "vod_pic、vod_tag", "自动")
    back, history = second["操作"].cells
    assert launched(back.address) == (
        "revert_changes",
        {"ops": {"revert_writes": {"config": {"operator": "", "reason": "", "dry_run": True, "batch_id": "3f2a"}}}},
    )
    assert launched(history.address) == ("video_history", {"ops": {"show_history": {"config": {"vod_ids": [2]}}}})


def test_changes_by_the_day_of_the_site_action_and_operator(videos):
    # Noon in Shanghai is the clock's hour; its day began twelve hours ago.
    for hours, state in ((1, "applied"), (11, "reverted"), (13, "applied")):
        change(videos, 1, at=START - hours * HOUR, state=state)
    change(videos, 1, "clear_id", operator="小王")
    change(videos, 1, state="refused")
    change(videos, 1, at=days_before(31))
    with videos.engine.connect() as connection:
        found = changes.days_of_changes(videos.services, connection)
    today, yesterday = date(2026, 3, 1), date(2026, 2, 28)
    assert found == [
        DayOfChanges(today, "sync", "pipeline", 2, 1),
        DayOfChanges(today, "clear_id", "小王", 1, 0),
        DayOfChanges(yesterday, "sync", "pipeline", 1, 0),
    ]
    assert report_of(videos).counts["changes_30_days"] == 4


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
    with videos.engine.connect() as connection:
        count, [logged] = changes.troubled_changes(videos.services, connection)
    remedy = remedy_of(logged)
    assert count == 1
    assert message in remedy.text
    assert remedy.actions == actions


def test_what_does_not_fit_says_which_column(videos):
    if not videos.mysql:
        pytest.skip("SQLite holds anything")
    videos.set_cms(1, vod_pic="")
    [outcome] = videos.change_log().write([wanted(vod_pic=("", "长" * 5000))])
    assert outcome.state is ChangeState.REFUSED
    with videos.engine.connect() as connection:
        _, [logged] = changes.troubled_changes(videos.services, connection)
    assert "扩宽" in remedy_of(logged).text


def test_a_conflict_asks_for_a_look(videos):
    videos.set_cms(1, vod_pic="第三个")
    change(videos, 1, state="prepared", new_values={"vod_pic": "新"}, old_values={"vod_pic": "旧"}, owner=dead_owner())
    videos.change_log().reconcile()
    [row] = rows(videos, "changes_not_written")
    assert (row["状态"], row["内容"], row["操作"].cells[0].text) == ("有冲突", "vod_pic", "立即同步")
    assert "以 CMS 为准则无需处理" in row["怎么办"]


def test_only_the_trouble_of_a_week_is_reported_the_newest_first(videos):
    change(videos, 1, state="conflict", at=days_before(8))
    change(videos, 2, state="refused", at=days_before(6))
    change(videos, 3, state="conflict", at=days_before(2))
    change(videos, 4, state="applied")
    assert [row["影片"][0] for row in rows(videos, "changes_not_written")] == ["3", "2"]
    assert report_of(videos).counts["changes_troubled_7_days"] == 2


def test_an_idle_library_has_nothing_to_tell(videos):
    report = report_of(videos)
    assert set(report.counts.values()) == {0}
    assert not [chapter.key for chapter in report.chapters if chapter.rows]


def test_lists_are_bounded(videos):
    for number in range(work.MOST + 3):
        task(videos, 1000 + number, SYNC, "sync", "PENDING", last_error=f"原因{chr(0x4E00 + number)}")
        change(videos, 1)
    report = report_of(videos)
    assert len(rows_of(report.chapters, "tasks_put_off")) == work.MOST
    assert len(rows_of(report.chapters, "newest_changes")) == changes.MOST
    assert report.counts["put_off"] == work.MOST + 3
