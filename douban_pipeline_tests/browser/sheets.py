"""The review sheet under test: a library with something of everything that waits, and what is pressed and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import sqlalchemy as sa
import yaml
from playwright.sync_api import Locator, Page, expect

from douban_pipeline.core.ui.launchpad_links import MOST_CHARACTERS, job_path
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.review.jobs import record_decisions
from douban_pipeline.douban.review.worklist.page import sheet_page
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline.douban.review.worklist.sheet import sheet_of
from douban_pipeline_tests.douban.review.shelves import Case, shelved
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.locations import fits_schema
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


def open_sheet(page: Page, library: Library, folder: Path, most: int = 200) -> dict[int, int]:
    """Open the sheet of what waits; return the verdicts that it shows, by video."""
    queue = review_queue_of(library.services, most=most)
    path = folder / "review_queue.html"
    path.write_bytes(sheet_page(sheet_of(library.services, queue)))
    page.goto(path.as_uri())
    steady(page)
    return {entry.vod_id: entry.verdict_id for entry in queue.first}


def steady(page: Page) -> None:
    """Have the sheet stay with a card after a choice, so that more can be pressed for it."""
    page.locator("#tools").evaluate("tools => tools.open = true")
    page.get_by_label("选择后自动到下一部").uncheck()
    page.locator("h1").click()


@pytest.fixture
def verdicts(page: Page, library: Library, tmp_path: Path) -> dict[int, int]:
    """The sheet of `SIX`, open."""
    return open_sheet(page, stocked(library, SIX), tmp_path)


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


def config_of(page: Page) -> dict[str, Any]:
    """Have the config made, and return it; Dagster takes it, and the links hold the same."""
    page.keyboard.press("g")
    text = page.get_by_label("record_decisions 的配置").input_value()
    addresses = [str(link.get_attribute("href")) for link in page.locator("#links a").all()]
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    config = yaml.safe_load(text)
    assert fits_schema(record_decisions, config)
    found = config["ops"]["store_decisions"]["config"]
    parts = [part_of(address) for address in addresses]
    assert [row for part in parts for row in part.pop("decisions")] == found["decisions"]
    assert all(part == {name: found[name] for name in ("reviewer", "note", "dry_run")} for part in parts)
    return dict(found)


def part_of(address: str) -> dict[str, Any]:
    """Return the config of a link, which Dagster takes."""
    assert len(address) <= MOST_CHARACTERS
    base, _, config = address.partition("?config=")
    assert base == f"http://127.0.0.1:9{job_path('record_decisions', LOCATION)}/setup"
    loaded = yaml.safe_load(unquote(config))
    assert fits_schema(record_decisions, loaded)
    return dict(loaded["ops"]["store_decisions"]["config"])
