"""Intros: what is locked by whom, what failed and stands, what waits, what the guard refuses, what it costs."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from douban_pipeline.core.ui.lists.list_page import cell_text
from douban_pipeline.douban.intros import proofs
from douban_pipeline.douban.intros.factguard import inspection
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.intro_figures import UnqueuedIntros, intros
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.wording import VIOLATIONS
from douban_pipeline_tests.douban.reports.planting import (
    days_before,
    figures,
    intro,
    linked,
    listed,
    opened,
    rows_in,
    task,
)
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import video

HOUR = timedelta(hours=1)
UTC = ZoneInfo("UTC")
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
    by = {row["vod_id"]: row["source"] for row in listed(videos.services, "intros")}
    assert by == {1: "deepseek/v3", 2: "人工", 3: "deepseek/v3"}
    of_model = listed(videos.services, "intros", ListFilter(chosen={"source": ["model"]}))
    assert sorted(row["vod_id"] for row in of_model) == [1, 3]


def decisions(library, row, *keys):
    page = LISTS["intros"](library.services)
    return [opened(page, row, key)[1]["ops"]["store_decisions"]["config"]["decisions"] for key in keys]


def test_locked_by_people_and_by_the_model(videos):
    locked(videos, 1, 9, "deepseek/v3")
    locked(videos, 2, 3, "deepseek/v3")
    locked(videos, 3, 5)
    locked(videos, 4, 1)
    # Written by the model, taken back, then locked by a person as it stood before.
    videos.set_state(4, intro_ai_last_at=days_before(20))
    videos.set_cms(4, vod_content="<p>第一段</p><br>第二段")
    videos.set_cms(3, vod_content="")
    found_figures = figures(videos.services, "intros")
    assert (found_figures.counts["locked_by_model"], found_figures.counts["locked_by_people"]) == (2, 2)
    rows = {row["vod_id"]: row for row in listed(videos.services, "intros")}
    assert list(rows) == [2, 1, 4, 3]
    assert [row["source"] for row in rows.values()] == ["deepseek/v3", "deepseek/v3", "人工", "人工"]
    assert rows[4]["text"] == "第一段\n第二段", "what the CMS holds, without tags"
    assert rows[3]["text"] == "CMS 中没有简介"
    assert decisions(videos, rows[4], "unlock_intro", "redo") == [
        [{"vod_id": 4, "action": "unlock_intro"}],
        [{"vod_id": 4, "action": "redo_intro"}],
    ]


def test_a_failure_is_shown_until_an_intro_came(videos):
    later = START + HOUR
    task(videos, 1, "AI_INTRO", "intro", "PENDING", attempts=2, run_after=later)
    task(videos, 2, "AI_INTRO", "intro", "FAIL", finished_at=days_before(3))
    task(videos, 4, "AI_INTRO", "intro", "FAIL", finished_at=days_before(2))
    for vod_id, times, hours in ((1, 2, 1), (2, 7, 72)):
        failed(videos, vod_id, times, hours)
    rows = {row["vod_id"]: row for row in listed(videos.services, "intros")}
    assert {vod_id: (row["state"], row["fails"], row["next"]) for vod_id, row in rows.items()} == {
        1: ("失败", 2, later),
        2: ("失败", 7, None),
    }
    assert [rows[1][key] for key in ("failed_at", "why")] == [START - HOUR, "HTTP 503"]
    assert decisions(videos, rows[1], "redo", "lock_intro") == [
        [{"vod_id": 1, "action": "redo_intro"}],
        [{"vod_id": 1, "action": "lock_intro"}],
    ]
    found_figures = figures(videos.services, "intros")
    [card] = [card for card in found_figures.cards if card.label == "失败"]
    assert (found_figures.counts["failed"], card.value, card.address) == (2, "2", "?state=failed")


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
    found_figures = figures(videos.services, "intros")
    assert (found_figures.counts["waiting"], found_figures.counts["queued"]) == (2, 2)
    assert [(row["what"], row["count"]) for row in rows_in(found_figures.tables, "queue")] == [
        ("到期，尚未排队", 2),
        ("任务：排队", 1),
        ("任务：进行中", 1),
    ]


def test_where_intros_are_switched_off_nobody_waits(library):
    library = library.renewed([video(1)])
    linked(library, 1, 90_000_101, douban_last_sync_at=START - HOUR)
    found = intros(library.services)
    assert (found.on, found.waiting) == (False, None)
    assert "AI 简介未开启" in LISTS["intros"](library.services).about
    assert figures(library.services, "intros").counts["waiting"] == 0


def test_what_the_guard_refuses_most(videos):
    person, number = ({"code": code, "text": f"{code} 的例子"} for code in ("person", "number"))
    intro(videos, 1, "refused", violations=[person, number])
    intro(videos, 1, "refused", violations=[person])
    intro(videos, 2, "refused", violations=[person])
    intro(videos, 3, "written", violations=[])
    intro(videos, 4, "failed")
    intro(videos, 5, "refused", violations=[number], created_at=days_before(31))
    rows = rows_in(figures(videos.services, "intros").tables, "refusals")
    assert rows[0] == {"kind": "资料外的人名", "times": 3, "videos": 2, "example": "person 的例子"}
    assert [(row["times"], row["videos"]) for row in rows] == [(3, 2), (1, 1)]


def test_what_it_cost_by_the_day_of_the_site(videos):
    # Noon in Shanghai is the clock's hour; its day began twelve hours ago.
    for state, hours, usd in (("written", 1, 0.5), ("refused", 2, 0.25), ("failed", 11, 0.125), ("withdrawn", 13, 2.0)):
        intro(videos, 1, state, cost_usd=usd, prompt_tokens=10, completion_tokens=1, created_at=START - hours * HOUR)
    intro(videos, 1, "written", cost_usd=8.0, created_at=days_before(30))
    found = intros(videos.services)
    assert [dict(row) for row in found.days] == [
        {"day": "2026-03-01", "calls": 3, "written": 1, "refused": 1, "failed": 1, "usd": 0.875, "tokens": 33},
        {"day": "2026-02-28", "calls": 1, "written": 1, "refused": 0, "failed": 0, "usd": 2.0, "tokens": 11},
    ]
    assert found.usd == 2.875


def test_every_kind_of_violation_has_a_name():
    source = "".join(Path(each.__file__).read_text(encoding="utf-8") for each in (inspection, proofs))
    # Stored by an earlier guard.
    assert {*re.findall(r'Violation\("(\w+)"', source), "plot"} == set(VIOLATIONS)


def test_a_text_stands_beside_its_source_with_what_proves_it(videos):
    said = [
        {"text": "老周收养小满", "sentence": 0, "basis": "synopsis", "passages": ["老周收养了小满"], "problem": ""},
        {"text": "他很快乐", "sentence": 1, "basis": "none", "passages": [], "problem": "没有讲到", "cut": True},
    ]
    old = [{"number": 1, "basis": "synopsis", "quotes": ["老周收养了小满"], "problem": ""}, {"number": 7}]
    sheet = {"title": "灯塔", "synopsis": "守塔人老周收养了小满。"}
    common = {"fact_sheet": sheet, "intro_text": "老周收养小满。"}
    intro(videos, 1, "written", reading=old, **common)
    intro(videos, 2, "written", reading=said, reader="reading-4 m", model="m", **common)
    tables = figures(videos.services, "intros").tables
    new, before = rows_in(tables, "proofs")
    assert cell_text(new["text"], UTC) == "［1］老周收养小满。［2 无］他很快乐。"
    assert [piece.tone for piece in new["text"] if piece.mark] == ["", "bad gone"]
    assert cell_text(new["source"], UTC) == "守塔人［1］老周收养了小满。"
    assert (new["outcome"], new["why"]) == (("已写入", "删去部分"), "2：没有讲到")
    assert cell_text(before["text"], UTC) == "［1］老周收养小满。"
    assert cell_text(before["source"], UTC) == "守塔人［1］老周收养了小满。"
    origins = rows_in(tables, "origins")
    assert {row["reader"]: row["count"] for row in origins} == {"reading-4 m": 1, "（未记录）": 1}
    [table] = [each for each in tables if each.key == "origins"]
    [link] = [table.links[key].filled(*given) for key, *given in origins[0]["links"] if key == "reader"] or [""]
    assert "intro_reader" in link or origins[0]["reader"] == "（未记录）"


def test_an_empty_library(library):
    found = intros(library.renewed([], **ON).services)
    assert (found.locked_by_model, found.locked_by_people, found.usd) == (0, 0, 0)
    assert (found.queued, found.waiting) == ([], UnqueuedIntros(0, None))
