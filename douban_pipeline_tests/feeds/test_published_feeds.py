"""Feeds as publishers write them: which entries are told apart, and when, where and in what letters they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.demo.stand_ins.feed_server import SourceStandIn
from douban_pipeline.feeds.clients.moments import written_time
from douban_pipeline.feeds.clients.syndication import parse_feed
from douban_pipeline.feeds.clients.values import moment_of
from douban_pipeline.feeds.reading.content import safe_html
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline_tests.feeds.stage import START, Site, Stage, stage

ZONE = ZoneInfo("Asia/Shanghai")
US_CENTRAL = timezone(timedelta(hours=-6))
XML = "text/xml"


def utc(written: str) -> str:
    """The moment that a text says, as in `2023-10-28T12:28:28Z`; none for no moment."""
    found = written_time(written)
    moment = None if found is None else found.moment(ZONE, US_CENTRAL)
    return "none" if moment is None else f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("Mon, May 25 2020 04:45:26 +0000", "2020-05-25T04:45:26Z"),
        ("Mon, 03 Dec 2018 13:03:47 PST", "2018-12-03T21:03:47Z"),
        ("Mon, 08 Feb 2021 09:15:00 EST", "2021-02-08T14:15:00Z"),
        ("2023-05-30 12:00:33", "2023-05-30T04:00:33Z"),
        ("Thu, 19 Jun 2014 17:00:00 Z", "2014-06-19T17:00:00Z"),
        ("Thu, 15 Feb 2018 11:24:50", "2018-02-15T03:24:50Z"),
        ("Tue,", "none"),
        ("Sat, Oct 28 2023 08:28:28 PM", "2023-10-28T12:28:28Z"),
        ("2023-10-28 08:28:28 PM", "2023-10-28T12:28:28Z"),
        ("2023年10月28日 下午8:28", "2023-10-28T12:28:00Z"),
        ("2023年10月28日 星期六 晚上8点28分", "2023-10-28T12:28:00Z"),
        ("20231028202828", "2023-10-28T12:28:28Z"),
        ("20231028T202828Z", "2023-10-28T20:28:28Z"),
        ("28/10/2023 20:28:28", "none"),
        ("周六, 28 10月 2023 20:28:28 +0800", "2023-10-28T12:28:28Z"),
        ("Sat, 28 Oct 2023 24:00:00 +0800", "2023-10-28T16:00:00Z"),
        ("Oct. 28, 2023, 8:28 p.m.", "2023-10-28T12:28:00Z"),
        ("2023-10-28 12:28 AM", "2023-10-27T16:28:00Z"),
        ("Sat Oct 28 2023 20:28:28 GMT+0800 (中国标准时间)", "2023-10-28T12:28:28Z"),
        ("2023-10-28T20:28:28.123456789+08:00[Asia/Shanghai]", "2023-10-28T12:28:28Z"),
        ("Sat Oct 28 20:28:28 2023 +0800", "2023-10-28T12:28:28Z"),
        # What has no meaning, or two, is none: another month, hour or zone would be wrong.
        *((each, "none") for each in ("28 Marraskuu 2023", "Marraskuu 28 2023", "1 Juin 2023", "2023-335", "2023-10")),
        *((f"Sat, 28 Oct 2023 {each}", "none") for each in ("25:00:00 GMT", "12:61 GMT", "12:00:75 GMT", "15:00 AM")),
        *((f"Sat, 28 Oct 2023 12:00:00 {each}", "none") for each in ("XYZ", "WST", "A", "+2500", "+0860", "localtime")),
        ("2023年10月28日 晚上12:00", "none"),
    ],
)
def test_a_time_that_is_not_understood_is_none(written: str, moment: str) -> None:
    assert utc(written) == moment


@pytest.mark.parametrize(
    ("zone", "ahead"),
    [
        *(("JST", 9), ("KST", 9), ("SGT", 8), ("HKT", 8), ("IST", 5.5), ("CET", 1), ("CEST", 2), ("WEST", 1)),
        *(("EET", 2), ("AEST", 10), ("AEDT", 11), ("NZDT", 13), ("AKST", -9), ("BRT", -3), ("EDT", -4), ("BST", 1)),
        *(("Asia/Tokyo", 9), ("Asia/Taipei", 8), ("asia/hong_kong", 8), ("America/New_York", -5), ("Etc/GMT-8", 8)),
        *(("CST (China)", 8), ("中国标准时间", 8), ("GMT+0800", 8), ("+0800 CST", 8), ("北京时间", 8), ("UTC+8", 8)),
        *(("-0330", -3.5), ("(CST)", -6), ("PRC", 8), ("Japan", 9), ("Z", 0), ("-00:00", 0)),
    ],
)
def test_the_names_of_zones(zone: str, ahead: float) -> None:
    noon = datetime(2025, 1, 15, 12, tzinfo=UTC)
    assert utc(f"Wed, 15 Jan 2025 12:00:00 {zone}") == f"{noon - timedelta(hours=ahead):%Y-%m-%dT%H:%M:%SZ}"


def test_a_place_has_its_summer_time_and_an_abbreviation_has_not() -> None:
    assert utc("Tue, 15 Jul 2025 12:00:00 America/New_York") == "2025-07-15T16:00:00Z"
    assert utc("Tue, 15 Jul 2025 12:00:00 EST") == "2025-07-15T17:00:00Z"
    assert utc("Tue, 15 Jul 2025 12:00:00 CET") == "2025-07-15T11:00:00Z"


@given(st.one_of(st.text(max_size=40), st.from_regex(r"[0-9A-Za-z年月日/:,.+ ()-]{0,40}", fullmatch=True)))
def test_no_text_is_too_odd_for_a_time(written: str) -> None:
    utc(written)
    moment_of(written, ZONE)


@given(st.datetimes(datetime(2000, 1, 2), datetime(2030, 1, 1)), st.sampled_from((-11.5, -5, 0, 3.5, 8, 13)))  # noqa: DTZ001
def test_one_moment_is_read_in_every_form(clock: datetime, ahead: float) -> None:
    clock = clock.replace(microsecond=0)
    sign, minutes = "-" if ahead < 0 else "+", int(abs(ahead) * 60)
    offset = f"{sign}{minutes // 60:02}{minutes % 60:02}"
    found = {
        utc(f"{clock:{form}} {offset}")
        for form in (
            *("%a, %d %b %Y %H:%M:%S", "%A, %B %d, %Y %I:%M:%S %p", "%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M:%S"),
            *("%a, %b %d %Y %H:%M:%S", "%Y%m%d%H%M%S", "%Y年%m月%d日 %H时%M分%S秒", "%d-%b-%Y %H:%M:%S"),
        )
    }
    assert found == {f"{clock - timedelta(hours=ahead):%Y-%m-%dT%H:%M:%SZ}"}


def rss(*items: str, encoding: str = "utf-8") -> bytes:
    head = f"<?xml version='1.0' encoding='{encoding}'?><rss version='2.0'><channel><title>Sample</title>"
    return f"{head}<link>/</link>{''.join(items)}</channel></rss>".encode(encoding)


def item(title: str, link: str = "", guid: str = "", date: str = "", more: str = "") -> str:
    tags = [f"<title>{title}</title>", f"<link>{link}</link>" if link else ""]
    tags += [f"<guid isPermaLink='false'>{guid}</guid>" if guid else "", f"<pubDate>{date}</pubDate>" if date else ""]
    return f"<item>{''.join(tags)}{more}</item>"


def atom(inside: str) -> bytes:
    return f"<feed xmlns='http://www.w3.org/2005/Atom'><title>F</title><id>f</id>{inside}</feed>".encode()


def status(*days: int) -> bytes:
    return rss(*(item("Maintenance", "/status", date=f"{day:02} Oct 2022 08:00:00 +0000") for day in days))


def news(number: int, title: str, edits: int, hour: int) -> str:
    link = f"https://news.example/a{number}"
    return item(title, f"{link}?at_medium=RSS", f"{link}#{edits}", f"31 May 2024 {hour}:00:00 GMT")


RELEASES = (("aa1", 1), ("bb2", 2), ("cc3", 3), ("aa1", 4))
BREW = "https://m.example/how-to-brew-1a2b"
BREWED = "29 Sep 2024 08:00:00 GMT"


@dataclass(frozen=True)
class Case:
    """Answers of a source, one after the other, and what is stored then."""

    name: str
    answers: Sequence[bytes | HttpAnswer]
    entries: int = 1
    links: Sequence[str] | None = None
    titles: Sequence[str] | None = None
    moved: bool = False
    pages: dict[str, bytes | HttpAnswer] = field(default_factory=dict)


CASES = [
    Case(
        "guids that differ by their fragments only, one of them used twice",
        [rss(*(item(f"Release {n}", "/tool", f"http://tool.example/#{g}", f"0{n} Mar 2023") for g, n in RELEASES))],
        entries=4,
    ),
    Case("no guids, one link, one title: the date tells them apart", [status(1, 2), status(3, 1, 2)], entries=3),
    Case("the same, of which the newest alone is shown later", [status(1, 2), status(3), status(4)], entries=4),
    Case("the same, read again", [status(1, 2), status(2, 1), status(1, 2)], entries=2),
    Case(
        "no guids, one link, no dates: the texts tell them apart",
        [
            rss(
                *(
                    item("", "/wall", more=f"<description>{said}</description>")
                    for said in ("good morning", "good night")
                )
            )
        ],
        entries=2,
    ),
    Case(
        "no guid, a page of its own: what changes there is an edit",
        [rss(item("Now", "/a", date=BREWED)), rss(item("Later", "/a", date="30 Sep 2024 08:00:00 GMT"))],
        titles=["Later"],
    ),
    Case("neither guid nor link: the date tells them apart", [rss(item("Tip", date=BREWED)), rss(item("Tip"))]),
    Case(
        "a guid that counts the edits of its page",
        [
            rss(news(1, "Storm nears coast", 0, 10), news(2, "Vote today", 0, 11)),
            rss(news(1, "Storm hits coast", 1, 12), news(2, "Vote today", 0, 11)),
        ],
        entries=2,
        titles=["Vote today", "Storm hits coast"],
    ),
    Case(
        "another guid, and another parameter that counts readers",
        [
            rss(item("How to brew", f"{BREW}?source=rss----x---4", "https://m.example/p/1a2b", BREWED)),
            rss(item("How to brew", f"{BREW}?source=rss----y---5", BREW, BREWED)),
        ],
    ),
    Case(
        "http becomes https, and the guid with it",
        [rss(item(f"A{n}", f"{n}://s.example/a", f"{n}://s.example/a", BREWED)) for n in ("http", "https")],
    ),
    Case(
        "one title and hour, two pages told apart by their parameters",
        [rss(*(item("Notice", f"https://s.example/show?id={n}", f"{n}", BREWED) for n in (1, 2)))],
        entries=2,
    ),
    Case(
        "one page, of which the link's fragment says the part",
        [rss(item(f"v{n}", f"https://s.example/log#v{n}", f"v{n}", f"0{n} Mar 2023")) for n in (1, 2)],
        entries=2,
    ),
    Case(
        "a path alone as link", [atom("<entry><id>1</id><link href='/blog/foo'/></entry>")], links=["%BASE%/blog/foo"]
    ),
    Case(
        "a sound without a page",
        [rss(item("408", guid="ep408", more="<enclosure url='https://media.example/408.mp3' type='audio/mpeg'/>"))],
        links=["https://media.example/408.mp3"],
    ),
    Case(
        "a picture with nothing beside it",
        [rss("<item xmlns:m='http://search.yahoo.com/mrss/'><m:content url='https://media.example/1.jpg'/></item>")],
        links=["https://media.example/1.jpg"],
    ),
    Case(
        "a sound of a JSON Feed without a page",
        [
            b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "attachments": '
            b'[{"url": "https://media.example/1.mp3"}]}]}'
        ],
        links=["https://media.example/1.mp3"],
    ),
    Case("a link that was never filled in", [rss(item("Page changed", "&lt;base-url&gt;/diff/282ae766", "x1"))]),
    Case(
        "the site's root before the article, which says that it is the page",
        [
            atom(
                "<entry><id>1</id><link rel='via' href='https://app.example/'/>"
                "<link rel='alternate' type='text/html' href='https://app.example/blog/w29/'/></entry>"
            )
        ],
        links=["https://app.example/blog/w29/"],
    ),
    Case(
        "a header of another encoding than that of bytes and declaration",
        [HttpAnswer(200, rss(item("今天天气很好，适合出门散步", "/1")), f"{XML}; charset=gbk")],
        titles=["今天天气很好，适合出门散步"],
    ),
    Case(
        "a declared encoding, and a character cut in half",
        [
            rss(item("数学题讨论", "/1", more="<description>他有一半断了</description>"), encoding="gb2312").replace(
                "了".encode("gb2312"), "了".encode("gb2312")[:1]
            )
        ],
        titles=["数学题讨论"],
    ),
    Case(
        "moved for good to another feed",
        [HttpAnswer(308, b"", headers={"Location": "/target"})],
        moved=True,
        pages={"/target": rss(item("T", "/t", "t"))},
    ),
    Case(
        "moved for good to a hotspot's login page, for a while",
        [rss(item("T", "/t", "t")), HttpAnswer(301, b"", headers={"Location": "/portal"}), rss(item("T", "/t", "t"))],
        pages={"/portal": b"<!doctype html><html><body>Wi-Fi</body></html>"},
    ),
    Case(
        "bare signs in texts",
        [
            b"<?xml version='1.0'?><rss version='2.0'><channel><title>S</title><item><title>Probe < Moon & Mars</title>"
            b"<link>/s1</link><description>Thrust <1N; R&D <br> ok</description></item><item><title>Second</title>"
            b"<link>/s2</link></item></channel></rss>"
        ],
        entries=2,
    ),
]


def stored_of(at: Stage, case: Case, site: Site) -> str:
    """Poll a case's answers; return its source."""
    request = SourceRequest(url=f"{site.base}/feed")
    [source] = [each.source_id for each in follow(at.services, [request], dry_run=False).added]
    for answer in case.answers:
        site.pages["/feed"] = answer
        at.make_due()
        at.poll()
        at.clock.at += 3600
    return source


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_entries_are_what_the_publisher_wrote(case: Case, tmp_path: Path) -> None:
    with stage(tmp_path, {}) as at, Site(dict(case.pages)) as site:
        source = stored_of(at, case, site)
        found = at.entries(source)
        assert len(found) == case.entries
        assert all(not each["link"] or each["link"].startswith(("http://", "https://")) for each in found)
        if case.links is not None:
            assert [each["link"] for each in found] == [each.replace("%BASE%", site.base) for each in case.links]
        if case.titles is not None:
            assert sorted(each["title"] for each in found) == sorted(case.titles)
        assert (at.source(source)["url"] != f"{site.base}/feed") is case.moved
        assert at.source(source)["state"] == "active"


