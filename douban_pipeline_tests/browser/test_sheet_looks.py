"""How the review sheet looks and feels: outside text is text, nothing hangs over the edge, warnings are said."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from douban_pipeline_tests.browser.sheets import (
    SIX,
    card,
    current,
    go_to,
    library,
    open_sheet,
    press,
    stocked,
    verdicts,
)
from douban_pipeline_tests.douban.review.shelves import Case
from douban_pipeline_tests.harness.fixtures.library import Library

__all__ = ["library", "open_sheet", "verdicts"]

Open = Callable[[Library], dict[int, int]]

pytestmark = pytest.mark.browser


def test_hostile_text_is_shown_as_it_is_and_runs_nothing(page: Page, library: Library, open_sheet: Open):
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    # Posters that are not there are no script's doing.
    page.on("console", lambda message: message.text.startswith("Failed to load resource") or said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    open_sheet(stocked(library, SIX))
    go_to(page, 9)
    press(page, "1")
    shown = card(page, 9)
    expect(shown.locator("th.candidate strong").first).to_have_text(
        "</script><img src=x onerror=alert(1)><b>\"' edoc`${1}"
    )
    expect(shown).to_contain_text("候选 1《</script><img src=x onerror=alert(1)>")
    assert page.locator("main img, main b b").count() == 0
    assert said == []


def test_a_click_leaves_the_keyboard_with_the_card(page: Page, verdicts: dict[int, int]):
    assert list(verdicts)[:3] == [5, 6, 4]
    card(page, 6).locator("[data-pick=c2]").click()
    assert current(page) == 6
    press(page, " ")
    assert current(page) == 4, "the space bar goes on, and does not press the button again"
    expect(card(page, 6).locator("[data-pick=c2]")).to_have_attribute("aria-pressed", "true")
    # By keyboard alone a button is pressed with it, as anywhere.
    card(page, 4).locator("[data-pick=c3]").focus()
    press(page, " ")
    expect(card(page, 4).locator("[data-pick=c3]")).to_have_attribute("aria-pressed", "true")
    assert current(page) == 4


def test_what_speaks_against_a_choice_is_said(page: Page, library: Library, open_sheet: Open):
    cases = [
        Case(4, {"vod_name": "甲", "vod_hits": 90}, candidate={"douban_id": 90_000_500}),
        Case(5, {"vod_name": "乙", "vod_hits": 9}, candidate={"douban_id": 90_000_500, "rejects": ["YEAR_GAP"]}),
    ]
    open_sheet(stocked(library, cases))
    press(page, "1")
    warnings = page.locator(".warnings li")
    expect(warnings).to_have_count(0)
    press(page, "j1")
    expect(card(page, 4).locator(".warnings")).to_contain_text("在本页也选给了影片 5")
    expect(card(page, 5).locator(".warnings")).to_contain_text("硬性冲突")
    expect(card(page, 5).locator(".warnings")).to_contain_text("在本页也选给了影片 4")
    press(page, "a")
    expect(card(page, 5).locator(".warnings li")).to_have_count(0)
    press(page, "1")
    expect(warnings).to_have_count(0)


@pytest.mark.parametrize("width", [360, 1440])
def test_nothing_hangs_over_the_edge(page: Page, library: Library, open_sheet: Open, width: int):
    page.set_viewport_size({"width": width, "height": 800})
    long = Case(10, {"vod_name": "一" * 80}, {"douban_review_reason": "x" * 400}, candidate={"title": "y" * 200})
    open_sheet(stocked(library, [*SIX, long]))
    press(page, "1")
    press(page, "?")
    for open_dialog in (True, False):
        assert page.evaluate("document.documentElement.scrollWidth") == width, open_dialog
        page.keyboard.press("Escape")
    # Every candidate can be reached by swiping.
    card(page, 4).scroll_into_view_if_needed()  # a card is filled when it comes near
    scroll = card(page, 4).locator(".scroll")
    last = scroll.locator("th.candidate").last
    last.scroll_into_view_if_needed()
    expect(last.get_by_role("button")).to_be_in_viewport(ratio=0.9)


def test_an_empty_queue_is_reported(page: Page, library: Library, open_sheet: Open):
    open_sheet(library)
    expect(page.locator("main")).to_have_text("没有待审核的影片。")
    press(page, "j1u?")
    expect(page.get_by_role("dialog")).to_contain_text("选候选")


def test_a_screen_reader_is_told_what_is_what_and_what_was_chosen(page: Page, verdicts: dict[int, int]):
    assert list(verdicts)[:2] == [5, 6]
    shown = card(page, 5)
    expect(page.get_by_role("article", name="影片 5《乙》")).to_have_attribute("aria-current", "true")
    expect(shown.get_by_role("columnheader")).to_have_count(7)
    expect(shown.get_by_role("rowheader").first).to_be_attached()
    expect(shown.get_by_role("region", name="《乙》与候选的比较")).to_be_attached()
    # The key is marked apart from the name, and a button says whether it is pressed.
    choose = shown.get_by_role("button", name="选候选 1", exact=True)
    expect(choose).to_have_attribute("aria-keyshortcuts", "1")
    expect(choose).to_have_attribute("aria-pressed", "false")
    press(page, "1")
    expect(choose).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("status")).to_have_text("《乙》：候选 1《条目5》90000005")
    press(page, "j")
    expect(page.locator("[aria-current]")).to_have_count(1)
    expect(page.get_by_role("article", name="影片 6《丙》")).to_have_attribute("aria-current", "true")
    for control in page.locator("button:visible, input:visible, select:visible").all():
        name = control.evaluate(
            "each => each.getAttribute('aria-label') || each.closest('label')?.innerText || each.innerText"
        )
        assert name.strip(), control.evaluate("each => each.outerHTML")
