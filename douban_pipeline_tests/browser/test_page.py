"""The page that the other tests use shows files and loopback, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from douban_pipeline.demo.sample import load_subjects
from douban_pipeline_tests.browser.conftest import ELSEWHERE
from douban_pipeline_tests.stand_ins.replay import ReplayServer

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("address", "elsewhere"),
    [
        ("http://127.0.0.1:3000/graphql", False),
        ("ws://localhost:3000/graphql", False),
        ("http://[::1]/", False),
        ("file:///tmp/sheet.html", False),
        ("data:image/png;base64,", False),
        ("https://movie.douban.com/subject/1292052/", True),
        ("http://localhost.example.org/", True),
        ("http://127.0.0.1.example.org/", True),
        ("wss://example.org/", True),
    ],
)
def test_what_is_another_machine(address: str, elsewhere: bool):
    assert bool(ELSEWHERE.match(address)) is elsewhere


def test_a_file_is_shown(page: Page, tmp_path: Path):
    sheet = tmp_path / "sheet.html"
    sheet.write_text("<meta charset=utf-8><h1>霸王别姬</h1>", encoding="utf-8")
    page.goto(sheet.as_uri())
    expect(page.get_by_role("heading", name="霸王别姬")).to_be_visible()


def test_loopback_answers(page: Page):
    with ReplayServer(load_subjects()) as upstream:
        answer = page.goto(f"{upstream.douban_url}?id=1292052")
    assert answer is not None
    assert answer.ok


def test_other_machines_are_not_reached_and_reported(page: Page, asked_elsewhere: list[str]):
    address = "https://img.example.org/p1.jpg"
    with page.expect_event("requestfailed"):
        page.set_content(f"<img src={address}>")
    assert asked_elsewhere == [address]
    asked_elsewhere.clear()
