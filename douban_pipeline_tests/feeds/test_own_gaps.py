"""What publishers ask for bounds how often they are polled: in the feed, in headers, within reason, and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.clients.own_gaps import OwnGap, gap_of_feed, gap_of_headers
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline_tests.feeds.stage import DAY, HOUR, START, stage
from douban_pipeline_tests.feeds.test_adding import Site

SY = 'xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"'


def feed(head: str) -> bytes:
    return (
        f'<rss version="2.0" {SY}><channel>{head}<item><guid>1</guid><title>x</title></item></channel></rss>'.encode()
    )


@pytest.mark.parametrize(
    ("head", "gap"),
    [
        ("<ttl>360</ttl>", OwnGap(6 * HOUR, "ttl")),
        ("<ttl>525600</ttl>", OwnGap(DAY, "ttl")),
        ("<ttl>-5</ttl>", OwnGap()),
        ("<ttl>soon</ttl>", OwnGap()),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>", OwnGap(6 * HOUR, "sy")),
        ("<sy:updatePeriod> hourly </sy:updatePeriod>", OwnGap(HOUR, "sy")),
        ("<sy:updateFrequency>2</sy:updateFrequency>", OwnGap(12 * HOUR, "sy")),
        ("<sy:updatePeriod>yearly</sy:updatePeriod>", OwnGap(DAY, "sy")),
        ("<sy:updatePeriod>often</sy:updatePeriod>", OwnGap()),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>0</sy:updateFrequency>", OwnGap()),
        ("", OwnGap()),
    ],
)
@pytest.mark.parametrize("profile", ["plan", "budget"])
def test_a_feed_is_not_polled_more_often_than_it_asks(tmp_path: Path, head: str, gap: OwnGap, profile: str) -> None:
    with Site({"/feed": feed(head)}) as there, stage(tmp_path, {}, profile=profile) as on:
        [added] = follow(on.services, [SourceRequest(url=f"{there.base}/feed", cadence="P0")], dry_run=False).added
        for _ in range(2):  # the second answer is the same, and is not read again
            on.make_due()
            on.poll()
            row = on.stats(added.source_id)
            assert row["next_due_at"] >= START + gap.seconds
        source = on.source(added.source_id)
    assert (source["own_gap"] or 0, source["own_gap_from"] or "") == gap
    if gap.seconds >= 6 * HOUR:
        assert f"{gap.seconds // HOUR} 小时" in wording.reason_text(row["why"], row)


@pytest.mark.parametrize(
    ("headers", "gap"),
    [
        ({"cache-control": "public, max-age=7200"}, OwnGap(7200, "max-age")),
        ({"cache-control": "max-age=99999999"}, OwnGap(DAY, "max-age")),
        ({"cache-control": "max-age=0", "expires": "Wed, 18 Nov 2026 14:00:00 GMT"}, OwnGap()),
        ({"cache-control": "no-cache, max-age=7200"}, OwnGap()),
        (
            {"expires": "Wed, 18 Nov 2026 14:00:00 GMT", "date": "Wed, 18 Nov 2026 12:00:00 GMT"},
            OwnGap(7200, "expires"),
        ),
        ({"expires": "0"}, OwnGap()),
        ({"expires": "Mon, 01 Jan 2001 00:00:00 GMT"}, OwnGap()),
        ({}, OwnGap()),
    ],
)
def test_an_answer_says_how_long_it_is_fresh(headers: dict[str, str], gap: OwnGap) -> None:
    assert gap_of_headers(headers, START) == gap


def test_the_longer_wish_counts(tmp_path: Path) -> None:
    class Cached(Site):
        def respond(self, *given: object) -> HttpAnswer | None:
            return HttpAnswer(200, feed("<ttl>60</ttl>"), "application/rss+xml", {"Cache-Control": "max-age=18000"})

    with Cached({}) as there, stage(tmp_path, {}) as on:
        [added] = follow(on.services, [SourceRequest(url=f"{there.base}/feed", cadence="P0")], dry_run=False).added
        on.poll()
        assert on.stats(added.source_id)["why"]["floor_from"] == "max-age"
        assert on.stats(added.source_id)["next_due_at"] == START + 5 * HOUR


def test_what_a_feed_does_not_say_is_no_wish() -> None:
    assert gap_of_feed({}) == OwnGap()
