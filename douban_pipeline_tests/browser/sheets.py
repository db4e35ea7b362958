"""The review sheet under test: a library with something of everything that waits, and what is pressed and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
import sqlalchemy as sa
from playwright.sync_api import Locator, Page, expect

from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline_tests.browser.served import served
from douban_pipeline_tests.douban.review.shelves import Case, shelved
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.scenario import BlankLibraries

HOSTILE = "</script><img src=x onerror=alert(1)><b>\"'\u202eedoc`${1}"
STANDING, LOCKED = 90_000_999, 90_000_998

SIX = [
    Case(4, {"vod_name": "甲", "vod_hits": 90_000}),
    Case(5, {"vod_name": "乙", "vod_hits": 9_000, "vod_douban_id": STANDING}, {"vod_douban_id": STANDING}),
    Case(
        6,
        {"vod_name": "丙", "vod_hits": 900, "vod_douban_id": LOCKED},
        {"vod_douban_id": LOCKED, "douban_id_locked": True},
    ),
    Case(7, {"vod_name": "丁", "vod_hits": 90}, verdict={"fingerprint": "x" * 32}),
    Case(8, {"vod_name": "戊", "vod_hits": 9, "vod_time": 1}, verdict=None),
    Case(9, {"vod_name": HOSTILE, "vod_hits": 0, "vod_time": 1}, verdict={"score": 10.0}, candidate={"title": HOSTILE}),
]


def others_of(vod_id: int) -> list[int]:
    """Return the subjects of a video's second to fifth candidate."""
    return [91_000_000 + 10 * vod_id + rank for rank in range(2, 6)]


@pytest.fixture
def library(blank_libraries: BlankLibraries) -> Iterator[Library]:
    """An empty library."""
    with blank_libraries.blank(0, {"ui_url": "http://127.0.0.1:9"}) as empty:
        yield empty


def stocked(empty: Library, cases: Sequence[Case]) -> Library:
    """Return a library in which these wait, each that was judged with five candidates."""
    library = shelved(empty, cases)
    library.options = empty.options
    table = library.tables.candidate
    firsts = library.query(sa.select(table))
    more = [
        {**{name: value for name, value in first.items() if name != "candidate_id"}, "rank": rank, "douban_id": other}
        for first in firsts
        for rank, other in enumerate(others_of(first["vod_id"]), start=2)
    ]
    if more:
        library.insert(table, more)
    return library


@pytest.fixture
def open_sheet(page: Page) -> Iterator[Callable[[Library], dict[int, int]]]:
    """Opens the sheet of what waits, signed by nobody, so that choices stay in the browser.

    It returns the verdicts that the sheet shows, by video.
    """
    with ExitStack() as stack:

        def opened(library: Library) -> dict[int, int]:
            service, _ = stack.enter_context(served(library))
            page.goto(service.url)
            shown = page.locator("article.current").or_(page.get_by_text("没有待审核的影片。"))
            expect(shown).to_be_visible()
            steady(page)
            queue = review_queue_of(library.services, most=200)
            return {entry.vod_id: entry.verdict_id for entry in queue.first}

        yield opened


def steady(page: Page) -> None:
    """Have the sheet stay with a card after a choice, so that more can be pressed for it."""
    page.locator("#tools").evaluate("tools => tools.open = true")
    page.get_by_label("选择后自动到下一部").uncheck()
    page.get_by_label("隐藏已处理的").uncheck()
    page.locator("h1").click()


@pytest.fixture
def verdicts(library: Library, open_sheet: Callable[[Library], dict[int, int]]) -> dict[int, int]:
    """The sheet of `SIX`, open."""
    return open_sheet(stocked(library, SIX))


def card(page: Page, vod_id: int) -> Locator:
    """Return a video's card."""
    return page.locator(f"article[data-vod='{vod_id}']")


def current(page: Page) -> int:
    """Return the video that the keyboard speaks to."""
    return int(page.locator("article.current").get_attribute("data-vod") or 0)


def press(page: Page, keys: str) -> None:
    """Press keys one after another."""
    for key in keys:
        page.keyboard.press(key)


def go_to(page: Page, vod_id: int) -> None:
    """Walk to a video by keyboard."""
    press(page, "k" * len(SIX))
    for _ in SIX:
        if current(page) == vod_id:
            return
        press(page, "j")
    raise AssertionError(f"{vod_id} is not on the sheet")


def chosen(page: Page) -> list[dict[str, Any]]:
    """Return the decisions that wait in the browser to be sent, each without the id that its card showed."""
    found = page.evaluate(
        """() => Object.keys(localStorage).filter((name) => name.includes(":outbox:"))
                   .flatMap((name) => Object.values(JSON.parse(localStorage.getItem(name)).entries))
                   .flatMap((entry) => entry.decisions)"""
    )
    return [{name: value for name, value in row.items() if name != "seen_id"} for row in found]
