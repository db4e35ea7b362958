"""A Chromium that reaches nothing but this machine, for the tests of what people click.

A browser a module, and in it a context a test, which shares nothing with others: Playwright, which marks its event loop
as this thread's, is gone when the tests of another module want one of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from douban_pipeline_tests.browser.dagster_ui import DagsterUi, run_dev
from douban_pipeline_tests.conftest import missing
from douban_pipeline_tests.harness.benchmarks import browsing

ELSEWHERE = re.compile(r"(?!(https?|wss?)://(127\.0\.0\.1|localhost|\[::1\])[:/])(https?|wss?)://")
"""Addresses of other machines."""

WAIT_SECONDS = 40
"""The longest that a page takes to show what it was asked for, on a busy machine."""

MOST_SHOWN = 4_000


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of an installed Chromium."""
    found = browsing.chromium()
    if found is None:
        named = os.environ.get(browsing.VARIABLE) or "Chromium"
        missing("browser", f"no {named}: install the package chromium, or name one with {browsing.VARIABLE}")
    return found


@pytest.fixture
def asked_elsewhere() -> list[str]:
    """What pages of the test asked of other machines, and did not get."""
    return []


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A Chromium without any page."""
    with browsing.browser(chromium) as started:
        yield started


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest, asked_elsewhere: list[str]) -> Iterator[Page]:
    """An empty page in a context of its own; the test fails if a page asks for anything of another machine."""

    def refuse(route: Route) -> None:
        asked_elsewhere.append(route.request.url)
        route.abort()

    expect.set_options(timeout=WAIT_SECONDS * 1000)
    context = browser.new_context(
        viewport={"width": 1440, "height": 900},
        locale="zh-CN",
        timezone_id="Asia/Shanghai",
        service_workers="block",
    )
    context.set_default_timeout(WAIT_SECONDS * 1000)
    context.route(ELSEWHERE, refuse)
    yield context.new_page()
    if request.node.stash.get(FAILED, False):
        for shown in context.pages:
            print(f"{shown.url}\n{shown.locator('body').inner_text()[:MOST_SHOWN]}\n")  # noqa: T201 (pytest shows it)
    context.close()
    assert not asked_elsewhere, f"pages asked other machines for {asked_elsewhere}"


@pytest.fixture
def dev_ui(chromium: str, tmp_path: Path) -> Iterator[DagsterUi]:
    """`make dev SYSTEMS=douban` on a demo library of its own, for one test: its sensors launch runs while it lives.

    Not started where there is no Chromium to look at it.
    """
    with run_dev(tmp_path, "douban") as ui:
        yield ui


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note that a test failed, so that its page is told."""
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report
