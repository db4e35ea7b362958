"""Locked ids: whose word they are, who locked them and why, and where the CMS has something else."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.reports.pages.locked import LockOrigin, locked_ids
from douban_pipeline.douban.reports.pages.locked_report import locked_report
from douban_pipeline_tests.douban.reports.pages.planting import (
    change,
    days_before,
    decision,
    launched,
    linked,
    rows_of,
)
from douban_pipeline_tests.harness.fixtures.library import video

RIVER, WHALE = 90_000_101, 90_000_102


def locked(library, vod_id, douban_id=RIVER, *, days=1.0, **state):
    linked(library, vod_id, douban_id, douban_id_locked=True, douban_id_lock_time=days_before(days), **state)


@pytest.fixture
def videos(library):
    return library.renewed([video(n, vod_name=f"影片{'甲乙丙丁戊'[n]}") for n in range(1, 5)])


def test_those_that_the_cms_has_otherwise_come_first_then_the_newest(videos):
    for vod_id, days in ((1, 9), (2, 3), (3, 5)):
        locked(videos, vod_id, days=days)
    linked(videos, 4, RIVER)
    assert [item.vod_id for item in locked_ids(videos.services).first] == [2, 3, 1]
    videos.set_cms(1, vod_douban_id=WHALE)
    found = locked_ids(videos.services)
    assert [item.vod_id for item in found.first] == [1, 2, 3]
    assert (found.count, found.differing, found.gone) == (3, 1, 0)
    assert [item.vod_id for item in locked_ids(videos.services, most=1).first] == [1]
    assert locked_ids(videos.services, most=1).count == 3


def test_who_locked_it_is_the_newest_decision_that_did(videos):
    locked(videos, 1)
    decision(videos, 1, "set_id", lock=True, reviewer="小李", note="先定")
    decision(videos, 1, "replace_and_lock", reviewer="小王", note="后定")
    decision(videos, 1, "sync_now", reviewer="小张")
    decision(videos, 1, "lock_id", reviewer="小赵", state="refused")
    decision(videos, 1, "lock_intro", reviewer="小钱")
    change(videos, 1, "lock_id", operator="小孙", state_new={"douban_id_locked": True})
    [item] = locked_ids(videos.services).first
    assert item.act == LockOrigin("小王", "后定")


def test_without_a_decision_the_log_is_asked(videos):
    locked(videos, 1)
    change(videos, 1, "lock_id", operator="小李", reason="旧版", state_new={"douban_id_locked": True})
    change(videos, 1, "unlock_id", operator="小王", state_new={"douban_id_locked": False})
    change(videos, 1, "lock_id", operator="小赵", state_new={"douban_id_locked": True}, state="refused")
    change(videos, 1, "sync", state_new={"douban_review_status": "CONFIRMED"})
    locked(videos, 2)
    found = {item.vod_id: item.act for item in locked_ids(videos.services).first}
    assert found == {1: LockOrigin("小李", "旧版"), 2: None}


def test_what_is_reported_and_what_may_be_done(videos):
    locked(videos, 1, douban_id_source="person", days=4)
    locked(videos, 2, douban_id_source="cms", days=3)
    locked(videos, 3, 0, douban_id_source="", days=2)
    locked(videos, 4, days=1)
    decision(videos, 1, "lock_id", reviewer="小王", note="核对过")
    videos.set_cms(1, vod_douban_id=WHALE)
    videos.set_cms(2, vod_douban_id=0)
    videos.execute(videos.cms.vod.delete().where(videos.cms.vod.c.vod_id == 4))
    report = locked_report(locked_ids(videos.services))
    rows = {row["影片"].split()[0].removesuffix("（已删除）"): row for row in rows_of(report.chapters, "locked_ids")}
    assert list(rows) == ["2", "1", "4", "3"]
    first = rows["1"]
    assert (first["来源"], first["锁定时间"], first["谁"], first["为什么"]) == (
        "人工指定",
        days_before(4),
        "小王",
        "核对过",
    )
    assert (first["锁定的 ID"].douban_id, first["CMS 现值"].cells[1].douban_id) == (RIVER, WHALE)
    wanted = [
        launched(link.address)[1]["ops"]["store_decisions"]["config"]["decisions"] for link in first["操作"].cells
    ]
    assert wanted == [
        [{"vod_id": 1, "action": "unlock_id"}],
        [{"vod_id": 1, "action": "replace_and_lock", "douban_id": WHALE}],
    ]
    assert rows["2"]["CMS 现值"].cells == ("不一致：", "被清空")
    assert [link.text for link in rows["2"]["操作"].cells] == ["解锁"]
    assert (rows["3"]["锁定的 ID"], rows["3"]["CMS 现值"], rows["3"]["谁"]) == ("空（不关联）", "一致", "没有记录")
    assert (rows["4"]["CMS 现值"], rows["4"]["操作"].cells) == ("影片已删除", ())
    assert dict(report.counts) == {
        "locked": 4,
        "differing": 2,
        "gone": 1,
        "source_person": 1,
        "source_cms": 1,
        "source_none": 1,
        "source_auto": 1,
    }


def test_nothing_is_locked(videos):
    found = locked_ids(videos.services)
    assert (found.count, found.differing, found.gone, found.first) == (0, 0, 0, ())
