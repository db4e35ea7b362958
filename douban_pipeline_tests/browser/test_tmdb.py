"""The pages `/tmdb/` in a browser: suggestions by keys, the drawing, and no finding of axe in two looks."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from douban_pipeline.tmdb.store.postgres import PostgresTmdbStore
from douban_pipeline_tests.browser.test_accessibility import axe, findings, pages
from douban_pipeline_tests.conftest import new_database
from douban_pipeline_tests.stand_ins.tmdb_server import TmdbServer
from douban_pipeline_tests.tmdb.given import actor, answer, cast, movie, title
from douban_pipeline_tests.tmdb.test_api import running

__all__ = ["axe", "pages"]

pytestmark = [pytest.mark.browser, pytest.mark.postgres]


def test_a_film_is_found_by_typing_and_its_people_are_drawn(pages: list[Page], axe: str, tmp_path: Path) -> None:
    with new_database("postgres") as url, PostgresTmdbStore(url) as store:
        store.upgrade()
        film = movie(1, cast(11, "a", name="李守灯"), title="灯塔守夜人", overview="守灯的一夜。")
        people = actor(11, title(1, "a"), name="李守灯")
        store.persist_payloads([answer("movie", film), answer("person", people)])
        with TmdbServer() as tmdb, running(tmp_path, tmdb, url=url) as client:
            for page in pages:
                page.goto(f"{client.base_url}/tmdb/")
                page.locator("#q").press_sequentially("灯塔")
                expect(page.locator("#found a")).to_have_count(1)
                assert findings(page, axe) == [], "suggestions"
                page.keyboard.press("ArrowDown")
                with page.expect_navigation():
                    page.keyboard.press("Enter")
                expect(page.locator("#graph canvas").first).to_be_visible()
                assert findings(page, axe) == [], "a film"
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                page.get_by_role("link", name="李守灯").click()
                expect(page.get_by_role("heading", name="李守灯")).to_be_visible()
                page.goto(f"{client.base_url}/tmdb/way?one=李守灯&other=无此人")
                assert findings(page, axe) == [], "a way"
