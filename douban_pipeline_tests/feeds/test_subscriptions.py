"""Which sources are followed, and at which address: over real HTTP, moved, twice the same, private, or none at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline.demo.stand_ins.feed_server import SourceStandIn
from douban_pipeline.feeds import subscriptions
from douban_pipeline.feeds.poller import Poller
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.subscriptions import SourceRequest
from douban_pipeline_tests.feeds.stage import channels, given_settings, hourly, stage


def test_other_options_are_applied_to_an_answer_that_did_not_change(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3)))) as at:
        [news] = at.follow("news")
        at.poll()
        at.follow("news", cadence="P4")
        at.poll()
        # What people change may need the whole answer: they do not get a 304 for it.
        assert [each.status for each in at.server.seen] == [200, 200]
        assert at.stats(news)["check_count"] == 2


def test_a_feed_that_moved_for_good_is_followed_there(tmp_path: Path) -> None:
    given = {"new": SourceStandIn("rss", hourly(3)), "old": SourceStandIn("rss", []), "twin": SourceStandIn("rss", [])}
    with stage(tmp_path, given) as at:
        target = at.server.url("new")
        given["old"] = SourceStandIn("rss", [], fault=f"moved {target}")
        given["twin"] = SourceStandIn("rss", [], fault=f"moved {target}")
        [old] = at.follow("old")
        at.poll()
        assert at.source(old)["url"] == target
        assert len(at.entries(old)) == 3
        [twin] = at.follow("twin")
        at.poll()
        assert at.source(twin)["state"] == "duplicate"
        assert at.poll().polled == 0


def test_private_addresses_are_refused_also_behind_redirects_and_names(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3)))) as at:
        [news] = at.follow("news")
        strict = open_services(given_settings(tmp_path, allow_private=False), at.clock)
        report = Poller(strict, seconds=60).run()
        assert report.problems == {"private address refused": 1}
        assert not at.server.seen
        assert at.stats(news)["error_kind"] == "private address refused"
        with pytest.raises(subscriptions.ProblemsError, match="内网"):
            subscriptions.follow(strict, [SourceRequest(url="http://[::1]/feed")], dry_run=True)
        strict.close()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.com/x", "https://", "http://u:p@a.com/", "x"])
def test_addresses_that_are_none_are_refused(tmp_path: Path, url: str) -> None:
    with stage(tmp_path, {}) as at, pytest.raises(subscriptions.ProblemsError):
        subscriptions.follow(at.services, [SourceRequest(url=url)], dry_run=True)


def test_two_sources_with_one_address_are_one(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(3)))) as at:
        url = at.server.url("news")
        report = subscriptions.follow(at.services, [SourceRequest(url=url), SourceRequest(url=url)], dry_run=False)
        assert len(report.added) == 1
        again = subscriptions.follow(at.services, [SourceRequest(url=url, cadence="P4")], dry_run=False)
        assert (len(again.added), len(again.edited)) == (0, 1)
        assert at.source(report.added[0].source_id)["manual_cadence"] == "P4"
