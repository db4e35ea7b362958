"""A batch takes the videos that it names, and none that a person would want to look at first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from douban_pipeline.douban.review.batch.filters import VideoFilter
from douban_pipeline.douban.review.batch.rules import BatchDecision
from douban_pipeline.douban.review.batch.selection import SelectionError, decisions_of, select_videos
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.shown_status import ShownStatus
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.douban.review.shelves import Case, decision_of, shelved
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, days_ago, video

IGNORE = BatchDecision(DecisionAction.ignore)
CONFIRM = BatchDecision(DecisionAction.confirm_top1)
NOT_FOUND = {
    "douban_review_status": "NOT_FOUND",
    "douban_review_reason": "没有搜到候选",
    "douban_last_sync_at": START,
}
REVIEW = VideoFilter(statuses=(ShownStatus.REVIEW,))


def taken(library, asked, bulk=IGNORE):
    return [pick.vod_id for pick in select_videos(library.services, asked, bulk).videos]


def left_out(library, asked, bulk=IGNORE):
    return {vod_id: why for vod_id, _, why in select_videos(library.services, asked, bulk).left_out}


# --- the filter -------------------------------------------------------------------------------------------------------


@pytest.fixture
def library(shared_library):
    """Videos that differ in what a filter asks for."""
    return shelved(
        shared_library,
        [
            Case(1, {"vod_year": "2021", "vod_hits": 10}, {}, {"score": 90.0}),
            Case(2, {"vod_year": "2022(中国大陆)", "vod_hits": 9}, {}, {"score": 80.0, "reasons": ["BELOW_CONFIRM"]}),
            Case(3, {"vod_year": "", "vod_hits": 8}, {}, None, None),
            Case(4, {"vod_hits": 7}, NOT_FOUND, {"score": None, "lead": None}, None),
            Case(
                5, {"vod_hits": 6}, {"douban_review_status": "CONFIRMED", "vod_douban_id": 90_000_500}, {"score": 95.0}
            ),
            Case(6, {"vod_hits": 5}, {"douban_review_status": "CONFIRMED", "vod_douban_id": 90_000_500}, None),
            Case(7, {"type_id": 13, "vod_hits": 4}, {}, {"score": 88.0}, {"conflicts": {"YEAR_OFF": "年份差 1 年"}}),
            Case(8, {"vod_hits": 3}, {"douban_review_status": "IGNORED", "douban_next_sync_at": None}, {"score": 91.0}),
            Case(9, {"vod_hits": 2}, {}, {"score": 40.0}, {"rejects": ["YEAR_GAP"], "conflicts": {}}),
            Case(10, {"vod_hits": 1, "vod_year": ""}, {"douban_review_status": "NOT_FOUND"}, None),
        ],
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"statuses": (ShownStatus.REVIEW,)}, {1, 2, 3, 7, 9}),
        ({"statuses": (ShownStatus.NOT_FOUND, ShownStatus.CONFIRMED)}, {4, 5, 6}),
        ({"statuses": (ShownStatus.UNCHECKED,)}, {10}),
        ({"statuses": (ShownStatus.UNCHECKED, ShownStatus.NOT_FOUND)}, {4, 10}),
        ({"statuses": (ShownStatus.IGNORED,)}, {8}),
        ({"min_score": 88.0}, {1, 5, 7}),
        ({"max_score": 80.0}, {2, 9}),
        ({"min_score": 80.0, "max_score": 90.0}, {1, 2, 7}),
        ({"with_codes": ("BELOW_CONFIRM",)}, {2}),
        ({"with_codes": ("TWIN_SUBJECTS", "YEAR_OFF")}, {7}),
        ({"with_codes": ("YEAR_GAP",)}, {9}),
        ({"statuses": (ShownStatus.REVIEW,), "without_codes": ("TWIN_SUBJECTS",)}, {2, 3}),
        ({"type_ids": (13,)}, {7}),
        ({"type_ids": (6, 13)}, {1, 2, 3, 4, 5, 6, 7, 9, 10}),
        ({"min_year": 2022}, {2, 4, 5, 6, 7, 9}),
        ({"max_year": 2022}, {1, 2}),
        ({"min_year": 2021, "max_year": 2021}, {1}),
        ({"duplicates_of": 90_000_500}, {5, 6}),
        ({"duplicates_of": 90_000_500, "except_vod_ids": (6,)}, {5}),
        ({"vod_ids": (9, 1, 1)}, {1, 9}),
        ({"vod_ids": (9, 1), "min_score": 50.0}, {1}),
        ({"vod_ids": (8, 1)}, {1}),
        ({"vod_ids": (8, 1), "statuses": (ShownStatus.IGNORED,)}, {8}),
        ({"type_ids": (6,), "statuses": (ShownStatus.REVIEW,), "max_year": 2022, "min_score": 85.0}, {1}),
    ],
    ids=str,
)
def test_what_a_filter_selects(library, asked, expected):
    picked = select_videos(library.services, VideoFilter(**asked), IGNORE)
    assert {pick.vod_id for pick in picked.videos} == expected
    assert picked.matched_in_all == len(expected) + len(picked.left_out)


def test_what_is_known_of_a_video_that_is_selected(library):
    [pick] = select_videos(library.services, VideoFilter(vod_ids=(7,)), IGNORE).videos
    assert (pick.title, pick.status, pick.douban_id, pick.score) == ("影片7", "REVIEW", 0, 88.0)
    assert (pick.best.douban_id, pick.best.title, dict(pick.best.objections)) == (
        90_000_007,
        "条目7",
        {"YEAR_OFF": "年份差 1 年"},
    )
    [pick] = select_videos(library.services, VideoFilter(vod_ids=(3,)), IGNORE).videos
    assert (pick.best, pick.score, pick.verdict_id) == (None, None, 0)


def test_the_newest_verdict_counts(library):
    table = library.tables.verdict
    [old] = library.query(sa.select(table).where(table.c.vod_id == 1))
    del old["verdict_id"]
    library.execute(sa.insert(table).values(**{**old, "score": 30.0, "reasons": ["BELOW_REVIEW"]}))
    assert taken(library, VideoFilter(vod_ids=(1,), min_score=80.0)) == []
    assert taken(library, VideoFilter(vod_ids=(1,), with_codes=("BELOW_REVIEW",))) == [1]
    [pick] = select_videos(library.services, VideoFilter(vod_ids=(1,)), IGNORE).videos
    assert pick.best is None, "the candidates of an older verdict are history"


def test_videos_that_are_gone_are_reported_only_where_they_were_named(library):
    library.execute("DELETE FROM mac_vod WHERE vod_id = 1")
    library.set_cms(2, vod_recycle_time=1)
    assert set(taken(library, REVIEW)) == {3, 7, 9}
    assert left_out(library, REVIEW) == {}
    named = VideoFilter(vod_ids=(1, 2, 3, 8))
    assert taken(library, named) == [3]
    assert left_out(library, named) == {
        1: "影片已从 CMS 中删除",
        2: "影片在 CMS 的回收站里",
        8: "已忽略；要包括它，请在 statuses 中加上 IGNORED",
    }


def test_the_most_pressing_come_first_and_the_others_are_counted(library):
    everything = select_videos(library.services, VideoFilter(type_ids=(6, 13)), IGNORE)
    order = [pick.vod_id for pick in everything.videos]
    assert sorted(order) != order, "not simply by id"
    found = select_videos(library.services, VideoFilter(type_ids=(6, 13), max_rows=3), IGNORE)
    assert [pick.vod_id for pick in found.videos] == order[:3]
    assert (found.matched_in_all, found.beyond, found.left_out_in_all) == (9, 6, 0)


# --- what is wrong with a filter --------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [{}, {"except_vod_ids": (1,)}, {"without_codes": ("YEAR_OFF",)}, {"max_rows": 5}])
def test_a_filter_must_restrict(library, asked):
    with pytest.raises(SelectionError) as caught:
        select_videos(library.services, VideoFilter(**asked), IGNORE)
    assert caught.value.problems == (
        "至少填写一项筛选：statuses、min_score、max_score、with_codes、type_ids、min_year、max_year、"
        "duplicates_of、id_locked、intro_locked、sources、updated_within_days、updated_before_days、locked_within_days、"
        "locked_before_days 或 vod_ids",
    )


def test_all_that_is_wrong_is_reported_at_once(library):
    asked = VideoFilter(
        min_score=90.0,
        max_score=80.0,
        with_codes=("YEAROFF", "year_gap", "YEAR_OFF", "XXXX"),
        without_codes=("YEAR_OFF",),
        type_ids=(6, 66, 66),
        min_year=2022,
        max_year=202,
        duplicates_of=42,
        vod_ids=(1, *range(101, 130)),
        except_vod_ids=(404,),
        max_rows=0,
    )
    with pytest.raises(SelectionError) as caught:
        select_videos(library.services, asked, IGNORE)
    unknown = "、".join(map(str, range(101, 121)))
    assert caught.value.problems == (
        "min_score: 不得大于 max_score（80），现为 90",
        "max_year: 应在 1880 到 2100 之间，0 表示不限，现为 202",
        "min_year: 不得大于 max_year（202），现为 2022",
        "max_rows: 应在 1 到 5000 之间，现为 0",
        "duplicates_of: 豆瓣 ID 不小于 10000，现为 42",
        "with_codes: 没有代码 'YEAROFF'，是不是 YEAR_OFF",
        "with_codes: 没有代码 'year_gap'，是不是 YEAR_GAP、YEAR_OFF",
        "with_codes: 没有代码 'XXXX'",
        "with_codes: 'YEAR_OFF' 也在 without_codes 中，两者只能取一",
        "type_ids: 没有类别 66",
        f"vod_ids: 没有影片 {unknown} 等 29 部",
        "except_vod_ids: 没有影片 404",
    )


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"min_score": float("nan")}, "min_score: 不能是负数，现为 nan"),
        ({"max_score": -1.0}, "max_score: 不能是负数，现为 -1"),
        ({"max_rows": 5001}, "max_rows: 应在 1 到 5000 之间，现为 5001"),
        ({"min_year": -2}, "min_year: 应在 1880 到 2100 之间，0 表示不限，现为 -2"),
    ],
)
def test_values_out_of_range(library, asked, problem):
    with pytest.raises(SelectionError) as caught:
        select_videos(library.services, VideoFilter(vod_ids=(1,), **asked), IGNORE)
    assert caught.value.problems == (problem,)


# --- what a batch may touch -------------------------------------------------------------------------------------------

SOUND = Case(1)
LOCKED = {"vod_douban_id": 90_000_777, "douban_id_locked": True}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, ""),
        ({"verdict": {"score": 85.0, "lead": 8.0}}, ""),
        ({"verdict": {"lead": None}}, ""),
        ({"verdict": {"fingerprint": ""}}, ""),
        ({"state": {**LOCKED, "vod_douban_id": 90_000_001}}, ""),
        ({"verdict": {"score": 84.9}}, "首选得分 84.9 低于 85"),
        ({"verdict": {"lead": 7.9}}, "首选只领先 7.9，低于 8"),
        ({"candidate": {"conflicts": {"YEAR_OFF": "年份差 1 年"}}}, "首选有冲突：年份差 1 年"),
        ({"candidate": {"rejects": ["YEAR_GAP"]}}, "首选有冲突：年份冲突：年份相差过大"),
        ({"candidate": {"fetched": False}}, "首选只见于搜索结果，没有取过详情"),
        ({"candidate": None}, "没有候选"),
        ({"verdict": None, "candidate": None}, "没有候选"),
        ({"verdict": {"fingerprint": "of another row"}}, "判定之后影片资料已改变，等待重新判定"),
        ({"state": LOCKED}, "豆瓣 ID 已锁定为 90000777，请先用 unlock_id 解锁"),
    ],
    ids=str,
)
@pytest.mark.parametrize("action", [DecisionAction.confirm_top1, DecisionAction.choose])
def test_only_what_is_beyond_doubt_is_confirmed_in_bulk(shared_library, action, changed, why):
    library = shelved(shared_library, [replace(SOUND, **changed), Case(2)])
    picked = select_videos(library.services, REVIEW, BatchDecision(action, rank=int(action is DecisionAction.choose)))
    assert {pick.vod_id for pick in picked.videos} == ({2} if why else {1, 2})
    assert [(entry.title, entry.why) for entry in picked.left_out] == ([("影片1", why)] if why else [])
    assert (picked.matched_in_all, picked.left_out_in_all, picked.beyond) == (2, bool(why), 0)


def test_what_is_recorded_holds_for_the_verdict_that_was_looked_at(shared_library):
    library = shelved(shared_library, [Case(1), Case(2)])
    [newest] = library.query(sa.select(sa.func.max(library.tables.verdict.c.verdict_id).label("id")))
    for bulk, verdict_id in ((CONFIRM, newest["id"]), (replace(IGNORE, days=30), 0)):
        picked = select_videos(library.services, VideoFilter(vod_ids=(2,)), bulk)
        assert decisions_of(picked, bulk) == [
            Decision(2, bulk.action, days=bulk.days, verdict_id=verdict_id, where="所选第 1 部")
        ]


def test_the_lines_are_the_sites_own(shared_library):
    library = shelved(shared_library, [Case(1, verdict={"score": 92.0, "lead": 20.0})])
    strict = library.renewed()
    assert taken(shelved(strict, [Case(1)]), REVIEW, CONFIRM) == [1]
    for options in ({"confirm_score": 93.0}, {"lead_score": 21.0}):
        assert taken(_under(shelved(library, [Case(1)]), **options), REVIEW, CONFIRM) == []


def _under(library, **options):
    changed = replace(library, options={**library.options, **options})
    changed.engine, changed.cms = library.engine, library.cms
    return changed


@pytest.mark.parametrize(
    ("bulk", "expected"),
    [
        (BatchDecision(DecisionAction.choose, rank=1), {1, 2}),
        (BatchDecision(DecisionAction.choose, rank=2), set()),
        (BatchDecision(DecisionAction.choose, douban_id=90_000_002), {2}),
    ],
)
def test_only_the_best_candidate_is_chosen_in_bulk(shared_library, bulk, expected):
    library = shelved(shared_library, [Case(1), Case(2)])
    assert set(taken(library, REVIEW, bulk)) == expected
    assert set(left_out(library, REVIEW, bulk).values()) <= {"所选的不是首选候选，批量时只能选首选"}


@pytest.mark.parametrize(
    ("bulk", "expected"),
    [
        (BatchDecision(DecisionAction.unlock_id), {1: "", 2: "豆瓣 ID 本来就没有锁定"}),
        (BatchDecision(DecisionAction.unlock_intro), {1: "简介本来就没有锁定", 2: ""}),
        (BatchDecision(DecisionAction.clear_id), {1: "豆瓣 ID 已锁定为 90000777，请先用 unlock_id 解锁", 2: ""}),
        (
            BatchDecision(DecisionAction.set_id, 90_000_001),
            {1: "豆瓣 ID 已锁定为 90000777，请先用 unlock_id 解锁", 2: ""},
        ),
        (BatchDecision(DecisionAction.set_id, 90_000_777), {1: "", 2: ""}),
        (
            BatchDecision(DecisionAction.replace_and_lock, 90_000_001),
            {1: "豆瓣 ID 已锁定为 90000777；确实要替换它，请设 i_am_sure: true", 2: ""},
        ),
        (BatchDecision(DecisionAction.replace_and_lock, 90_000_001, i_am_sure=True), {1: "", 2: ""}),
        (BatchDecision(DecisionAction.lock_id), {1: "", 2: ""}),
        (BatchDecision(DecisionAction.ignore), {1: "", 2: ""}),
    ],
)
def test_locks_stand(shared_library, bulk, expected):
    library = shelved(shared_library, [Case(1, state=LOCKED), Case(2, state={"intro_locked": True})])
    assert left_out(library, REVIEW, bulk) == {vod_id: why for vod_id, why in expected.items() if why}
    assert set(taken(library, REVIEW, bulk)) == {vod_id for vod_id, why in expected.items() if not why}


@pytest.mark.parametrize(
    ("waiting", "bulk", "why"),
    [
        (("set_id", 90_000_777), CONFIRM, "已有等待执行的决定：指定豆瓣 ID（小李）"),
        (("set_id", 90_000_777), IGNORE, "已有等待执行的决定：指定豆瓣 ID（小李）"),
        (("confirm_top1", 90_000_778), CONFIRM, "已有等待执行的决定：确认首选候选（小李）"),
        (("confirm_top1", 90_000_001), CONFIRM, ""),
        (("ignore", 0), IGNORE, ""),
        (("ignore", 0), replace(IGNORE, days=30), "已有等待执行的决定：忽略（小李）"),
        (("lock_intro", 0), CONFIRM, ""),
    ],
)
def test_what_a_person_decided_about_a_single_video_is_not_pushed_aside(shared_library, waiting, bulk, why):
    library = shelved(shared_library, [Case(1), Case(2)])
    values = decision_of(library, 1, DecisionAction(waiting[0]), waiting[1], "pending")
    library.execute(sa.insert(library.tables.decision).values(values))
    assert left_out(library, REVIEW, bulk) == ({1: why} if why else {})
    assert set(taken(library, REVIEW, bulk)) == ({2} if why else {1, 2})


def test_locks_sources_and_times_restrict(shared_library: Library) -> None:
    library = shared_library.renewed([video(n, vod_time=days_ago(n * 10)) for n in range(1, 7)])
    now = library.clock.now()
    for vod_id, source in enumerate(("person", "auto", "cms", "cms"), start=1):
        library.set_state(vod_id, vod_douban_id=90_000_101, douban_review_status="CONFIRMED", douban_id_source=source)
    library.set_state(1, douban_id_locked=True, douban_id_lock_time=now - timedelta(days=400))
    library.set_state(3, douban_id_locked=True, douban_id_lock_time=now - timedelta(days=3), intro_locked=True)
    ignore = BatchDecision(DecisionAction.ignore)

    def found(**asked: Any) -> list[int]:
        return sorted(pick.vod_id for pick in select_videos(library.services, VideoFilter(**asked), ignore).videos)

    assert found(id_locked=True) == [1, 3]
    assert found(id_locked=False) == [2, 4, 5, 6]
    assert found(intro_locked=True) == [3]
    assert found(sources=("cms", "person")) == [1, 3, 4]
    assert found(locked_since=now - timedelta(days=30)) == [3]
    assert found(locked_before=now - timedelta(days=365)) == [1]
    assert found(updated_since=now - timedelta(days=25)) == [1, 2]
    assert found(updated_before=now - timedelta(days=25), id_locked=False) == [4, 5, 6]
    with pytest.raises(SelectionError, match="sources: 没有来源 'ki'"):
        found(sources=("ki",))
