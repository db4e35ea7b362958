"""Videos without a Douban id: which they are, in what order, why, and what may be done."""

from __future__ import annotations

from datetime import timedelta

import pytest

from douban_pipeline.douban.reports.pages.missing import MissingVideoCandidate, missing_ids
from douban_pipeline.douban.reports.pages.missing_report import missing_report
from douban_pipeline_tests.douban.reports.pages.planting import launched, linked, rows_of, verdict
from douban_pipeline_tests.harness.fixtures.clocks import START
from douban_pipeline_tests.harness.fixtures.library import Library, days_ago, video


def found(library, most=100):
    return [item.vod_id for item in missing_ids(library.services, most=most).first]


@pytest.mark.parametrize(
    ("state", "missing"),
    [
        ({"douban_review_status": "NOT_FOUND"}, True),
        ({"douban_review_status": "REVIEW"}, True),
        ({"douban_review_status": "REVIEW", "vod_douban_id": 90_000_101}, False),
        ({"douban_review_status": "CONFIRMED", "vod_douban_id": 90_000_101}, False),
        ({"douban_review_status": "IGNORED", "douban_next_sync_at": None}, False),
        ({"douban_review_status": "IGNORED"}, False),
        ({"douban_next_sync_at": None}, False),
        ({"type_id": 20}, False),
    ],
    ids=lambda value: str(value),
)
def test_which_videos_are_missing_an_id(library, state, missing):
    library = library.renewed([video(1)], excluded_type_ids=frozenset({20}))
    library.set_state(1, **state)
    assert found(library) == ([1] if missing else [])


def test_the_most_watched_and_newest_come_first_as_the_formula_says(library):
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
    assert found(library) == [2, 4, 3, 1, 5, 6]
    assert found(library, most=2) == [2, 4]
    assert missing_ids(library.services, most=2).count == 6


def test_what_is_reported_each(library):
    library = library.renewed([video(1, vod_name="甲 &amp; 乙", vod_year="2021-2022", vod_hits=77), video(2), video(3)])
    moment = START - timedelta(days=2)
    library.set_state(1, douban_review_status="REVIEW", douban_review_reason="得分 77.0", douban_last_sync_at=moment)
    library.set_state(3, douban_review_reason="没有搜到候选", douban_last_sync_at=moment)
    verdict(library, 1, (90_000_109, 40.0))
    verdict(library, 1, (90_000_101, 77.0), (90_000_102, 60.0))
    missing = missing_ids(library.services, most=10)
    [first, second, _] = missing.first
    assert (first.title, first.year, first.hits, first.reason) == ("甲 & 乙", 2021, 77, "得分 77.0")
    assert (first.looked_at, first.best) == (moment, MissingVideoCandidate(90_000_101, "条目90000101", 2020, 77.0))
    assert (second.looked_at, second.best) == (None, None)
    assert missing.by_status == {"UNCHECKED": 1, "NOT_FOUND": 1, "REVIEW": 1}
    report = missing_report(missing)
    assert dict(report.counts) == {"missing": 3, "unchecked": 1, "not_found": 1, "in_review": 1}
    [row, other, sought] = rows_of(report.chapters, "most_valuable")
    assert (other["状态"], sought["状态"], sought["原因"]) == ("未检查", "未找到", "没有搜到候选")
    assert (row["影片"], row["状态"], row["原因"]) == ("1 甲 & 乙（2021）", "待审核", "得分 77.0")
    assert (other["原因"], other["最佳候选"]) == ("尚未查找", None)


def test_what_may_be_done_is_filled_in_but_for_the_id(library):
    library = library.renewed([video(7, vod_name="2019年惊悚《寄生虫2》BD中字")])
    [row] = rows_of(missing_report(missing_ids(library.services, most=10)).chapters, "most_valuable")
    search, set_id, ignore = row["操作"].cells
    assert search.address.startswith("https://search.douban.com/movie/subject_search?search_text=%E5%AF%84%E7%94%9F")
    assert search.address.endswith("2&cat=1002")
    assert launched(set_id.address) == (
        "record_decisions",
        {
            "ops": {
                "store_decisions": {
                    "config": {
                        "reviewer": "",
                        "note": "",
                        "dry_run": False,
                        "decisions": [{"vod_id": 7, "action": "set_id", "douban_id": 0}],
                    }
                }
            }
        },
    )
    _, config = launched(ignore.address)
    assert config["ops"]["store_decisions"]["config"]["decisions"] == [{"vod_id": 7, "action": "ignore", "days": 180}]


def test_a_video_that_is_deleted_during_the_report_is_left_out(library: Library) -> None:
    library = library.renewed([video(1), video(2)])
    library.execute(library.cms.vod.delete().where(library.cms.vod.c.vod_id == 1))
    missing = missing_ids(library.services, most=10)
    assert [item.vod_id for item in missing.first] == [2]


def test_a_linked_library_misses_nothing(library):
    library = library.renewed([video(1)])
    linked(library, 1, 90_000_101)
    missing = missing_ids(library.services, most=10)
    assert (missing.count, missing.first) == (0, ())
