"""Locked ids: whose word they are, who locked them and why, and where the CMS has something else."""

from __future__ import annotations

import pytest

from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.locked import LockOrigin, lock_origins
from douban_pipeline_tests.douban.reports.planting import (
    change,
    days_before,
    decision,
    figures,
    linked,
    listed,
    opened,
)
from douban_pipeline_tests.harness.fixtures.library import video

RIVER, WHALE = 90_000_101, 90_000_102


def locked(library, vod_id, douban_id=RIVER, *, days=1.0, **state):
    linked(library, vod_id, douban_id, douban_id_locked=True, douban_id_lock_time=days_before(days), **state)


@pytest.fixture
def videos(library):
    return library.renewed([video(n, vod_name=f"影片{'甲乙丙丁戊'[n]}") for n in range(1, 5)])


def test_the_newest_come_first_and_a_card_leads_to_those_that_the_cms_has_otherwise(videos):
    for vod_id, days in ((1, 9), (2, 3), (3, 5)):
        locked(videos, vod_id, days=days)
    linked(videos, 4, RIVER)
    videos.set_cms(1, vod_douban_id=WHALE)
    assert [row["vod_id"] for row in listed(videos.services, "locked")] == [2, 3, 1]
    [card] = [card for card in figures(videos.services, "locked").cards if card.label == "CMS 中不一致"]
    assert (card.value, card.tone, card.address) == ("1", "bad", "?in_cms=changed")
    differing = listed(videos.services, "locked", ListFilter(chosen={"in_cms": ["changed"]}))
    assert [row["vod_id"] for row in differing] == [1]


def origins(library):
    with library.engine.connect() as connection:
        return lock_origins(library.services, connection, [1, 2])


def test_who_locked_it_is_the_newest_decision_that_did(videos):
    locked(videos, 1)
    decision(videos, 1, "set_id", lock=True, reviewer="小李", note="先定")
    decision(videos, 1, "replace_and_lock", reviewer="小王", note="后定")
    decision(videos, 1, "sync_now", reviewer="小张")
    decision(videos, 1, "lock_id", reviewer="小赵", state="refused")
    decision(videos, 1, "lock_intro", reviewer="小钱")
    change(videos, 1, "lock_id", operator="小孙", state_new={"douban_id_locked": True})
    assert origins(videos) == {1: LockOrigin("小王", "后定")}


def test_without_a_decision_the_log_is_asked(videos):
    locked(videos, 1)
    change(videos, 1, "lock_id", operator="小李", reason="旧版", state_new={"douban_id_locked": True})
    change(videos, 1, "unlock_id", operator="小王", state_new={"douban_id_locked": False})
    change(videos, 1, "lock_id", operator="小赵", state_new={"douban_id_locked": True}, state="refused")
    change(videos, 1, "sync", state_new={"douban_review_status": "CONFIRMED"})
    locked(videos, 2)
    assert origins(videos) == {1: LockOrigin("小李", "旧版")}


def test_what_is_listed_and_what_may_be_done(videos):
    locked(videos, 1, douban_id_source="person", days=4)
    locked(videos, 2, douban_id_source="cms", days=3)
    locked(videos, 3, 0, douban_id_source="", days=2)
    locked(videos, 4, days=1)
    decision(videos, 1, "lock_id", reviewer="小王", note="核对过")
    videos.set_cms(1, vod_douban_id=WHALE)
    videos.set_cms(2, vod_douban_id=0)
    videos.execute(videos.cms.vod.delete().where(videos.cms.vod.c.vod_id == 4))
    rows = {row["vod_id"]: row for row in listed(videos.services, "locked")}
    assert list(rows) == [4, 3, 2, 1]
    first = rows[1]
    assert [first[key] for key in ("source", "since", "who", "why")] == ["人工指定", days_before(4), "小王", "核对过"]
    assert (first["douban_id"], first["in_cms"], first["cms_id"]) == (RIVER, "不一致", WHALE)
    page = LISTS["locked"](videos.services)
    wanted = [
        opened(page, first, key)[1]["ops"]["store_decisions"]["config"]["decisions"] for key in ("unlock", "relock")
    ]
    assert wanted == [
        [{"vod_id": 1, "action": "unlock_id"}],
        [{"vod_id": 1, "action": "replace_and_lock", "douban_id": WHALE}],
    ]
    assert (rows[2]["in_cms"], [key for key, *_ in rows[2]["links"]]) == ("被清空", ["unlock", "history"])
    assert (rows[3]["no_link"], rows[3]["in_cms"], rows[3]["who"]) == ("空（不关联）", "一致", "没有记录")
    assert (rows[4]["video"], rows[4]["in_cms"]) == ("4（已删除）", "影片已删除")
    assert [key for key, *_ in rows[4]["links"]] == ["history"]
    assert dict(figures(videos.services, "locked").counts) == {
        "locked": 4,
        "differing": 2,
        "gone": 1,
        "source_person": 1,
        "source_cms": 1,
        "source_none": 1,
        "source_auto": 1,
    }
