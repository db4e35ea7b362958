"""No page has a serious or critical finding of axe, on a desktop in the light and on a phone in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from douban_pipeline.digest.pages.html import render_analysis, render_daily
from douban_pipeline.douban.reports.lists.catalogue import LISTS, list_page
from douban_pipeline.douban.reports.lists.overview import front_page
from douban_pipeline_tests.browser.served import open_page, served
from douban_pipeline_tests.browser.sheets import SIX, library, stocked
from douban_pipeline_tests.comments.serving import ADMIN
from douban_pipeline_tests.comments.serving import served as served_comments
from douban_pipeline_tests.digest.pages.samples import analysis, day
from douban_pipeline_tests.feeds.reading_stage import an_entry, shelf
from douban_pipeline_tests.feeds.reading_stage import served as served_feeds
from douban_pipeline_tests.feeds.stage import START
from douban_pipeline_tests.harness.fixtures.library import Library

__all__ = ["library"]

pytestmark = pytest.mark.browser

LOOKS = (("light", 1440), ("dark", 390))


@pytest.fixture(scope="module")
def axe() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


@pytest.fixture
def pages(browser: Browser) -> Iterator[list[Page]]:
    """An empty page for each look."""
    contexts = [
        browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, locale="zh-CN")
        for scheme, width in LOOKS
    ]
    yield [context.new_page() for context in contexts]
    for context in contexts:
        context.close()


def findings(page: Page, axe: str) -> list[str]:
    """Return what axe finds serious or critical on a page."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in ("serious", "critical")
    ]


def test_a_finding_is_seen(page: Page, axe: str) -> None:
    page.set_content("<!DOCTYPE html><html lang=zh><title>t</title><main><img src=data:,><button></button></main>")
    assert [each.split(":")[0] for each in findings(page, axe)] == ["button-name", "image-alt"]


def test_pages_of_the_digest(pages: list[Page], axe: str, tmp_path: Path) -> None:
    zone = ZoneInfo("Asia/Shanghai")
    (tmp_path / "day.html").write_text(render_daily(day(), zone), "utf-8")
    (tmp_path / "failed.html").write_text(render_daily(day(failed=True, causes=["模型没有回答"]), zone), "utf-8")
    (tmp_path / "analysis.html").write_text(render_analysis(analysis(1, 10), zone), "utf-8")
    for page in pages:
        for path in sorted(tmp_path.glob("*.html")):
            page.goto(path.as_uri())
            assert findings(page, axe) == [], path.name


def test_front_page_and_lists(pages: list[Page], axe: str, library: Library) -> None:
    services = stocked(library, SIX).services
    shown = {"front": front_page(services, [])[0], **{name: list_page(services, name, {})[0] for name in LISTS}}
    for page in pages:
        for name, content in shown.items():
            page.set_content(content)
            assert findings(page, axe) == [], name


def test_served_pages(pages: list[Page], axe: str, library: Library) -> None:
    with served(stocked(library, SIX), token="a-token-of-the-service-0123") as (service, _):
        for page in pages:
            page.goto(service.url)
            assert findings(page, axe) == [], "the login"
            page.locator("input[name=token]").fill("a-token-of-the-service-0123")
            with page.expect_navigation():
                page.keyboard.press("Enter")
            open_page(page, service)
            assert findings(page, axe) == [], "the review sheet"
            page.keyboard.press("?")
            assert findings(page, axe) == [], "its keyboard"
            page.goto(f"{service.url}nowhere")
            assert findings(page, axe) == [], "an address without a page"


def test_pages_of_comments(pages: list[Page], axe: str, tmp_path: Path) -> None:
    with served_comments(tmp_path) as place:
        film = place.section(title="流浪地球")
        first = place.publish(2, film, "好看")
        place.publish(3, film, "不好看", parent=first)
        place.work()
        for page in pages:
            page.goto(f"{place.base}/demo?type=1&id={film}")
            expect(page.locator("#list > article")).to_have_count(1)
            assert findings(page, axe) == [], "comments"
            page.goto(f"{place.base}/comments/admin")
            assert findings(page, axe) == [], "login of moderators"
            page.locator("#token").fill(ADMIN)
            page.locator("#login .main").click()
            page.locator("label:has([name=status][value=''])").click()
            expect(page.locator("#list article")).to_have_count(2)
            page.keyboard.press("e")
            expect(page.locator(".detail:visible")).to_have_count(1)
            assert findings(page, axe) == [], "moderation"
            for view in ("rules", "trust", "words", "log"):
                page.locator(f"[data-view={view}]").click()
                assert findings(page, axe) == [], view


def test_pages_of_the_reader(pages: list[Page], axe: str, tmp_path: Path) -> None:
    with shelf(tmp_path) as at:
        [key] = at.publish(at.source("新闻", "每天"), an_entry("a", START, content="<p>正文</p>"))
        with served_feeds(at.services) as base:
            for page in pages:
                for path in ("", f"entries/{key}", "sources"):
                    page.goto(f"{base}/feeds/{path}")
                    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
                    assert findings(page, axe) == [], path
