"""The served sheet in a browser: choices are sent by themselves, nothing is lost, and nobody does another's work."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, Page, expect

from douban_pipeline.douban.review.served.batches import Batches
from douban_pipeline.douban.review.served.dagster_api import DagsterApi
from douban_pipeline_tests.browser.served import IN_SIGHT, decisions, films, open_page, served, shown
from douban_pipeline_tests.browser.sheets import library, press, stocked
from douban_pipeline_tests.douban.review.shelves import Case
from douban_pipeline_tests.harness.fixtures.library import Library

__all__ = ["library"]

pytestmark = pytest.mark.browser

MANY = 60


def test_many_are_reviewed_by_a_key_each(page: Page, library: Library):
    stock = stocked(library, films(MANY))
    with served(stock) as (service, _):
        open_page(page, service)
        for _ in range(MANY):
            expect(page.locator("article.current [data-pick=c1]")).to_be_visible()
            # A key does not change a card that is scrolled away; it shows it.
            page.wait_for_function(IN_SIGHT)
            press(page, "1")
        expect(page.locator("#empty")).to_have_text("没有待审核的影片。")
        expect(page.locator("#count")).to_contain_text("等待执行 60", timeout=60_000)
        found = decisions(stock)
        assert sorted(row["vod_id"] for row in found) == list(range(1, MANY + 1))
        assert {row["reviewer"] for row in found} == {"小王"}


def test_nothing_is_said_of_the_queue_before_it_is_known(page: Page, library: Library):
    stock = stocked(library, films(2))
    with served(stock) as (service, _):
        page.route("**/review/open", lambda route: route.abort())
        page.route("**/review/queue?*", lambda route: route.abort())
        page.goto(service.url)
        expect(page.locator("#trouble")).to_contain_text("队列此刻无法读取")
        expect(page.locator("#empty")).to_have_text("正在读取…")


def test_two_reviewers_never_see_the_same_card(page: Page, browser: Browser, library: Library):
    stock = stocked(library, films(60))
    with served(stock) as (service, _):
        open_page(page, service)
        other = browser.new_context().new_page()
        open_page(other, service, "小李")
        for _ in range(10):
            assert not shown(page) & shown(other)
            for each in (page, other):
                expect(each.locator("article.current [data-pick=c1]")).to_be_visible()
                press(each, "1")
        for each in (page, other):
            expect(each.locator("#count")).to_contain_text("等待执行 10")
        by = {row["vod_id"]: row["reviewer"] for row in decisions(stock)}
        assert sorted(by.values()) == ["小李"] * 10 + ["小王"] * 10
        other.context.close()


def test_who_holds_all_that_waits_is_said(page: Page, browser: Browser, library: Library):
    stock = stocked(library, films(3))
    with served(stock) as (service, _):
        other = browser.new_context(locale="zh-CN").new_page()
        open_page(other, service, "小李")
        page.goto(service.url)
        expect(page.locator("#empty")).to_contain_text("3 部正由")
        expect(page.locator("#empty")).to_contain_text("小李")
        other.goto("about:blank")  # it gives them back as it goes
        expect(page.locator("article.current")).to_be_visible(timeout=20_000)
        other.context.close()


def test_who_has_no_cards_gets_half_of_what_another_has_not_come_to(page: Page, browser: Browser, library: Library):
    stock = stocked(library, films(5))
    with served(stock) as (service, _):
        other = browser.new_context(locale="zh-CN").new_page()
        open_page(other, service, "小李")
        expect(other.locator("article")).to_have_count(5)
        page.goto(service.url)
        expect(page.locator("#empty")).to_contain_text("5 部正由")
        page.get_by_label("审核员").first.fill("小王")
        page.get_by_role("button", name="请求接手").click()
        expect(other.locator("#trouble")).to_have_text("小王 请求接手：已交出 2 部还没看到的影片")
        expect(page.locator("article")).to_have_count(2)
        assert shown(page) == {4, 5}
        assert shown(other) == {1, 2, 3}, "what was handed over is not claimed again"
        other.context.close()


def test_a_card_is_found_from_a_list_and_leads_back_to_its_row(page: Page, browser: Browser, library: Library):
    stock = stocked(library, films(80))
    with served(stock) as (service, _):
        page.goto(f"{service.url}#77")  # beyond the first lines
        current = page.locator("article.current")
        expect(current).to_have_attribute("data-vod", "77")
        expect(current.get_by_role("link", name="影片 77")).to_have_attribute("href", "../lists/review?q=77")
        other = browser.new_context(locale="zh-CN").new_page()
        other.goto(f"{service.url}#77")
        expect(other.locator("#trouble")).to_have_text("影片 77 已不在待审核之列，或正由他人审核")
        other.context.close()


def test_who_is_away_hands_over_all(page: Page, browser: Browser, library: Library):
    stock = stocked(library, films(3))
    with served(stock) as (service, _):
        other = browser.new_context(locale="zh-CN").new_page()
        other.clock.install()
        open_page(other, service, "小李")
        expect(other.locator("article")).to_have_count(3)
        other.clock.fast_forward("06:00")
        page.goto(service.url)
        page.get_by_role("button", name="请求接手").click()
        expect(page.locator("article")).to_have_count(3)
        expect(other.locator("#trouble")).to_contain_text("已交出 3 部（这里 5 分钟没有操作）")
        other.context.close()


def test_nothing_is_lost_when_the_service_is_killed(page: Page, library: Library):
    stock = stocked(library, films(12))
    with served(stock) as (service, batches):
        open_page(page, service)
        press(page, "111")
        # Recorded, but the page never hears of it: the same batch is sent again, and recorded once.
        batches.lose = True
        expect(page.locator("#trouble")).to_contain_text("选择保存在此浏览器中")
        expect(page.locator("#count")).to_contain_text("等待执行 3")
        service.kill()
        press(page, "11")
        expect(page.locator("#trouble")).to_contain_text("服务没有应答")
        service.start()
        page.reload()
        expect(page.locator("article.current")).to_be_visible()
        page.get_by_role("button", name="最近选择").click()
        expect(page.locator("#recent-list li").filter(has_text="已记录")).to_have_count(5)
        assert len(decisions(stock)) == 5


def test_what_becomes_of_a_choice_is_said_on_its_card(page: Page, library: Library):
    stock = stocked(library, films(6))
    stock.set_state(3, vod_douban_id=90_000_001, douban_review_status="CONFIRMED")
    stock.execute("UPDATE mac_vod SET vod_douban_id = 90000001 WHERE vod_id = 3")
    with served(stock) as (service, _):
        open_page(page, service)
        first = page.locator("article[data-vod='1']")
        press(page, "1")
        # It belongs to another video already: refused with the sentence, and still to be decided.
        expect(first).to_contain_text("被拒")
        expect(first.locator(".sentence")).to_contain_text("已关联到影片 3")
        first.get_by_role("button", name="同一作品，接受重复").click()
        page.get_by_label("隐藏已处理的").uncheck()
        expect(first).to_contain_text("已记录，等待执行")
        decision = stock.tables.decision
        stock.execute(
            sa.update(decision).where(decision.c.state == "pending").values(state="applied", pending_key=None)
        )
        expect(first).to_contain_text("已执行")
        # What others decide disappears.
        taken = page.locator("article[data-vod='2']")
        expect(taken).to_be_visible()
        other = {"vod_id": 2, "shard": 2, "action": "rematch", "reviewer": "小李", "state": "pending", "run_id": "r"}
        stock.insert(decision, [{**other, "created_at": stock.clock.now()}])
        expect(taken).to_have_count(0)


def test_a_conflict_is_accepted_by_the_same_key_with_shift(page: Page, library: Library):
    stock = stocked(library, films(6))
    stock.set_state(6, vod_douban_id=90_000_001, douban_review_status="CONFIRMED")
    stock.execute("UPDATE mac_vod SET vod_douban_id = 90000001 WHERE vod_id = 6")
    with served(stock) as (service, _):
        open_page(page, service)
        # Another video has it: the page does not go on from what would be refused, and says what is meant nevertheless.
        press(page, "1")
        expect(page.locator("article.current")).to_have_attribute("data-vod", "1")
        expect(page.locator("article.current .warnings")).to_contain_text("已关联影片 6")
        press(page, "1")
        page.keyboard.press("Shift+Digit1")
        expect(page.locator("article.current")).to_have_attribute("data-vod", "2")
        expect(page.locator("#count")).to_contain_text("等待执行 1")
        [row] = decisions(stock)
        assert (row["vod_id"], row["action"], row["accept_conflicts"]) == (1, "choose", True)


def test_a_choice_that_was_recorded_is_taken_back(page: Page, library: Library):
    stock = stocked(library, films(6))
    with served(stock) as (service, _):
        open_page(page, service)
        press(page, "1")
        expect(page.locator("#count")).to_contain_text("等待执行 1")
        page.get_by_role("button", name="最近选择").click()
        page.locator("#recent-list").get_by_role("button", name="撤销").click()
        expect(page.locator("#recent-list")).to_contain_text("已撤销")
        page.keyboard.press("Escape")
        expect(page.locator("article[data-vod='1']")).to_be_visible()
        [row] = decisions(stock)
        assert (row["state"], "小王" in row["state_reason"]) == ("refused", True)


def test_a_choice_takes_effect_and_is_undone_while_the_reviewer_looks(page: Page, library: Library):
    stock = stocked(library, films(6))
    with served(stock, Batches(stock.services, DagsterApi("http://127.0.0.1:9/graphql"))) as (service, _):
        open_page(page, service)
        page.get_by_label("隐藏已处理的").uncheck()
        press(page, "1")
        expect(page.locator("article[data-vod='1']")).to_contain_text("已执行")
        assert stock.row(1)["vod_douban_id"] == 90_000_001
        page.get_by_role("button", name="最近选择").click()
        page.locator("#recent-list").get_by_role("button", name="撤销").click()
        expect(page.locator("#recent-list")).to_contain_text("已撤销")
        assert stock.row(1)["vod_douban_id"] == 0
        assert [row["state"] for row in decisions(stock)] == ["reverted"]


def test_all_that_is_listed_is_decided_at_once_after_a_preview(page: Page, library: Library):
    cases = [*films(8), Case(9, {"vod_name": "别的"}, verdict=None)]
    stock = stocked(library, cases)
    stock.execute("UPDATE mac_vod SET vod_lock = 1 WHERE vod_id = 8")
    with served(stock) as (service, _):
        open_page(page, service)
        page.get_by_label("查找").fill("号片子")
        page.locator("h1").click()
        expect(page.locator("#found")).to_have_text("符合条件 8 部")
        press(page, "b")
        page.locator("#bulk-action").select_option(label="选首选候选")
        expect(page.locator("#bulk-told")).to_have_text(
            "列出的 8 部中，7 部适用，1 部跳过，其中 1 部因 CMS 锁定留待单独选择"
        )
        expect(page.locator("#bulk-list li").first).to_contain_text("1号片子 → 候选 1《条目1》")
        page.get_by_role("button", name="应用到 7 部").click()
        expect(page.locator("#count")).to_contain_text("等待执行 7")
        assert sorted(row["vod_id"] for row in decisions(stock)) == list(range(1, 8))
