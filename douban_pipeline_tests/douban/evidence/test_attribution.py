"""TMDB's logo and sentence are on every page on which its data had a part in what is said, and on no other."""

from __future__ import annotations

from types import SimpleNamespace
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from douban_pipeline.core.ui.lists.list_page import Figures, ListColumn, ListView, Table
from douban_pipeline.core.ui.lists.shown_cells import PageFrame, preview
from douban_pipeline.core.ui.lists.table_page import table_page
from douban_pipeline.core.ui.tmdb_attribution import ATTRIBUTION, LINK, LOGO_INLINE, attribution_markdown
from douban_pipeline.douban.chain.match import assets
from douban_pipeline.douban.evidence.added_facts import Added, stored_facts
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline.douban.review.worklist.queue_table import pressing_table
from douban_pipeline.douban.review.worklist.sheet import cards_of, frame_of
from douban_pipeline.douban.undo.jobs import video_history
from douban_pipeline.matching import Video
from douban_pipeline_tests.douban.review.shelves import Case, shelved
from douban_pipeline_tests.harness.fixtures.clocks import START

ADDED = Added("movie/7", "tt0000007", aliases=("蓝鲸</script>",), directors=("蓝鲸导",))
NAMED = f"得分 80.0；匹配度不足。{ADDED.sentence}"
ZONE = ZoneInfo("Asia/Shanghai")


def judged(added):
    verdict = {"facts": stored_facts(Video(4, "The Whale Keeper"), added), "explanation": NAMED if added else "得分"}
    return Case(4, {}, {"douban_review_reason": verdict["explanation"]}, verdict)


def credited(page: str) -> bool:
    assert (ATTRIBUTION in page) == (LOGO_INLINE in page) == (f'"{LINK}"' in page or f"({LINK})" in page)
    return ATTRIBUTION in page


@pytest.mark.parametrize("text", [NAMED, "得分 80.0"])
def test_lists_and_reports_credit_tmdb_where_a_text_names_it(text):
    columns = (ListColumn("why", "原因"),)
    table = Table("rows", "各行", columns, [{"why": text}])
    view = ListView(table, [], "1", "why")
    for figures, listed in ((Figures(tables=[table]), None), (Figures(), view)):
        page, _ = table_page("某报告", "说明。", figures, PageFrame(ZONE, "/"), START, view=listed)
        assert credited(page) is (text is NAMED)
    assert credited(preview(columns, table.rows, ZONE)) is (text is NAMED)


@pytest.mark.parametrize("added", [ADDED, None])
def test_pages_of_dagster_credit_tmdb_where_a_verdict_names_it(shared_library, added):
    library = shelved(shared_library, [judged(added)])
    queue = review_queue_of(library.services, most=10)
    assert credited(pressing_table(queue, {}, "location")) is (added is ADDED)
    result = video_history.execute_in_process(
        run_config={"ops": {"show_history": {"config": {"vod_ids": [4]}}}}, resources={"services": library.services}
    )
    [event] = [event for event in result.all_events if event.event_type_value == "STEP_OUTPUT"]
    history = event.step_output_data.metadata["history"]
    assert isinstance(history, dg.MarkdownMetadataValue)
    assert credited(history.value or "") is (added is ADDED)


def test_the_run_that_judges_credits_tmdb_where_it_had_a_part():
    with_tmdb, without = (SimpleNamespace(explanation=text) for text in (NAMED, "得分 80.0"))
    assert assets._credit([without, with_tmdb])["attribution"].value == attribution_markdown()
    assert assets._credit([without]) == {}


@pytest.mark.parametrize("added", [ADDED, ADDED.left(), None])
def test_a_card_of_the_review_sheet_shows_what_tmdb_added_with_its_credit(shared_library, added):
    library = shelved(shared_library, [judged(added)])
    [card] = cards_of(library.services, review_queue_of(library.services, most=10).first)
    data = frame_of(library.services, "")
    facts = [["别名", "蓝鲸</script>"], ["导演", "蓝鲸导"]] if added is ADDED else []
    assert card["tmdb"] == ({"key": "movie/7", "facts": facts} if added else None)
    assert (data["tmdb"]["logo"], data["tmdb"]["link"]) == (LOGO_INLINE, LINK)
    assert ATTRIBUTION in data["tmdb"]["sentence"]
