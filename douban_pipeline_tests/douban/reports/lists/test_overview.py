"""The front page: its numbers are those of the library, from indexes alone, and the asset's."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.reports.health.alerts import raise_alert
from douban_pipeline.douban.reports.health.causes import guard_cause
from douban_pipeline.douban.reports.lists.assets import assets
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.last_day import last_day
from douban_pipeline.douban.reports.lists.overview import RENEWED_SECONDS, front_page
from douban_pipeline.douban.reports.lists.spec import rows_of
from douban_pipeline.douban.reports.lists.statistics import statistics
from douban_pipeline.douban.store.shown_status import shown_status
from douban_pipeline.douban.store.videos import CLEARED_IN_BULK, GONE
from douban_pipeline_tests.douban.reports.health.planting import sample
from douban_pipeline_tests.douban.reports.planting import change, decision, linked, task, verdict
from douban_pipeline_tests.harness.fixtures.library import Library, video
from douban_pipeline_tests.harness.fixtures.runs import function_of

SHARED = 90_000_101


@pytest.fixture
def busy(library: Library) -> Library:
    """Fifteen videos; 04:00 UTC is noon on the site, so that its day began twelve hours ago."""
    library = library.renewed([video(n) for n in range(1, 16)], **library.options)
    now = library.clock.now()
    for vod_id in range(1, 16):
        library.set_state(vod_id, douban_next_sync_at=now + timedelta(days=3))
    linked(library, 1, SHARED, douban_id_locked=True)
    linked(library, 2, SHARED)
    linked(library, 3, SHARED + 1, intro_locked=True)
    library.set_state(4, douban_review_status="REVIEW", douban_next_sync_at=now - timedelta(hours=1))
    library.set_state(8, douban_review_status="REVIEW", douban_review_reason="得分 81.7；年份冲突：差 3 年。")
    library.set_state(9, douban_review_status="CONFIRMED", douban_review_reason="年份冲突：差 3 年。")
    library.set_state(10, douban_review_status="REVIEW", douban_review_reason="得分 75.0；除冲突项外相近。")
    library.set_state(5, douban_review_status="IGNORED", douban_next_sync_at=now + timedelta(hours=11, minutes=59))
    library.set_state(6, douban_next_sync_at=now + timedelta(hours=12))
    library.set_state(6, douban_last_sync_at=now, douban_review_reason="没有搜到候选")
    linked(library, 7, SHARED + 1, douban_id_locked=True, intro_locked=True)
    library.set_state(7, douban_next_sync_at=None, douban_review_reason=GONE)
    library.execute("DELETE FROM mac_vod WHERE vod_id = 7")
    # Ignored for good, and one of many whose ids were cleared: without a next visit, and in the CMS.
    library.set_state(11, douban_review_status="IGNORED", douban_next_sync_at=None)
    held = {"douban_review_status": "REVIEW", "douban_review_reason": CLEARED_IN_BULK, "douban_next_sync_at": None}
    library.set_state(12, vod_douban_id=SHARED, **held)
    # Ignored for good, and since then deleted, or put into the recycle bin.
    for vod_id in (13, 14):
        linked(library, vod_id, SHARED, douban_review_status="IGNORED", douban_next_sync_at=None)
    library.execute("DELETE FROM mac_vod WHERE vod_id = 13")
    library.set_cms(14, vod_recycle_time=1)
    task(library, 1, "SYNC_DOUBAN", "sync", "SUCCESS", finished_at=now - timedelta(hours=11))
    task(library, 2, "SYNC_DOUBAN", "sync", "SUCCESS", finished_at=now - timedelta(hours=13))
    task(library, 3, "AI_INTRO", "intro", "FAIL", finished_at=now)
    task(library, 8, "MATCH_DOUBAN_ID", "search", "PENDING")
    change(library, 1, state="conflict")
    change(library, 1, state="refused", at=now - timedelta(days=8))
    decision(library, 9, "ignore", state="pending", pending_key="a")
    return library


def test_every_number_is_counted_on_its_own(busy: Library) -> None:
    assert statistics(busy.services).counts() == {
        "total": 12,
        "with_id": 3,
        "without_id": 9,
        "missing": 6,
        "unchecked": 1,
        "not_found": 1,
        "in_review": 3,
        "held": 1,
        "ignored": 2,
        "shared": 2,
        "conflicts": 1,
        "unwritten": 1,
        "locked_ids": 1,
        "locked_intros": 1,
        "due_now": 1,
        "due_today": 2,
        "done_today": 1,
        "failed_today": 1,
        "open_tasks": 1,
        "decisions": 1,
    }


def test_figures_add_up_to_what_the_lists_and_the_cms_have(busy: Library) -> None:
    found = statistics(busy.services)
    live = [row["vod_id"] for row in busy.query("SELECT * FROM mac_vod") if not row["vod_recycle_time"]]
    shown = Counter(str(shown_status(state)) for vod_id, state in busy.states().items() if vod_id in live)
    assert found.total == len(live) == shown.total()
    counted = {
        "UNCHECKED": found.unchecked,
        "NOT_FOUND": found.not_found,
        "REVIEW": found.in_review,
        "HELD": found.held,
        "IGNORED": found.ignored,
    }
    assert +Counter(counted) == shown - Counter(CONFIRMED=shown["CONFIRMED"])
    with_id = [row for row in busy.query("SELECT * FROM mac_vod") if row["vod_id"] in live and row["vod_douban_id"]]
    assert (found.with_id, found.without_id) == (len(with_id), len(live) - len(with_id))
    missing = LISTS["missing"](busy.services)
    assert found.missing == len(list(rows_of(busy.services, missing, ListFilter())))


def test_no_number_reads_a_table_of_videos_or_tasks_row_by_row(busy: Library) -> None:
    if not busy.mysql:
        pytest.skip("plans of MariaDB")
    statements: list[tuple[str, object]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        statements.append((statement, parameters))

    sa.event.listen(busy.engine, "before_cursor_execute", note)
    statistics(busy.services)
    sa.event.remove(busy.engine, "before_cursor_execute", note)
    explained = [row for each in statements if each[0].startswith("SELECT") for row in busy.plan(*each)]
    plans = [row for row in explained if row["table"] and not row["table"].startswith("<")]
    assert len(plans) >= 10
    for row in plans:
        # An index must be there for it; of ten rows the server may read all the same.
        assert row["key"] or row["possible_keys"], row
        assert row["table"] != "mac_vod" or row["type"] == "eq_ref", "the CMS is asked by key alone"


def page_of(library: Library) -> str:
    return front_page(library.services, [])[0]


def test_the_page_has_the_figures_and_leads_to_every_list(busy: Library) -> None:
    page = page_of(busy)
    assert f'data-renewed="{RENEWED_SECONDS}"' in page
    for name in LISTS:
        assert f'href="lists/{name}"' in page
    assert re.search(r"无豆瓣 ID</span><b>9</b>", page)
    assert re.search(r"未检查</span><b>1</b>.*未找到</span><b>1</b>", page, re.DOTALL)


def test_the_asset_records_the_same_figures(busy: Library) -> None:
    [asset] = [each for each in assets if each.key.to_user_string() == "overview"]
    metadata = dict(function_of(asset)(services=busy.services).metadata)
    assert metadata.pop("page").value == "/"
    assert metadata == statistics(busy.services).counts()


def test_a_library_without_troubles_is_well_and_says_what_waits_for_people(library: Library) -> None:
    library = library.renewed([video(1)], **library.options)
    page = page_of(library)
    assert '<p class="lead good" role="status">一切正常</p>' in page
    assert "没有要做的，也没有人做什么" in page
    library.set_state(1, douban_review_status="REVIEW", douban_next_sync_at=library.clock.now())
    assert "一切正常；1 部影片等人审核" in page_of(library)


def test_what_needs_a_person_is_named_on_top_with_its_page(busy: Library) -> None:
    now = busy.clock.now()
    decision(busy, 3, "ignore", state="refused", settled_at=now - timedelta(hours=2))
    decision(busy, 3, "ignore", state="refused", settled_at=now - timedelta(hours=30))
    raise_alert(busy.services, guard_cause("synced_fields", "locked_untouched", "", ""))
    page = page_of(busy)
    lead = re.search(r'<p class="lead bad" role="status">(.*?)</p>', page)
    assert lead is not None
    assert lead[1].endswith("等 4 件；3 部影片等人审核")
    for said in ("1 条变更没有写入", "今天 1 篇简介没有通过核对", "1 条人工决定被拒绝", "locked_untouched"):
        assert said in page
    assert "/assets/synced_fields?view=checks" in page
    assert 'href="lists/intros#refusals"' in page


def test_a_pipeline_that_fell_silent_is_no_well_one(library: Library) -> None:
    sample(library, timedelta(minutes=29))
    assert "没有健康检查" not in page_of(library)
    library.clock.advance(minutes=2)
    page = page_of(library)
    assert "需要处理：已有 31 分没有健康检查" in page


def test_the_last_day_is_told_in_words(busy: Library) -> None:
    now = busy.clock.now()
    verdict(busy, 4)
    verdict(busy, 5, status="NOT_FOUND")
    change(busy, 1, state="applied")
    change(busy, 2, "set_id", state="applied", operator="小王")
    change(busy, 3, "revert", state="applied", operator="小王")
    change(busy, 3, state="applied", at=now - timedelta(hours=25))
    deeds = last_day(busy.services)
    pages = {f"lists/{name}" for name in LISTS}
    assert all(deed.address.startswith("/assets/") or deed.address in pages for deed in deeds)
    assert [deed.sentence for deed in deeds] == [
        "判定了 2 次：待审核 1，未找到 1。",
        "自动写入 CMS 1 条变更：同步字段 1。",
        "按人工决定处理 1 条变更：指定豆瓣 ID 1。",
        "撤销了 1 条变更。",
        "结束了 3 项任务：成功 2，跳过 0，简介没有通过核对 1。",
    ]
