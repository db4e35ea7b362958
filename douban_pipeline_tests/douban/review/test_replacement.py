"""Before an id is replaced: the old subject beside the new one, and what would be written."""

from __future__ import annotations

from douban_pipeline.douban.review.records.replacement import replacement_rows, replacements
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline.douban.review.worklist.sheet import cards_of
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline_tests.douban.reports.planting import linked, verdict
from douban_pipeline_tests.harness.fixtures.library import Library, video
from douban_pipeline_tests.harness.fixtures.scenario import RIVER, WHALE
from douban_pipeline_tests.harness.fixtures.shelf import Shelf

OLD, NEW = RIVER["id"], WHALE["id"]


def with_both(shared_library: Library) -> Library:
    library = shared_library.renewed([video(n, vod_name=WHALE["title"], vod_year="", vod_area="大陆") for n in (4, 5)])
    linked(library, 4, OLD)
    for entry in (RIVER, WHALE):
        Shelf(library).answer(entry)
    return library


def decided(vod_id: int, douban_id: int) -> Decision:
    return Decision(vod_id, DecisionAction.set_id, douban_id)


def test_old_new_and_what_is_written_stand_side_by_side(shared_library: Library) -> None:
    library = with_both(shared_library)
    [found] = replacements(library.services, [decided(4, NEW), decided(5, NEW)])
    assert (found.vod_id, found.old_id, found.new_id) == (4, OLD, NEW)
    values = {value.name: (value.local, value.old, value.new, value.written) for value in found.values}
    assert values["年份"] == ("", "2021", "2022", "2022")
    assert values["片名"] == (WHALE["title"], RIVER["title"], WHALE["title"], "")
    assert values["导演"] == ("", "长河导", "蓝鲸导", "蓝鲸导")
    assert "地区" not in values, "what is alike and stays is not said"
    rows = replacement_rows([found])
    assert rows[0]["旧条目"] == OLD
    assert rows[0]["将写入"] == NEW


def test_the_same_id_no_id_and_what_the_archive_has_not(shared_library: Library) -> None:
    library = with_both(shared_library)
    assert replacements(library.services, [decided(4, OLD), decided(5, NEW)]) == []
    [unknown] = replacements(library.services, [decided(4, 90_000_999)])
    assert {value.new for value in unknown.values} == {""}
    assert "长河导" in {value.old for value in unknown.values}


def test_the_sheet_shows_the_subject_of_today_and_what_each_candidate_would_write(shared_library: Library) -> None:
    library = with_both(shared_library)
    library.set_state(4, douban_review_status="REVIEW", intro_locked=True)
    verdict(library, 4, (NEW, 80.0))
    [card] = cards_of(library.services, review_queue_of(library.services, most=10).first)
    assert card["introLocked"] is True
    assert (card["current"]["id"], card["current"]["title"]) == (OLD, RIVER["title"])
    assert card["current"]["facts"]["director"] == ["长河导"]
    assert "年份：空 → 2022" in card["writes"][str(NEW)]
