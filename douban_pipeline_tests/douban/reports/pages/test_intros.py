"""Intros: what is locked by whom, what failed and stands, what waits, what the guard refuses, what it costs."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from douban_pipeline.douban.intros.factguard import inspection
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.named_list import rows_of as rows_of_list
from douban_pipeline.douban.reports.pages.intros import DaySpending, FailedIntro, UnqueuedIntros, intros
from douban_pipeline.douban.reports.pages.intros_report import intros_report
from douban_pipeline.douban.reports.pages.report_page import NoteCell
from douban_pipeline.douban.wording import VIOLATIONS
from douban_pipeline_tests.douban.reports.pages.planting import (
    days_before,
    intro,
    launched,
    linked,
    rows_of,
    task,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video

HOUR = timedelta(hours=1)
ON = {"ai_intros": True, "openrouter_api_key": "key"}


@pytest.fixture
def videos(library):
    return library.renewed([video(n, vod_name=f"影片{'甲乙丙丁戊己'[n]}") for n in range(1, 6)], **ON)


def locked(library, vod_id, days, model=""):
    written = {"intro_ai_source": model, "intro_ai_last_at": days_before(days)} if model else {}
    library.set_state(vod_id, intro_locked=True, intro_lock_time=days_before(days), **written)


def failed(library, vod_id, times, hours, reason="HTTP 503"):
    library.set_state(
        vod_id,
        intro_ai_fail_count=times,
        intro_ai_last_fail_at=START - hours * HOUR,
        intro_ai_last_fail_reason=reason,
    )


def test_a_lock_after_the_model_wrote_is_a_person_s(videos):
    for vod_id in (1, 2, 3):
        locked(videos, vod_id, 9, "deepseek/v3")
    videos.set_state(2, intro_lock_time=days_before(2))
    videos.set_state(3, intro_lock_time=None)
    found = intros(videos.services)
    assert (found.locked_by_model, found.locked_by_people) == (2, 1)
    assert {item.vod_id: item.model for item in found.locked} == {2: "", 1: "deepseek/v3", 3: "deepseek/v3"}
    wanted = LISTS["intros"](videos.services)
    by = {row["vod_id"]: row["source"] for row in rows_of_list(videos.services, wanted, ListFilter())}
    assert by == {1: "deepseek/v3", 2: "人工", 3: "deepseek/v3"}
    of_model = rows_of_list(videos.services, wanted, ListFilter(sources=["deepseek/v3"]))
    assert sorted(row["vod_id"] for row in of_model) == [1, 3]


def test_locked_by_people_and_by_the_model(videos):
    locked(videos, 1, 9, "deepseek/v3")
    locked(videos, 2, 3, "deepseek/v3")
    locked(videos, 3, 5)
    locked(videos, 4, 1)
    # Written by the model, taken back, then locked by a person as it stood before.
    videos.set_state(4, intro_ai_last_at=days_before(20))
    videos.set_cms(4, vod_content="<p>第一段</p><br>第二段")
    videos.set_cms(3, vod_content="")
    found = intros(videos.services)
    assert (found.locked_by_model, found.locked_by_people) == (2, 2)
    assert [(item.vod_id, item.model) for item in found.locked] == [
        (4, ""),
        (3, ""),
        (2, "deepseek/v3"),
        (1, "deepseek/v3"),
    ]
    rows = rows_of(intros_report(found).chapters, "locked_intros")
    assert [row["由谁"] for row in rows] == ["人工", "人工", "deepseek/v3", "deepseek/v3"]
    assert rows[0]["简介"] == NoteCell("第一段\n第二段"), "what the CMS holds, without tags"
    assert rows[1]["简介"] == NoteCell("CMS 中没有简介")
    actions = [launched(link.address)[1]["ops"]["store_decisions"]["config"] for link in rows[0]["操作"].cells]
    assert [config["decisions"] for config in actions] == [
        [{"vod_id": 4, "action": "unlock_intro"}],
        [{"vod_id": 4, "action": "redo_intro"}],
    ]


def test_a_failure_is_shown_until_an_intro_came(videos):
    later = START + HOUR
    task(videos, 1, "AI_INTRO", "intro", "PENDING", attempts=2, run_after=later)
    task(videos, 2, "AI_INTRO", "intro", "FAIL", finished_at=days_before(3))
    task(videos, 3, "AI_INTRO", "intro", "FAIL", finished_at=days_before(31))
    task(videos, 4, "AI_INTRO", "intro", "FAIL", finished_at=days_before(2))
    task(videos, 5, "SYNC_DOUBAN", "sync", "FAIL", finished_at=days_before(1))
    for vod_id, times, hours in ((1, 2, 1), (2, 7, 72), (3, 1, 800), (5, 1, 24)):
        failed(videos, vod_id, times, hours)
    found = intros(videos.services)
    assert found.failed == [
        FailedIntro(1, 2, START - HOUR, "HTTP 503", later),
        FailedIntro(2, 7, START - 72 * HOUR, "HTTP 503", None),
    ]
    rows = rows_of(intros_report(found).chapters, "failures")
    assert [(row["影片"], row["失败次数"], row["下次"]) for row in rows] == [
        ("1 影片乙（2024）", 2, later),
        ("2 影片丙（2024）", 7, "间隔期满后"),
    ]
    configs = [launched(link.address)[1]["ops"]["store_decisions"]["config"] for link in rows[0]["操作"].cells]
    assert [config["decisions"] for config in configs] == [
        [{"vod_id": 1, "action": "redo_intro"}],
        [{"vod_id": 1, "action": "lock_intro"}],
    ]


def test_who_waits_is_whoever_would_be_queued(videos):
    ready = {"douban_last_sync_at": START - 9 * HOUR, "douban_next_sync_at": START + HOUR}
    for vod_id in (1, 2, 3):
        linked(videos, vod_id, 90_000_100 + vod_id, **ready)
    videos.set_state(1, douban_last_sync_at=START - 30 * HOUR)
    videos.set_state(3, intro_locked=True)
    task(videos, 4, "AI_INTRO", "intro", "PENDING", run_after=START + HOUR)
    task(videos, 5, "AI_INTRO", "intro", "RUNNING")
    found = intros(videos.services)
    assert found.waiting == UnqueuedIntros(2, START - 30 * HOUR)
    assert [(item.status, item.count, item.later) for item in found.queued] == [("PENDING", 1, 1), ("RUNNING", 1, 0)]
    report = intros_report(found)
    assert (report.counts["waiting"], report.counts["queued"]) == (2, 2)
    assert [(row["什么"], row["数量"]) for row in rows_of(report.chapters, "queue")] == [
        ("到期，尚未排队", 2),
        ("任务：排队", 1),
        ("任务：进行中", 1),
    ]


def test_where_intros_are_switched_off_nobody_waits(library):
    library = library.renewed([video(1)])
    linked(library, 1, 90_000_101, douban_last_sync_at=START - HOUR)
    found = intros(library.services)
    assert (found.on, found.waiting) == (False, None)
    report = intros_report(found)
    assert "AI 简介未开启" in report.about
    assert report.counts["waiting"] == 0


def test_what_the_guard_refuses_most(videos):
    person, number = ({"code": code, "text": f"{code} 的例子"} for code in ("person", "number"))
    intro(videos, 1, "refused", violations=[person, number])
    intro(videos, 1, "refused", violations=[person])
    intro(videos, 2, "refused", violations=[person])
    intro(videos, 3, "written", violations=[])
    intro(videos, 4, "failed")
    intro(videos, 5, "refused", violations=[number], created_at=days_before(31))
    found = intros(videos.services)
    assert [(code, item.times, item.videos) for code, item in found.refusals.items()] == [
        ("person", 3, {1, 2}),
        ("number", 1, {1}),
    ]
    rows = rows_of(intros_report(found).chapters, "refusals")
    assert rows[0] == {"类别": "资料外的人名", "次数": 3, "影片数": 2, "例": "person 的例子"}


def test_what_it_cost_by_the_day_of_the_site(videos):
    # Noon in Shanghai is the clock's hour; its day began twelve hours ago.
    for state, hours, usd in (("written", 1, 0.5), ("refused", 2, 0.25), ("failed", 11, 0.125), ("withdrawn", 13, 2.0)):
        intro(videos, 1, state, cost_usd=usd, prompt_tokens=10, completion_tokens=1, created_at=START - hours * HOUR)
    intro(videos, 1, "written", cost_usd=8.0, created_at=days_before(30))
    found = intros(videos.services)
    today, yesterday = found.days.values()
    assert today == DaySpending(calls=3, written=1, refused=1, failed=1, usd=0.875, tokens=33)
    assert yesterday == DaySpending(calls=1, written=1, usd=2.0, tokens=11)
    assert found.usd == 2.875
    rows = rows_of(intros_report(found).chapters, "spending")
    assert [(row["日期"], row["费用（美元）"]) for row in rows] == [("2026-03-01", "0.8750"), ("2026-02-28", "2.0000")]


def test_every_kind_of_violation_has_a_name():
    source = Path(inspection.__file__).read_text(encoding="utf-8")
    assert set(re.findall(r'Violation\("(\w+)"', source)) == set(VIOLATIONS)


def test_an_empty_library(library):
    found = intros(library.renewed([], **ON).services)
    assert (found.locked_by_model, found.locked_by_people, found.failed_count, found.usd) == (0, 0, 0, 0)
    assert (found.queued, found.waiting) == ([], UnqueuedIntros(0, None))
