"""The review sheet in a browser: what is pressed becomes a decision that can be recorded; nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from douban_pipeline.douban.evidence.added_facts import Added, stored_facts
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.store.decisions import Decision, DecisionStatus
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.matching import Video
from douban_pipeline_tests.browser.served import decisions
from douban_pipeline_tests.browser.sheets import (
    LOCKED,
    SIX,
    STANDING,
    card,
    chosen,
    go_to,
    library,
    open_sheet,
    others_of,
    press,
    stocked,
    verdicts,
)
from douban_pipeline_tests.douban.review.shelves import Case
from douban_pipeline_tests.harness.fixtures.library import Library

__all__ = ["library", "open_sheet", "verdicts"]

Open = Callable[[Library], dict[int, int]]

pytestmark = pytest.mark.browser

HOSTILE_NAME = "小王: \"x\" 'y' # {a: [b]} \\n \u202e\u2028 & <b> %s 🎬 - |"

CASES = [
    (4, "1", {"action": "choose", "douban_id": 90_000_004}),
    (4, "5", {"action": "choose", "douban_id": others_of(4)[-1]}),
    (4, "15", {"action": "choose", "douban_id": others_of(4)[-1]}),
    (4, "2la", {"action": "choose", "douban_id": others_of(4)[0], "lock": True, "accept_conflicts": True}),
    (4, "i", {"action": "ignore", "days": 30}),
    (4, "ii", {"action": "ignore", "days": 180}),
    (4, "iii", {"action": "ignore"}),
    (4, "iil", {"action": "ignore", "days": 180, "lock": True}),
    (4, "r", {"action": "rematch"}),
    (4, "rl", {"action": "rematch"}),
    (5, "0", {"action": "set_id", "douban_id": STANDING}),
    (5, "c", {"action": "clear_id"}),
    (5, "cl", {"action": "clear_id", "lock": True}),
    (5, "l", {"action": "lock_id"}),
    (6, "1", {"action": "replace_and_lock", "douban_id": 90_000_006}),
    (6, "0", {"action": "set_id", "douban_id": LOCKED}),
    (6, "c", {"action": "unlock_id"}),
    # Out of date: its candidates are asked for and compared anew, and no verdict is told.
    (7, "1", {"action": "set_id", "douban_id": 90_000_007, "verdict_id": None}),
    (8, "r", {"action": "rematch", "verdict_id": None}),
]
NO_CHOICE = [(4, "11"), (4, "iiii"), (4, "l"), (4, "a"), (4, "c0"), (8, "1"), (4, "6"), (4, "1u"), (6, "l")]


def test_every_key_comes_to_the_decision_it_says(page: Page, library: Library, verdicts: dict[int, int]):
    assert list(verdicts) == [5, 6, 4, 7, 8, 9]
    for vod_id, keys, wanted in CASES:
        go_to(page, vod_id)
        press(page, keys)
        row = {"vod_id": vod_id, "verdict_id": verdicts[vod_id], **wanted}
        row = {name: value for name, value in row.items() if value}
        assert chosen(page) == [row], keys
        # Each is one that can be recorded, but for what a source has to say.
        requested = [Decision(**{**row, "action": DecisionAction(row["action"])})]
        if row["action"] not in ("set_id", "replace_and_lock"):
            recording = record(library.services, requested, reviewer="小王", note="", run_id="run", dry_run=True)
            assert [item.status for item in recording.items] == [DecisionStatus.CHECKED], recording.items[0].reason
        clear(page)


def test_the_synopsis_is_locked_beside_any_other_choice_and_alone(page: Page, library: Library, open_sheet: Open):
    with_locked = [Case(5, {"vod_name": "乙"}, {"intro_locked": True}), Case(4, {"vod_name": "甲", "vod_hits": 9_000})]
    seen = open_sheet(stocked(library, with_locked))
    expect(card(page, 5).get_by_text("简介已锁定")).to_be_visible()
    press(page, "1s")
    first = {"vod_id": 4, "action": "choose", "douban_id": 90_000_004, "verdict_id": seen[4]}
    assert chosen(page) == [first, {"vod_id": 4, "action": "lock_intro"}]
    expect(card(page, 4).locator(".chosen")).to_contain_text("锁定简介")
    clear(page, 2)
    press(page, "js")
    assert chosen(page) == [{"vod_id": 5, "action": "unlock_intro"}]


def test_the_subject_of_today_stands_beside_the_candidates(page: Page, library: Library, open_sheet: Open):
    open_sheet(stocked(library, SIX))
    head = card(page, 5).locator("th.current")
    expect(head).to_contain_text("现有条目")
    expect(head).to_contain_text(str(STANDING))
    assert card(page, 5).locator("tbody tr").first.locator("td, th").count() == 7, "local, today's, five candidates"
    assert card(page, 4).locator("th.current").count() == 0


def clear(page: Page, of: int = 6) -> None:
    """Take everything back."""
    while page.locator("#undo").is_enabled():
        press(page, "u")
    expect(page.locator("#count")).to_have_text(f"已选 0 / {of}")


def test_a_poster_that_is_the_videos_is_marked(page: Page, library: Library, open_sheet: Open):
    cases = [
        Case(4, {"vod_name": "甲", "vod_hits": 9_000}, verdict={"facts": {"posters": [90_000_004]}}),
        Case(5, {"vod_name": "乙"}),
    ]
    open_sheet(stocked(library, cases))
    for vod_id, marks in ((4, 1), (5, 0)):
        expect(card(page, vod_id).locator("th.candidate .flag.good", has_text="海报相同")).to_have_count(marks)


def test_keys_that_choose_nothing(page: Page, verdicts: dict[int, int]):
    assert verdicts
    for vod_id, keys in NO_CHOICE:
        go_to(page, vod_id)
        press(page, keys)
        expect(page.locator("#count")).to_have_text("已选 0 / 6")
        assert chosen(page) == []
        clear(page)


TYPED = [
    ("1292052", 1292052),
    (" 1292052 ", 1292052),
    ("https://movie.douban.com/subject/1292052/?from=x", 1292052),
    ("https://m.douban.com/movie/subject/1292052/", 1292052),
    ("9999", 0),
    ("99999999999", 0),
    ("4294967296", 0),
    ("1292052x", 0),
    ("-1292052", 0),
    ("霸王别姬", 0),
]


def test_what_is_typed_is_an_id_or_words(page: Page, verdicts: dict[int, int]):
    asked: list[tuple[str, Any]] = []

    def answer(route: Route) -> None:
        asked.append((route.request.url.rpartition("/")[2], route.request.post_data_json))
        route.fulfill(status=404, json={"detail": "没有"})

    page.route(re.compile("/review/(subject|search)$"), answer)
    go_to(page, 4)
    for typed, wanted in TYPED:
        press(page, "e")
        field = card(page, 4).get_by_role("textbox")
        field.fill("")
        page.keyboard.insert_text(typed)
        # What is typed is no command.
        page.keyboard.press("r")
        page.keyboard.press("Backspace")
        page.keyboard.press("Enter")
        expect(card(page, 4).locator(".hits")).to_have_text("没有")
        by_id, by_words = ("subject", {"vod": 4, "id": wanted}), ("search", {"words": typed.strip()})
        assert asked.pop() == (by_id if wanted else by_words)
        field.evaluate("field => field.closest('article').querySelector('.hits').replaceChildren()")
    assert (chosen(page), asked) == ([], [])


def test_whatever_the_reviewer_is_called_the_decision_says_so(page: Page, library: Library, verdicts: dict[int, int]):
    assert verdicts
    page.get_by_label("审核员").first.fill(HOSTILE_NAME)
    page.get_by_label("备注").first.fill("yes: [no]")
    page.locator("h1").click()
    press(page, "i")
    expect(page.locator("#count")).to_contain_text("等待执行 1")
    [row] = decisions(library)
    assert (row["reviewer"], row["note"]) == (HOSTILE_NAME, "yes: [no]")


def test_choices_survive_a_reload(page: Page, verdicts: dict[int, int]):
    assert verdicts
    go_to(page, 4)
    press(page, "2l")
    go_to(page, 5)
    press(page, "i")
    before = chosen(page)
    assert len(before) == 2
    page.reload()
    expect(page.locator("#count")).to_have_text("已选 2 / 6，待发送 2")
    assert chosen(page) == before


def test_a_browser_that_keeps_nothing_is_enough(page: Page, library: Library, open_sheet: Open):
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('forbidden'); }})")
    open_sheet(stocked(library, SIX))
    page.get_by_label("审核员").first.fill("小王")
    page.locator("h1").click()
    press(page, "i")
    expect(page.locator("#count")).to_contain_text("等待执行 1")
    assert len(decisions(library)) == 1


NONSENSE = ["null", "7", "[]", "{", '{"made": {"5:1": {"pick": 7, "at": 9e15}}, "sent": 3, "note": 7}']


def test_what_was_kept_may_be_nonsense(page: Page, library: Library, open_sheet: Open):
    open_sheet(stocked(library, SIX))
    for kept in NONSENSE:
        page.evaluate(
            """kept => { const id = JSON.parse(document.getElementById('sheet').textContent).id;
                         for (const key of [id, 'who']) localStorage.setItem(`douban-review:${key}`, kept) }""",
            kept,
        )
        page.reload()
        expect(page.locator("article.current [data-pick=rematch]")).to_be_visible()
        press(page, "r")
        assert [row["action"] for row in chosen(page)] == ["rematch"], kept
        press(page, "u")
        assert chosen(page) == []


def test_what_tmdb_added_stands_on_the_card_with_its_logo(page: Page, library: Library, open_sheet: Open):
    added = Added("movie/7", aliases=("<b>蓝鲸</b>",), year=2022)
    facts = stored_facts(Video(4, "甲"), added)
    cases = [Case(4, {"vod_name": "甲", "vod_hits": 9_000}, verdict={"facts": facts}), Case(5, {"vod_name": "乙"})]
    open_sheet(stocked(library, cases))
    shown = card(page, 4)
    expect(shown.get_by_text("参考 TMDB movie/7 ↗：别名 <b>蓝鲸</b>；年份 2022")).to_be_visible()
    expect(shown.get_by_role("link", name="TMDB movie/7")).to_have_attribute(
        "href", "https://www.themoviedb.org/movie/7"
    )
    expect(shown.locator(".attribution")).to_contain_text("TMDB API")
    assert shown.locator(".attribution img").evaluate("logo => logo.decode().then(() => logo.naturalWidth > 0)")
    expect(card(page, 5).locator(".attribution")).to_have_count(0)
