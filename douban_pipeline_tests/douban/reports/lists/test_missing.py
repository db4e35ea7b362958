"""Videos without a Douban id: which they are, what a person looks at first, why, and what may be done."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.store.videos import CLEARED_IN_BULK
from douban_pipeline_tests.douban.reports.planting import figures, linked, listed, opened, verdict
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, days_ago, video


def found(library):
    return [row["vod_id"] for row in listed(library.services, "missing")]


@pytest.mark.parametrize(
    ("state", "missing"),
    [
        ({"douban_review_status": "NOT_FOUND"}, True),
        ({"douban_review_status": "REVIEW"}, True),
        ({"douban_review_status": "REVIEW", "vod_douban_id": 90_000_101}, False),
        ({"douban_review_status": "CONFIRMED", "vod_douban_id": 90_000_101}, False),
        ({"douban_review_status": "IGNORED", "douban_next_sync_at": None}, False),
        ({"douban_review_status": "IGNORED"}, False),
        ({"douban_review_status": "REVIEW", "douban_review_reason": CLEARED_IN_BULK, "vod_douban_id": 7}, True),
    ],
    ids=lambda value: str(value),
)
def test_which_videos_are_missing_an_id(library, state, missing):
    library = library.renewed([video(1)])
    library.set_state(1, **state)
    assert found(library) == ([1] if missing else [])


def test_the_most_watched_and_newest_have_the_greatest_value_as_the_formula_says(library):
    library = library.renewed(
        [
            video(1, vod_hits=0, vod_time=days_ago(900)),
            video(2, vod_hits=1_000_000, vod_time=days_ago(900)),
            video(3, vod_hits=0, vod_time=days_ago(0)),
            video(4, vod_hits=900, vod_time=days_ago(0)),
            video(5, vod_hits=0, vod_time=days_ago(900)),
            video(6, vod_hits=0, vod_time=0),
        ]
    )
    values = {row["vod_id"]: row["value"] for row in listed(library.services, "missing")}
    assert sorted(values, key=lambda vod_id: (-values[vod_id], vod_id)) == [2, 4, 3, 1, 5, 6]


def test_categories_that_are_never_searched_are_marked_and_have_no_value(library):
    library = library.renewed([video(1, type_id=20, vod_hits=10**6), video(2)], excluded_type_ids=frozenset({20}))
    rows = {row["vod_id"]: (row["scope"], row["value"] is None) for row in listed(library.services, "missing")}
    assert rows == {2: (None, False), 1: ("不在处理范围", True)}
    out = listed(library.services, "missing", ListFilter(chosen={"scope": ["out"]}))
    assert [row["vod_id"] for row in out] == [1]
    counts = figures(library.services, "missing").counts
    assert (counts["missing"], counts["out_of_scope"]) == (2, 1)


def test_what_is_listed_of_each(library):
    library = library.renewed([video(1, vod_name="甲 &amp; 乙", vod_year="2021-2022", vod_hits=77), video(2), video(3)])
    moment = START - timedelta(days=2)
    library.set_state(1, douban_review_status="REVIEW", douban_review_reason="得分 77.0", douban_last_sync_at=moment)
    library.set_state(3, douban_review_reason="没有搜到候选", douban_last_sync_at=moment)
    verdict(library, 1, (90_000_109, 40.0))
    verdict(library, 1, (90_000_101, 77.0), (90_000_102, 60.0))
    rows = {row["vod_id"]: row for row in listed(library.services, "missing")}
    first, other, sought = rows[1], rows[2], rows[3]
    assert (first["video"], first["status"], first["hits"], first["reason"]) == ("甲 & 乙", "待审核", 77, "得分 77.0")
    assert (first["looked_at"], first["best_id"], first["score"]) == (moment, 90_000_101, 77.0)
    assert first["best"].startswith("条目90000101（2020）")
    assert (other["status"], other["looked_at"], other["best"], other["reason"]) == ("未检查", None, None, "尚未查找")
    assert (sought["status"], sought["reason"]) == ("未找到", "没有搜到候选")
    found_figures = figures(library.services, "missing")
    assert dict(found_figures.counts) == {
        "missing": 3,
        "unchecked": 1,
        "not_found": 1,
        "in_review": 1,
        "out_of_scope": 0,
    }
    assert [(card.label, card.value) for card in found_figures.cards] == [
        ("无豆瓣 ID", "3"),
        ("未检查", "1"),
        ("未找到", "1"),
        ("待审核", "1"),
    ]


def test_what_may_be_done_is_filled_in_but_for_the_id(library):
    library = library.renewed([video(7, vod_name="2019年惊悚《寄生虫2》BD中字")])
    [row] = listed(library.services, "missing")
    page = LISTS["missing"](library.services)
    [words] = [given for name, *given in row["links"] if name == "search"]
    search = page.links["search"].filled(*words)
    assert search.startswith("https://search.douban.com/movie/subject_search?search_text=%E5%AF%84%E7%94%9F")
    assert search.endswith("2&cat=1002")
    job, config = opened(page, row, "set")
    given = {"reviewer": "", "note": "", "dry_run": False}
    decisions = [{"vod_id": 7, "action": "set_id", "douban_id": 0}]
    assert (job, config) == (
        "record_decisions",
        {"ops": {"store_decisions": {"config": {**given, "decisions": decisions}}}},
    )
    _, config = opened(page, row, "ignore")
    assert config["ops"]["store_decisions"]["config"]["decisions"] == [{"vod_id": 7, "action": "ignore", "days": 180}]


def test_a_video_that_is_deleted_in_the_meantime_is_left_out(library: Library) -> None:
    library = library.renewed([video(1), video(2)])
    library.execute(library.cms.vod.delete().where(library.cms.vod.c.vod_id == 1))
    assert found(library) == [2]


def test_a_linked_library_misses_nothing(library):
    library = library.renewed([video(1)])
    linked(library, 1, 90_000_101)
    assert found(library) == []
