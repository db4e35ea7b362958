"""What sources send, read into entries; addresses, lists and OPML; names of failures."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
import pytest

from douban_pipeline.core.addresses import admission, is_private
from douban_pipeline.core.errors import PrivateAddress, ProblemsError, SourceError
from douban_pipeline.feeds.clients import lists, opml
from douban_pipeline.feeds.clients.source_client import gate_name
from douban_pipeline.feeds.clients.syndication import ParsedFeed, parse_feed
from douban_pipeline.feeds.clients.values import at_path, credible, link_of, moment_of, plain
from douban_pipeline.feeds.failures import CANONICAL, FeedRefused, canonical_message
from douban_pipeline.feeds.types import Source, SourceKind
from douban_pipeline_tests.feeds.stage import START

ZONE = ZoneInfo("Asia/Shanghai")


def rss(items: str, head: str = '<?xml version="1.0" encoding="utf-8"?>') -> bytes:
    return f'{head}<rss version="2.0"><channel><title>频道</title>{items}</channel></rss>'.encode()


def parsed(body: bytes, most: int = 500, kind: str = "application/rss+xml") -> ParsedFeed:
    return parse_feed("host", body, kind, "http://example.com/feed", now=START, zone=ZONE, most=most)


def test_times_that_cannot_be_are_left_out() -> None:
    dates = ["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT", "gestern"]
    dates.append("Mon, 16 Nov 2026 10:00:00 +0800")
    body = rss("".join(f"<item><guid>{n}</guid><pubDate>{date}</pubDate></item>" for n, date in enumerate(dates)))
    times = [entry.published_at for entry in parsed(body).entries]
    assert times[:3] == [None, None, None]
    assert times[3] == 1_794_794_400


TEN = 1_794_794_400
"""10:00 of 16 November 2026 in China."""


@pytest.mark.parametrize(
    "date",
    [
        *("Mon, 16 Nov 2026 10:00:00", "16 Nov 26 10:00", "Mon Nov 16 10:00:00 2026", "2026年11月16日 10:00"),
        *("2026-11-16 10:00:00", "2026/11/16 10:00:00", "2026-11-16T10:00:00.5", "Mon, 16 Nov 2026 02:00:00 GMT"),
        *("Mon, 16 Nov 2026 10:00:00 GMT+8", "2026-11-16T10:00:00+08:00", "Mon, 16 Nov 2026 10:00:00 +0800 (CST)"),
        *("Sun, 15 Nov 2026 21:00:00 EST", "2026-11-16T02:00Z"),
    ],
)
def test_a_time_without_a_zone_is_the_site_s(date: str) -> None:
    [entry] = parsed(rss(f"<item><guid>1</guid><pubDate>{date}</pubDate></item>")).entries
    assert entry.published_at == TEN
    feed = {"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "date_published": date}]}
    if date[0] == "2" and "年" not in date:
        assert parsed(json.dumps(feed).encode()).entries[0].published_at == TEN


@pytest.mark.parametrize(
    ("language", "title", "hours_old", "china"),
    [
        ("zh-cn", "News", 30, True),
        ("", "新闻", 30, True),
        ("", "ニュース", 30, False),
        ("", "News", 30, False),
        # Times that would lie in the future were written in China, whatever the feed says of itself.
        ("en-us", "新闻", 1, True),
        ("", "News", 1, True),
        ("en-us", "新闻", 30, False),
    ],
)
def test_cst_is_china_s_time_where_the_feed_is_chinese(language: str, title: str, hours_old: int, china: bool) -> None:
    moment = START - hours_old * 3600
    written = [f"{datetime.fromtimestamp(moment, ZONE):%a, %d %b %Y %H:%M:%S} CST"]
    written.append(f"{datetime.fromtimestamp(moment, ZONE):%a %b %d %H:%M:%S CST %Y}")
    items = "".join(
        f"<item><guid>{number}</guid><title>{title}</title><pubDate>{date}</pubDate></item>"
        for number, date in enumerate(written)
    )
    found = parsed(rss((f"<language>{language}</language>" if language else "") + items)).entries
    assert [each.published_at for each in found] == [moment if china else moment + 14 * 3600] * 2


def test_text_is_plain_and_links_are_absolute_and_harmless() -> None:
    body = rss(
        "<item><title>&lt;b&gt;A &amp;amp; B&lt;/b&gt;</title><link>/a</link></item>"
        "<item><title>x</title><link>javascript:alert(1)</link><guid>2</guid></item>"
    )
    first, second = parsed(body).entries
    assert (first.title, first.link) == ("A & B", "http://example.com/a")
    assert second.link == ""


def test_a_feed_of_a_hundred_thousand_items_is_cut_before_it_is_parsed() -> None:
    found = parsed(rss("<item><guid>x</guid></item>" * 100_000), most=50)
    assert len(found.entries) == 50
    assert found.left_out == 99_950


def test_a_wrong_encoding_is_read_all_the_same() -> None:
    body = rss("<item><title>中文标题</title></item>").decode().encode("gbk").replace(b"utf-8", b"gbk")
    assert parsed(body, kind="application/rss+xml; charset=iso-8859-1").entries[0].title


CHINESE = (
    "<item><guid>1</guid><title>半导体行业传来新的消息</title><description>今天市场有了变化。</description></item>"
)
JAPANESE = "<item><guid>1</guid><title>新しいニュースをお届けします</title></item>"
RUSSIAN = "<item><guid>1</guid><title>Новости сегодняшнего дня в стране и мире</title></item>"
KOREAN = "<item><guid>1</guid><title>오늘의 새로운 소식을 전해 드립니다</title></item>"
SHORT = "<item><guid>1</guid><title>联通</title></item>"


@pytest.mark.parametrize("header", ["utf-8", "iso-8859-1", "none", ""])
@pytest.mark.parametrize("declared", ["utf-8", "iso-8859-1"])
@pytest.mark.parametrize(
    ("item", "encoding"),
    [
        *((CHINESE, each) for each in ("utf-8", "gbk", "gb18030", "big5")),
        *((JAPANESE, each) for each in ("utf-8", "shift_jis", "euc_jp")),
        (KOREAN, "euc_kr"),
        (RUSSIAN, "utf-8"),
    ],
)
def test_an_encoding_that_lies_is_read_by_its_bytes(item: str, encoding: str, declared: str, header: str) -> None:
    if encoding == "big5":
        item = item.replace("半导体行业传来", "半導體行業傳來").replace("今天市场有了变化", "今天市場有了變化")
    wanted = item.partition("<title>")[2].partition("</title>")[0]
    body = rss(item).decode().replace("utf-8", declared).replace("频道", "").encode(encoding)
    kind = f"application/rss+xml; charset={header}" if header else "application/rss+xml"
    assert parsed(body, kind=kind).entries[0].title == wanted


@pytest.mark.parametrize(("item", "encoding"), [(RUSSIAN, "windows-1251"), (SHORT, "gbk")])
def test_a_true_declaration_is_believed_where_bytes_do_not_tell(item: str, encoding: str) -> None:
    wanted = item.partition("<title>")[2].partition("</title>")[0]
    body = rss(item).decode().replace("utf-8", encoding).replace("频道", "").encode(encoding)
    assert parsed(body, kind="application/rss+xml").entries[0].title == wanted


def test_a_character_that_was_cut_does_not_change_the_encoding() -> None:
    body = rss(CHINESE * 5 + "<item><title>断").replace("断".encode(), "断".encode()[:2])
    assert parsed(body).entries[0].title == "半导体行业传来新的消息"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"<!doctype html><html><body>hi",
        b'{"error": 1}',
        b"{broken",
        b'<?xml version="1.0"?><rss version="2.0"><chan',
        b'<!DOCTYPE x [<!ENTITY a "b">]><rss version="2.0"><channel/></rss>',
        b"\x00\x01\x02\xff" * 100,
    ],
)
def test_what_is_no_feed_is_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(FeedRefused, match="feed"):
        parsed(body)


def test_a_feed_that_is_the_name_of_a_file_is_not_read_from_it(tmp_path: Path) -> None:
    own = tmp_path / "own.xml"
    own.write_bytes(rss("<item><guid>secret</guid></item>"))
    with pytest.raises(FeedRefused, match="not a feed"):
        parsed(str(own).encode())


def test_hostile_text_takes_time_in_proportion_to_its_length() -> None:
    # Each of these took hours: the time grew with the square of the length.
    assert plain("<style " * 200_000 + "a", 100_000).startswith("<style <style")
    assert plain("</script " * 100_000 + "<script>" * 100_000, 100_000).startswith("</script")
    assert parsed(rss("", '<?xml version="1.0"?>' + "\n" * 2_000_000)).entries == ()
    author = "a." * 500_000
    assert len(parsed(rss(f"<item><guid>1</guid><author>{author}</author></item>")).entries) == 1
    categories = "".join(f"<category>{number}</category>" for number in range(100_000))
    assert len(parsed(rss(f"<item><guid>1</guid>{categories}</item>")).entries) == 1
    with pytest.raises(FeedRefused, match="before its first element"):
        parsed(b"<!DOCTYPE\n" * 100_000 + rss(""))
    # The base is parsed at each element: 400 kB of this took minutes.
    nested = "<x xml:base='deeper/'>" * 500
    [entry] = parsed(rss(f"{nested}<item><link>a</link></item>{'</x>' * 500}")).entries
    assert entry.link.startswith("http://example.com/deeper/deeper/")
    assert len(entry.link) < 2100


def test_scripts_are_no_text() -> None:
    assert plain("a<script>x</script >b<STYLE a>y</style>c<script>d</scrip>e") == "a b c d e"
    assert plain("a<style><script></style>b</script>c") == "a b c"


def test_links_and_times_that_no_database_takes_are_mended() -> None:
    assert link_of("https://a.org/\x00b\ud800c", "") == "https://a.org/bc"
    assert moment_of(10**400, ZONE) is None


def test_an_empty_feed_is_a_feed() -> None:
    assert parsed(rss("")).entries == ()


def test_videos_need_their_list() -> None:
    row = '{"vod_id": "7", "vod_name": "剧", "vod_time": "2026-11-18 09:00:00", "vod_remarks": "第3集"}'
    body = f'{{"code": 1, "list": [{row}, {{"no": 1}}]}}'.encode()
    [video] = lists.parse_videos("host", body, "", now=START, zone=ZONE, most=10).entries
    assert (video.guid, video.title, video.edit_publishes) == ("7", "剧", True)
    assert video.published_at is None or video.published_at > 1_790_000_000
    for wrong in (b'{"code": 0, "msg": "no"}', b'{"code": 1, "list": [{"id": 1}]}', b"[]", b"<html>"):
        with pytest.raises(SourceError):
            lists.parse_videos("host", wrong, "", now=START, zone=ZONE, most=10)


def test_the_newest_videos_are_asked_for_unless_the_address_says_otherwise() -> None:
    assert lists.videos_url("http://a.com/api.php/provide/vod/") == "http://a.com/api.php/provide/vod/?ac=list&pg=1"
    assert "ac=detail" in lists.videos_url("http://a.com/vod?ac=detail&h=24")


def test_any_list_is_read_by_its_paths() -> None:
    body = b'{"d": {"rows": [{"k": {"no": 5}, "t": "T", "at": "2026-11-18T09:00:00"}, 7]}}'
    options = {"path": "d.rows", "id": "k.no", "title": "t", "time": "at"}
    found = lists.parse_list("host", body, "http://a.com/", options, now=START, zone=ZONE, most=10)
    assert (found.entries[0].guid, found.entries[0].title) == ("5", "T")
    for options in ({"path": "nowhere"}, {"path": "d.rows", "id": "x", "title": "y", "link": "z"}):
        with pytest.raises(FeedRefused):
            lists.parse_list("host", body, "http://a.com/", options, now=START, zone=ZONE, most=10)


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("169.254.169.254", True),
        ("::1", True),
        ("::ffff:192.168.1.1", True),
        ("64:ff9b::a00:1", True),
        ("2002:a00:1::", True),
        ("fe80::1%eth0", True),
        ("224.0.0.1", True),
        ("100.64.0.1", True),
        ("nonsense", True),
        ("8.8.8.8", False),
        ("2606:4700::1111", False),
    ],
)
def test_which_addresses_are_private(address: str, private: bool) -> None:
    assert is_private(address) is private


@pytest.mark.parametrize("url", ["http://2130706433/", "http://localhost/", "http://[::1]:80/", "file:///etc/passwd"])
def test_private_addresses_are_not_admitted_however_they_are_written(url: str) -> None:
    with pytest.raises(PrivateAddress):
        admission("host", allow_private=False)(httpx.URL(url), None)


def test_a_name_that_turns_out_to_be_private_is_refused_once_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("douban_pipeline.core.addresses.getproxies", dict)
    admit = admission("host", allow_private=False)
    admit(httpx.URL("http://public.example/"), "8.8.8.8")
    with pytest.raises(PrivateAddress):
        admit(httpx.URL("http://rebound.example/"), "10.0.0.1")
    admission("host", allow_private=True)(httpx.URL("http://home.example/"), "10.0.0.1")


def test_the_sites_own_host_is_admitted_wherever_it_is_and_no_other() -> None:
    admit = admission("host", allow_private=False, trusted="http://127.0.0.1:8080/films/")
    admit(httpx.URL("http://127.0.0.1:8080/upload/1.jpg"), None)
    admit(httpx.URL("http://127.0.0.1:8080/upload/1.jpg"), "127.0.0.1")
    for url in ("http://127.0.0.1:9090/", "http://127.0.0.1/", "http://me@127.0.0.1:8080/", "ftp://127.0.0.1:8080/"):
        with pytest.raises(PrivateAddress):
            admit(httpx.URL(url), None)


def test_opml_goes_out_and_comes_back() -> None:
    sources = [
        Source("rss-1", SourceKind.RSS, "http://a.com/?x=1&y=2", "甲 & 乙"),
        Source("maccms-1", SourceKind.MACCMS, "http://b.com/"),
    ]
    [found] = opml.read_opml(opml.write_opml(sources))
    assert (found.url, found.title) == ("http://a.com/?x=1&y=2", "甲 & 乙")


@pytest.mark.parametrize("text", ["", "<html/>", "<opml", "<opml " * 100_000, "http://127.0.0.1:9/", " " * 5_000_001])
def test_what_is_no_opml_is_refused(text: str) -> None:
    with pytest.raises(ProblemsError, match="OPML"):
        opml.read_opml(text)


def test_entities_of_an_opml_are_not_replaced() -> None:
    outline = '<!DOCTYPE o [<!ENTITY a "b">]><opml><body><outline xmlUrl="http://a.com/" text="&a;"/></body></opml>'
    assert [each.title for each in opml.read_opml(outline)] == ["&a;"]


def test_opml_s_folders_are_followed_and_addresses_taken_once() -> None:
    outline = '<outline text="夹"><outline xmlUrl="http://a.com/" text="A"/></outline><outline XMLURL="http://a.com/"/>'
    assert [each.title for each in opml.read_opml(f"<opml><body>{outline}</body></opml>")] == ["A"]


def test_names_of_failures_hold_no_word_by_chance() -> None:
    for name in CANONICAL:
        assert canonical_message(name) == name
        assert "rate" not in name or "429" in name
    assert canonical_message("HTTP 503; Retry-After") == "HTTP 5xx"
    assert canonical_message("") == ""


def test_values_are_read_carefully() -> None:
    assert plain("<script>x</script> a\x00 &lt;b&gt;  c") == "a <b> c"
    assert link_of("//cdn.example.com/x", "https://a.com/") == "https://cdn.example.com/x"
    assert link_of("http://[bad", "") == ""
    assert moment_of("1795000000000", ZONE) == 1_795_000_000
    assert moment_of("2026-11-18 08:00:00", ZONE) == moment_of("2026-11-18T00:00:00+00:00", ZONE)
    assert moment_of("soon", ZONE) is None
    assert credible(START + 3 * 86_400, START) is None
    assert at_path({"a": [{"b": 1}]}, "a.0.b") == 1
    assert len(gate_name("a" * 200)) <= 32
