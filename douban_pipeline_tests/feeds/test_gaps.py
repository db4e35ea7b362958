"""Sources that publish more than one answer shows: they are read on, and what remains unread is stored and told of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest

from douban_pipeline.core.database import reading
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer
from douban_pipeline.demo.stand_ins.feed_server import SourceStandIn
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn
from douban_pipeline.feeds import guards
from douban_pipeline.feeds.alerts import causes
from douban_pipeline.feeds.clients import further_pages
from douban_pipeline.feeds.reading.sources import sources_page
from douban_pipeline.feeds.reports import page
from douban_pipeline.feeds.store.entries import counts
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START, Stage, hourly, stage

ZONE = ZoneInfo("Asia/Shanghai")
PAGE = 100


@dataclass
class BusySite(LoopbackStandIn):
    """A resource site: the latest changes first, a hundred a page."""

    videos: list[dict[str, Any]] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)
    repeats: bool = False
    wait: Callable[[], None] = lambda: None

    def publish(self, count: int, at: float) -> None:
        """Add videos that changed at a moment."""
        for _ in range(count):
            number = len(self.videos) + 1
            when = f"{datetime.fromtimestamp(at, ZONE):%Y-%m-%d %H:%M:%S}"
            row = {"vod_id": number, "vod_name": f"剧 {number}", "vod_time": when, "vod_remarks": "更新至01集"}
            self.videos.insert(0, row)

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        number = int(parse_qs(urlsplit(target).query)["pg"][0])
        self.asked.append(number)
        self.wait()
        if number in self.failing:
            return HttpAnswer(500, b"oops")
        start = 0 if self.repeats else (number - 1) * PAGE
        found = {"code": 1, "page": number, "pagecount": -(-len(self.videos) // PAGE), "total": len(self.videos)}
        return json_answer({**found, "list": self.videos[start : start + PAGE]})


@contextmanager
def busy(home: Path, **settings: Any) -> Iterator[tuple[Stage, BusySite, str]]:
    """Yield a stage, a resource site with thirty videos that was polled once, and its id."""
    with stage(home, {}, **settings) as at, BusySite() as site:
        site.publish(30, START - HOUR)
        request = SourceRequest("maccms", f"{site.base}/api.php/provide/vod/", "忙站")
        [source] = follow(at.services, [request], dry_run=False).added
        at.make_due()
        assert at.poll().new == 30
        yield at, site, source.source_id


def again(at: Stage) -> Any:
    at.clock.at += HOUR
    at.make_due()
    return at.poll()


def listed(at: Stage) -> str:
    return sources_page(at.services, words="", state="", folder=None, after="")


def told(at: Stage) -> list[str]:
    with reading(at.services.engine) as connection:
        shown = [each.sentence for each in causes(at.services, connection)]
        assert [each.what for each in guards.left_unread(at.services, connection)] == [
            sentence.partition("：")[2] for sentence in shown
        ]
    for sentence in shown:
        what = sentence.partition("：")[2]
        assert page.page(page.look(at.services), at.services).count(what) == 1
        assert listed(at).count(what) == 1
    return shown


def test_a_busy_site_is_read_on_until_what_is_known(tmp_path: Path) -> None:
    with busy(tmp_path) as (at, site, source):
        site.publish(384, START)
        site.asked.clear()
        report = again(at)
        assert (report.new, report.handed_over, report.gaps) == (384, 384, 0)
        assert site.asked == [1, 2, 3, 4]
        assert len(at.entries(source)) == 414
        assert told(at) == []
        # As long as the first page shows where the known begins, it is all that is asked for.
        site.publish(5, START + HOUR)
        assert (again(at).new, site.asked[4:]) == (5, [1])
        with reading(at.services.engine) as connection:
            assert counts(connection, at.services.now())["videos_waiting"] == 419


def test_what_is_left_is_stored_told_of_and_read_by_the_next_polls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(further_pages, "MOST_PAGES", 3)
    with busy(tmp_path) as (at, site, source):
        site.publish(750, START)
        assert (again(at).new, len(at.entries(source))) == (300, 330)
        [sentence] = told(at)
        assert "忙站" in sentence
        assert "一次抓取最多读的页数读完了，全是新的；下次抓取从第 4 页接着读" in sentence
        # New ones in front of it move it on, and are not lost either.
        site.publish(20, at.clock.at)
        again(at)
        assert len(told(at)) == 1
        while told(at):
            again(at)
        assert len(site.asked) <= 1 + 6 * 3
        assert len(at.entries(source)) == 800
        assert at.source(source)["gap"] is None


def test_a_page_that_fails_is_read_by_the_next_poll_though_the_first_is_unchanged(tmp_path: Path) -> None:
    with busy(tmp_path) as (at, site, source):
        site.publish(250, START)
        site.failing = {2}
        assert again(at).new == 100
        [sentence] = told(at)
        assert "下一页没有读到" in sentence
        site.failing = set()
        assert (again(at).new, told(at)) == (150, [])
        assert len(at.entries(source)) == 280


def test_a_site_that_cannot_be_paged_is_told_of_for_a_week(tmp_path: Path) -> None:
    with busy(tmp_path) as (at, site, _):
        site.publish(250, START)
        site.repeats = True
        again(at)
        [sentence] = told(at)
        assert "翻不了页" in sentence
        at.clock.at += 8 * DAY
        again(at)
        assert told(at) == []


def test_what_a_site_had_before_it_was_followed_is_not_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(further_pages, "MOST_PAGES", 2)
    with stage(tmp_path, {}) as at, BusySite() as site:
        site.publish(500, START - HOUR)
        follow(at.services, [SourceRequest("maccms", f"{site.base}/vod")], dry_run=False)
        at.make_due()
        assert (at.poll().new, told(at)) == (200, [])


def test_no_page_is_read_after_the_lease(tmp_path: Path) -> None:
    with busy(tmp_path, request_timeout_seconds=4.0) as (at, site, _):
        site.publish(250, START)
        site.wait = lambda: at.clock.sleep(30)
        assert again(at).new == 200
        assert "时间用完了" in told(at)[0]


def test_a_feed_with_more_than_one_poll_reads_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("douban_pipeline.feeds.services.MAX_ENTRIES", 10)
    with stage(tmp_path, {"news": SourceStandIn("rss", hourly(3))}) as at:
        [news] = at.follow("news")
        at.poll()
        at.server.channels["news"] = SourceStandIn("rss", [*hourly(3), *hourly(15, START + HOUR)])
        again(at)
        [sentence] = told(at)
        assert "超过 500 条" in sentence
        # An unchanged answer says nothing new; one that is read to its end leaves nothing.
        again(at)
        assert len(told(at)) == 1
        at.server.channels["news"] = SourceStandIn("rss", [*hourly(3), START + 2 * HOUR])
        again(at)
        assert (told(at), at.source(news)["gap"]) == ([], None)
