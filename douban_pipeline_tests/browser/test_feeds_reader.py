"""The reader in a browser: what a person reads, marks by key and by click, with JavaScript and without."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from douban_pipeline_tests.feeds.reading_stage import Shelf, an_entry, served, shelf
from douban_pipeline_tests.feeds.stage import START

pytestmark = pytest.mark.browser

HOSTILE = (
    "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script><style>body{display:none}</style>"
    "<svg onload=\"document.title='run'\"></svg><p>正文</p>"
)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Shelf]:
    with shelf(tmp_path) as opened:
        yield opened


@pytest.fixture
def base(at: Shelf) -> Iterator[str]:
    with served(at.services) as address:
        yield address


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("DOUBAN_TEST_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_a_person_reads_and_marks_by_keys(page: Page, at: Shelf, base: str) -> None:
    news = at.source("新闻", "每天")
    ids = at.publish(news, *(an_entry(f"n{number}", START - number, link="", content=HOSTILE) for number in range(3)))
    page.goto(f"{base}/feeds/")
    cards = page.locator("article.entry")
    expect(cards).to_have_count(3)
    expect(page.locator("nav b")).to_have_text(["3"])
    picture(page, "feeds-list")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("article.current h3")).to_have_text("标题 n1")
    with page.expect_response(lambda answer: answer.url.endswith("/mark")):
        page.keyboard.press("m")
    assert at.marks()[ids[1]] == (False, False)
    page.keyboard.press("k")
    with page.expect_response(lambda answer: answer.url.endswith("/mark")):  # opening is reading
        page.keyboard.press("o")
    expect(page.locator(".content")).to_contain_text("正文")
    expect(page.get_by_role("button", name="标为未读")).to_be_visible()
    assert page.title().strip() == "标题 n0"
    assert at.marks()[ids[0]] == (False, False)
    picture(page, "feeds-entry")
    page.keyboard.press("u")
    expect(cards).to_have_count(1)
    page.get_by_role("button", name="全部标为已读").click()
    expect(page.get_by_text("没有未读的条目")).to_be_visible()


def test_a_mark_that_was_not_stored_is_not_shown(page: Page, at: Shelf, base: str) -> None:
    at.publish(at.source("新闻"), an_entry("a", START))
    page.goto(f"{base}/feeds/")
    page.route("**/mark", lambda route: route.abort())
    button = page.get_by_role("button", name="标为已读", exact=True)
    button.click()
    expect(page.locator("article.unread")).to_have_count(1)
    expect(button).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_read_on_a_phone_without_javascript(browser: Browser, at: Shelf, base: str, scheme: str) -> None:
    words = "长" * 300
    news = at.source("新闻" + "长" * 60, "每天")
    [key] = at.publish(
        news, an_entry("a", START, title=words, content=f"<p>正文{words}</p><pre>{'x' * 500}</pre>", summary=words)
    )
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, java_script_enabled=False, color_scheme=scheme, locale="zh-CN"
    )
    page = context.new_page()
    for path in ("", f"entries/{key}", "sources"):
        page.goto(f"{base}/feeds/{path}")
        box = page.locator("body").bounding_box()
        assert box is not None
        assert box["width"] <= 390
    page.goto(f"{base}/feeds/")
    page.locator("article h3 a").click()
    expect(page.locator(".content")).to_contain_text("正文")
    page.get_by_role("button", name="标为已读").click()
    expect(page.get_by_role("button", name="标为未读")).to_be_visible()
    assert at.marks()[key] == (False, False)
    context.close()
