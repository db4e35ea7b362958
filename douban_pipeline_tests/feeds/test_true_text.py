"""Guids that never change, one story in several sources, and the gate of the host that a redirect leads to."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from douban_pipeline.demo.stand_ins.feed_server import FeedServer, SourceStandIn
from douban_pipeline.feeds.store.entries import canonical_link
from douban_pipeline.feeds.store.tables import gate
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline_tests.feeds.stage import START, Stage, channels, hourly, stage
from douban_pipeline_tests.feeds.test_adding import Site, site


def feed(*items: tuple[str, str, str, str]) -> bytes:
    """A feed of items: guid, link, title, time of day."""
    rows = "".join(
        f"<item><guid isPermaLink='false'>{guid}</guid><link>https://example.com/{link}</link><title>{title}</title>"
        f"<pubDate>Wed, 18 Nov 2026 {at} GMT</pubDate></item>"
        for guid, link, title, at in items
    )
    return f'<rss version="2.0"><channel><title>T</title>{rows}</channel></rss>'.encode()


def polled(on: Stage, there: Site, body: bytes) -> list[str]:
    """Poll the site's feed; return the titles that are stored then."""
    there.pages["/feed"] = body
    [added] = [
        each
        for found in [follow(on.services, [SourceRequest(url=f"{there.base}/feed")], dry_run=False)]
        for each in (*found.added, *found.known)
    ]
    on.make_due()
    on.poll()
    return [row["title"] for row in on.entries(added.source_id)]


def test_entries_that_all_have_one_guid_are_kept_apart(tmp_path: Path) -> None:
    first, second, third = (("same", str(each), f"title {each}", f"0{each}:00:00") for each in (1, 2, 3))
    with site(tmp_path, {}) as (on, there):
        assert polled(on, there, feed(second, first)) == ["title 2", "title 1"]
        assert polled(on, there, feed(third, second, first)) == ["title 2", "title 1", "title 3"]
        assert polled(on, there, feed(third)) == ["title 2", "title 1", "title 3"]


def test_a_source_of_one_entry_whose_guid_never_changes_keeps_what_it_published(tmp_path: Path) -> None:
    first, second = (("same", str(each), f"title {each}", f"0{each}:00:00") for each in (1, 2))
    with site(tmp_path, {}) as (on, there):
        assert polled(on, there, feed(first)) == ["title 1"]
        assert polled(on, there, feed(second)) == ["title 1", "title 2"]
        assert polled(on, there, feed(second) + b" ") == ["title 1", "title 2"]


def test_an_edited_entry_stays_one(tmp_path: Path) -> None:
    with site(tmp_path, {}) as (on, there):
        polled(on, there, feed(("a", "1", "title", "01:00:00")))
        assert polled(on, there, feed(("a", "1", "better title", "02:00:00"))) == ["better title"]
        assert polled(on, there, feed(("a", "moved", "better title", "03:00:00"))) == ["better title"]


@pytest.mark.parametrize(
    "link",
    [
        "http://example.com/a?id=1",
        "https://www.example.com/a/?id=1&utm_source=rss#top",
        "https://EXAMPLE.com:443/a?id=1&spm=a.b",
    ],
)
def test_addresses_of_one_page_are_one_story(link: str) -> None:
    assert canonical_link(link) == "https://example.com/a?id=1"


def test_other_pages_are_other_stories() -> None:
    links = ("https://example.com/a", "https://example.com/A", "https://example.com:81/a", "https://example.com/a?p=2")
    assert len({canonical_link(each) for each in links}) == 4
    assert canonical_link("https://example.com:x/") == "https://example.com:x/"


def test_one_story_in_two_sources_has_one_key(tmp_path: Path) -> None:
    with site(tmp_path, {}) as (on, there):
        there.pages |= {
            "/one": feed(("a", "1", "x", "01:00:00")),
            "/two": feed(("b", "1?utm_medium=x", "y", "01:00:00")),
        }
        found = follow(
            on.services, [SourceRequest(url=f"{there.base}/{each}") for each in ("one", "two")], dry_run=False
        )
        on.poll()
        stories = {on.entries(each.source_id)[0]["story_hash"] for each in found.added}
    assert len(stories) == 1


def test_a_redirect_passes_the_gate_of_its_target(tmp_path: Path) -> None:
    news = SourceStandIn("rss", hourly(2))
    with FeedServer(lambda: START, {"news": news}) as target:
        given = channels(away=SourceStandIn("rss", [], fault=f"elsewhere {target.url('news')}"))
        with stage(tmp_path, given, requests_per_minute=30) as on:
            on.follow("away")
            assert on.poll().new == 2
            host = target.base.removeprefix("http://")
            with on.services.engine.connect() as connection:
                granted = select(gate.c.granted).where(gate.c.source == host)
                assert connection.execute(granted).scalar_one() == 1
