"""The current card of the served sheet: it stays where it is whatever comes and goes, and no key changes another."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from douban_pipeline.douban.review.served.desk import LEAST_AGE
from douban_pipeline_tests.browser.served import IN_SIGHT, decisions, films, open_page, served, shown
from douban_pipeline_tests.browser.sheets import card, current, library, press, stocked
from douban_pipeline_tests.harness.fixtures.library import Library

__all__ = ["library"]

pytestmark = pytest.mark.browser

TOP = "() => document.querySelector('article.current').getBoundingClientRect().top"
"""Where the current card begins, in pixels below the upper edge."""

LOOKED = "**/review/live"


def expect_at(page: Page, top: float) -> None:
    """See that the current card begins where it did, as soon as the page was drawn again."""
    page.wait_for_function(f"top => Math.abs(({TOP})() - top) < 2", arg=top)


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
        expect_at(page, before)
        press(page, "1")
        expect(page.locator("#count")).to_contain_text("等待执行 1")
        assert [row["vod_id"] for row in decisions(stock) if row["state"] == "pending"] == [3]
        judge_anew(stock, 4, 92_000_004)
        stays_until_the_new_verdict_is_asked_for(page, stock)


def judge_anew(stock: Library, vod_id: int, first: int) -> None:
    """Have a video judged again with another best candidate, as the service then finds out."""
    verdict, candidate = stock.tables.verdict, stock.tables.candidate
    [judged] = stock.query(sa.select(verdict).where(verdict.c.vod_id == vod_id))
    stock.insert(verdict, [{**judged, "verdict_id": 777}])
    for row in stock.query(sa.select(candidate).where(candidate.c.vod_id == vod_id)):
        del row["candidate_id"]
        subject = first if row["rank"] == 1 else row["douban_id"]
        stock.insert(candidate, [{**row, "verdict_id": 777, "douban_id": subject}])
    stock.clock.advance(seconds=LEAST_AGE.total_seconds() + 1)


def stays_until_the_new_verdict_is_asked_for(page: Page, stock: Library) -> None:
    """See that 4, the current card, is not replaced, and what is chosen on the former verdict comes to nothing."""
    before, shown_card = page.evaluate(TOP), card(page, 4)
    notice = shown_card.locator(".renewal")
    expect(notice).to_contain_text("这部影片刚刚重新判定")
    expect_at(page, before)
    press(page, "12")
    assert current(page) == 4
    expect(shown_card.locator("th.candidate").first).to_contain_text("90000004")
    expect(shown_card.locator(".sentence")).to_contain_text("请按 v 查看新的判定，再选一次")
    press(page, "v")
    expect(shown_card.locator("th.candidate").first).to_contain_text("92000004")
    expect(notice).to_contain_text("之前选的「候选 2《条目4》91000042」没有提交")
    expect(page.locator("#said")).to_contain_text("之前选的「候选 2《条目4》91000042」没有提交")
    assert (current(page), page.evaluate(TOP)) == (4, pytest.approx(before, abs=2))
    # A step of the former verdict is no step back to a candidate of this one: what is taken back is 3.
    press(page, "u")
    expect(shown_card.locator("[aria-pressed=true]")).to_have_count(0)
    press(page, "1")
    expect(page.locator("#count")).to_contain_text("等待执行 1")
    expect(page.locator("#count")).to_contain_text("已选 1 / ")
    assert [(row["vod_id"], row["douban_id"]) for row in decisions(stock) if row["state"] == "pending"] == [
        (4, 92_000_004)
    ]


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


def test_what_the_sites_lock_refuses_is_not_sent_before_it_is_meant(page: Page, library: Library):
    stock = stocked(library, films(6))
    stock.execute("UPDATE mac_vod SET vod_lock = 1 WHERE vod_id = 1")
    with served(stock) as (service, _):
        open_page(page, service)
        press(page, "1")
        # The page does not go on from what would be refused, and says which key means it nevertheless.
        assert current(page) == 1
        warnings = card(page, 1).locator(".warnings")
        expect(warnings).to_contain_text("（vod_lock），不许改写它的豆瓣 ID，所以没有提交；确认要写入请按 w")
        # Others are sent meanwhile, and so is what needs no leave of the site.
        press(page, "j1")
        expect(page.locator("#count")).to_have_text("已选 1 / 6，等待执行 1，CMS 锁定而未提交 1")
        page.reload()
        expect(warnings).to_contain_text("所以没有提交")
        assert [row["vod_id"] for row in decisions(stock)] == [2]
        press(page, "kkw")
        assert current(page) == 3  # nothing more is to be pressed for it
        expect(page.locator("#count")).to_have_text("已选 1 / 5，等待执行 1")
        [_, row] = decisions(stock)
        assert (row["vod_id"], row["state"], row["override_cms_lock"]) == (1, "pending", True)
        # Taken back, it is what it was: chosen, and not sent.
        press(page, "u")
        expect(page.locator("#count")).to_have_text("已选 0 / 5，CMS 锁定而未提交 1")
        expect(card(page, 1).locator(".flag.state")).to_have_text("没有提交")
        assert [row["state"] for row in decisions(stock)] == ["pending", "refused"]


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


@pytest.mark.parametrize("taken_in", [False, True])
def test_an_id_that_the_owner_typed_meanwhile_is_not_overwritten_and_is_shown(
    page: Page, library: Library, taken_in: bool
):
    stock = stocked(library, films(6))
    with served(stock) as (service, _):
        open_page(page, service)
        stock.execute("UPDATE mac_vod SET vod_douban_id = 1291552 WHERE vod_id = 1")
        if taken_in:
            stock.set_state(1, vod_douban_id=1291552, douban_id_source="cms")
        press(page, "1")
        expect(card(page, 1)).to_contain_text("被拒")
        expect(card(page, 1)).to_contain_text("豆瓣 ID 已由 空 变为 1291552（有人在 CMS 中修改），请核对后重新决定")
        # Read again, it shows that id; chosen again it is meant.
        expect(card(page, 1).locator("table")).to_contain_text("1291552")
        assert [(row["vod_id"], row["state"]) for row in decisions(stock)] == [(1, "refused")]
        press(page, "k")
        page.wait_for_function(IN_SIGHT)
        press(page, "11")  # off and on
        expect(page.locator("#count")).to_contain_text("等待执行 1")
        assert [(row["vod_id"], row["state"]) for row in decisions(stock)] == [(1, "refused"), (1, "pending")]
