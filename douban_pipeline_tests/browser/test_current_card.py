"""The current card of the served sheet: it stays where it is whatever comes and goes, and no key changes another."""

from __future__ import annotations

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from douban_pipeline_tests.browser.served import IN_SIGHT, decisions, films, open_page, served, shown
from douban_pipeline_tests.browser.sheets import card, current, library, press, stocked
from douban_pipeline_tests.harness.fixtures.library import Library

__all__ = ["library"]

pytestmark = pytest.mark.browser

TOP = "() => document.querySelector('article.current').getBoundingClientRect().top"
"""Where the current card begins, in pixels below the upper edge."""

LOOKED = "**/review/live"


def link(stock: Library, vod_id: int, subject: int) -> None:
    """Have a video carry a subject."""
    stock.set_state(vod_id, vod_douban_id=subject, douban_review_status="CONFIRMED")
    stock.execute(f"UPDATE mac_vod SET vod_douban_id = {subject} WHERE vod_id = {vod_id}")


def test_cards_on_their_way_to_a_page_are_nobody_elses(page: Page, browser: Browser, library: Library):
    stock = stocked(library, films(60))
    coming: list[tuple[Route, APIResponse]] = []
    with served(stock) as (service, _):
        open_page(page, service)
        page.route("**/review/cards", lambda route: coming.append((route, route.fetch())))
        # So few are left that more are asked for; they are claimed, and not here yet.
        with page.expect_request("**/review/cards"):
            press(page, "1111")
        # The page asks what has become of the cards that it has.
        for _ in range(2):
            with page.expect_response(LOOKED):
                """Once may have been before they were claimed."""
        other = open_page(browser.new_context().new_page(), service, "小李")
        assert shown(other)
        [(route, answer)] = coming
        route.fulfill(response=answer)
        page.unroute("**/review/cards")
        # Each key finds the current card, through all that was asked for: 1 to 12 at first, 13 to 28 then.
        for _ in range(24 - 4):
            page.wait_for_function(IN_SIGHT)
            press(page, "1")
        expect(page.locator("#count")).to_contain_text("等待执行 24")
        assert {row["vod_id"] for row in decisions(stock)} == set(range(1, 25))
        assert not shown(page) & shown(other)
        other.context.close()


def test_a_page_that_is_loaded_again_has_the_same_cards(page: Page, browser: Browser, library: Library):
    stock = stocked(library, films(60))
    with served(stock) as (service, _):
        open_page(page, service)
        before, at = shown(page), current(page)
        former = page.evaluate(
            "() => ['page', 'loads'].map((name) => sessionStorage[`douban-review:${name}`]).join('-')"
        )
        page.reload()
        expect(page.locator("article.current")).to_be_visible()
        # What the page gave up when it was left arrives when it has claimed its cards again.
        page.evaluate(
            """given => fetch("release", { method: "POST", headers: { "Content-Type": "application/json" },
                                       body: JSON.stringify(given) })""",
            {"page": former, "given_up": sorted(before)},
        )
        other = open_page(browser.new_context().new_page(), service, "小李")
        assert (shown(page), current(page)) == (before, at)
        assert not shown(page) & shown(other)
        other.context.close()


def test_what_was_refused_comes_back_and_the_current_card_stays(page: Page, library: Library):
    stock = stocked(library, films(30))
    with served(stock) as (service, _):
        open_page(page, service)
        # Linked after their cards were read: both are refused while a third one is looked at.
        for vod_id in (1, 2):
            link(stock, 30 - vod_id, 90_000_000 + vod_id)
        press(page, "11")
        expect(page.locator("article.current")).to_have_attribute("data-vod", "3")
        page.wait_for_function(IN_SIGHT)
        before = page.evaluate(TOP)
        for vod_id in (1, 2):
            expect(card(page, vod_id)).to_contain_text("被拒")
            # Read again, it says what speaks against it.
            expect(card(page, vod_id)).to_contain_text(f"已关联影片 {30 - vod_id}")
        assert current(page) == 3
        assert page.evaluate(TOP) == pytest.approx(before, abs=2)
        press(page, "1")
        expect(page.locator("#count")).to_contain_text("等待执行 1")
        assert [row["vod_id"] for row in decisions(stock) if row["state"] == "pending"] == [3]


def test_a_key_changes_no_card_that_is_not_marked(page: Page, library: Library):
    stock = stocked(library, films(12))
    with served(stock) as (service, _):
        open_page(page, service)
        assert current(page) == 1
        # Another card is in sight, and the page has not taken note of that yet.
        page.evaluate(
            """() => {
              scrollTo({ top: scrollY + document.querySelector("article[data-vod='4']").getBoundingClientRect().top,
                         behavior: "instant" });
              document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "1", bubbles: true }));
            }"""
        )
        expect(page.locator("#count")).to_contain_text("已选 0")
        page.wait_for_function(IN_SIGHT)
        # The next key finds it in its place.
        at = current(page)
        press(page, "1")
        expect(page.locator("#count")).to_contain_text("等待执行 1")
        assert [row["vod_id"] for row in decisions(stock)] == [at]


def test_what_the_sites_lock_refuses_is_decided_again(page: Page, library: Library):
    stock = stocked(library, films(6))
    stock.execute("UPDATE mac_vod SET vod_lock = 1 WHERE vod_id = 1")
    with served(stock) as (service, _):
        open_page(page, service)
        press(page, "1")
        # The page does not go on from what will be refused, and says which key means it nevertheless.
        assert current(page) == 1
        expect(card(page, 1).locator(".warnings")).to_contain_text("请按 w")
        expect(card(page, 1)).to_contain_text("被拒")
        expect(card(page, 1).locator(".sentence")).to_contain_text("vod_lock")
        assert current(page) == 1
        press(page, "w")
        assert current(page) == 2  # nothing more is to be pressed for it
        expect(page.locator("#count")).to_contain_text("等待执行 1")
        [refused, row] = decisions(stock)
        assert (refused["state"], row["state"], row["override_cms_lock"]) == ("refused", "pending", True)


def test_a_lock_that_came_after_the_card_was_read_is_overridden_all_the_same(page: Page, library: Library):
    stock = stocked(library, films(6))
    with served(stock) as (service, _):
        open_page(page, service)
        stock.execute("UPDATE mac_vod SET vod_lock = 1 WHERE vod_id = 1")
        press(page, "1")
        expect(card(page, 1)).to_contain_text("被拒")
        expect(card(page, 1)).to_contain_text("CMS 已锁定")
        assert current(page) == 2
        press(page, "k")
        page.wait_for_function(IN_SIGHT)
        press(page, "w")
        expect(page.locator("#count")).to_contain_text("等待执行 1")
        assert [(row["vod_id"], row["state"]) for row in decisions(stock)] == [(1, "refused"), (1, "pending")]
