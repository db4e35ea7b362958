"""Finding a subject inside a card of the served sheet: by words, by an id, and what half an id does: nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from douban_pipeline_tests.browser.served import decisions, open_page, served
from douban_pipeline_tests.browser.sheets import press
from douban_pipeline_tests.harness.fixtures.scenario import FILMS, RIVER, WHALE, row_of

pytestmark = pytest.mark.browser


@pytest.fixture
def waiting(stage):
    """A video without a verdict waits for a person."""
    scenario = stage([row_of(WHALE, 5)], FILMS)
    scenario.library.set_state(5, douban_review_status="REVIEW")
    return scenario.library


def test_a_subject_found_by_words_is_compared_and_chosen_by_a_key(page: Page, waiting):
    with served(waiting) as (service, _):
        open_page(page, service)
        press(page, "e")
        page.keyboard.type("蓝鲸与灯塔守望者")
        page.keyboard.press("Enter")
        page.get_by_role("button", name=str(WHALE["id"])).click()
        head = page.locator("th.candidate")
        expect(head).to_contain_text("您指定的，不在判定的候选中")
        expect(page.locator("td.agree").first).to_be_visible()
        press(page, "1")
        expect(page.locator("#count")).to_contain_text("等待执行 1", timeout=20_000)
        (found,) = decisions(waiting)
        assert (found["action"], found["douban_id"]) == ("set_id", WHALE["id"])


def test_an_id_that_is_typed_decides_nothing_before_its_subject_was_seen(page: Page, waiting):
    with served(waiting) as (service, _):
        open_page(page, service)
        press(page, "e")
        page.keyboard.type(str(RIVER["id"]))
        page.keyboard.press("Escape")
        expect(page.locator("#count")).to_contain_text("已选 0")
        press(page, "e")
        page.keyboard.press("Enter")
        expect(page.locator("th.candidate strong")).to_have_text(RIVER["title"])
        expect(page.locator("td.disagree").first).to_be_visible()
        expect(page.locator("#count")).to_contain_text("已选 0")
        assert decisions(waiting) == []


def test_what_was_not_found_is_told_from_what_could_not_be_asked(page: Page, waiting):
    with served(waiting) as (service, _):
        open_page(page, service)
        press(page, "e")
        page.keyboard.type("没有这样的片名")
        page.keyboard.press("Enter")
        expect(page.locator(".hits")).to_have_text("没有搜到条目")
        page.route(
            "**/review/search", lambda route: route.fulfill(status=503, json={"detail": "douban 没有答复：超时"})
        )
        press(page, "e")
        page.keyboard.press("Enter")
        expect(page.locator(".hits")).to_have_text("douban 没有答复：超时")