def test_one_broken_byte_makes_no_feed_unreadable() -> None:
    pages = [("今天的新闻有很多条，", "gbk"), ("今日のニュースです。", "shift_jis"), ("오늘의 새로운 소식,", "euc_kr")]
    for words, encoding in pages:
        body = rss(item(words * 20, "/1"), item(words, "/2"), encoding=encoding)
        broken = body.replace(b"</title><link>/1", b"\x81</title><link>/1")
        found = parse_feed("h", broken, XML, "http://h/", now=START, zone=ZONE, most=9).entries
        assert found[1].title == words, encoding


def test_addresses_are_relative_to_the_base_that_a_text_names() -> None:
    def shown(base: str) -> str:
        body = atom(
            "<entry><id>1</id><link href='https://site.example/posts/123.html'/>"
            f"<content type='html' {base}>&lt;img src=&quot;images/bird.jpg&quot;&gt;</content></entry>"
        )
        [entry] = parse_feed("h", body, XML, "https://feeds.example/f", now=START, zone=ZONE, most=9).entries
        return safe_html(entry.content, entry.summary, entry.link)

    assert 'src="https://cdn.example/media/images/bird.jpg"' in shown("xml:base='https://cdn.example/media/'")
    assert 'src="https://site.example/posts/images/bird.jpg"' in shown("")


NUMBERS = (
    *("check_count", "hit_count", "fail_count", "known_count", "avg_publish_hour", "std_publish_hour", "mean_gap"),
    *("last_check_at", "last_article_at", "backoff_until", "lease_until"),
)


@pytest.mark.parametrize("column", NUMBERS)
def test_text_in_a_column_of_numbers_stops_no_run(column: str, tmp_path: Path) -> None:
    with stage(tmp_path, {"one": SourceStandIn("rss", [60]), "two": SourceStandIn("rss", [60])}) as at:
        one, two = at.follow("one", "two")
        with at.services.engine.begin() as connection:
            damage = text(f"UPDATE source_stats SET {column} = 'abc' WHERE source_id = :of")
            connection.execute(damage, {"of": one})
        at.poll(only=[one, two])
        at.poll(only=[one, two])
        assert [len(at.polls(each)) for each in (one, two)] == [2, 2]
        assert at.stats(one)["check_count"] == 2 or column == "check_count"
        with at.services.engine.begin() as connection:
            [kept] = connection.execute(text(f"SELECT typeof({column}) FROM source_stats WHERE source_id = '{one}'"))
        assert kept[0] != "text" or column in ("known_count", "last_article_at")
