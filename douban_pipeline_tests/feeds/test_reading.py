"""Reading on every engine: pages, marks, and removing; hostile articles; the pages over real HTTP."""

from __future__ import annotations

import random
import re
import threading
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.demo.stand_ins.feed_server import FeedServer, SourceStandIn
from douban_pipeline.feeds import subscriptions
from douban_pipeline.feeds.cadence_review import CONTENT_DAYS, drop_old
from douban_pipeline.feeds.clients.syndication import parse_feed
from douban_pipeline.feeds.reading.content import safe_html
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store import entry_lists, source_lists, sources
from douban_pipeline.feeds.store.entry_lists import Cursor, Selection
from douban_pipeline.feeds.store.tables import entry, poll, source, stats
from douban_pipeline_tests.feeds.reading_stage import Shelf, an_entry, served, shelf
from douban_pipeline_tests.feeds.stage import DAY, START, hourly

ORIGIN = {"sec-fetch-site": "same-origin"}


def keys(at: Shelf, chosen: Selection, limit: int = 7, **options: Any) -> list[int]:
    """Every entry of a list, page by page."""
    found: list[int] = []
    after: Cursor | None = None
    with reading(at.services.engine) as connection:
        while True:
            page = entry_lists.entry_page(connection, chosen, after, limit, **options)
            found += [row.entry_id for row in page.rows]
            assert len(page.rows) <= limit
            after = page.next
            if after is None:
                return found


def wanted(at: Shelf, folders: dict[str, str | None], chosen: Selection) -> list[int]:
    """The same, found by looking at every entry."""
    rows = [
        row
        for row in at.rows()
        if (chosen.unread is None or bool(row.unread) is chosen.unread)
        and (chosen.starred is None or bool(row.starred) is chosen.starred)
        and (chosen.source_id is None or row.source_id == chosen.source_id)
        and (chosen.folder is None or (folders[row.source_id] or "") == chosen.folder)
    ]
    return [row.entry_id for row in sorted(rows, key=lambda row: (-row.published_at, -row.entry_id))]


def test_every_list_is_paged_whole_and_in_order(any_database_url: str, tmp_path: Path) -> None:
    drawn = random.Random(5)
    with shelf(tmp_path, any_database_url) as at:
        folders: dict[str, str | None] = {}
        for number in range(6):
            folder = ("甲", None, "乙")[number % 3]
            of = at.source(f"来源 {number}", folder)
            folders[of] = folder
            # Many of one second, as pushes are.
            at.publish(of, *(an_entry(f"{number}-{each}", START - drawn.randrange(8)) for each in range(9)))
        ids = [row.entry_id for row in at.rows()]
        with at.services.engine.begin() as connection:
            assert entry_lists.mark(connection, drawn.sample(ids, 20), unread=False) == 20
            assert entry_lists.mark(connection, drawn.sample(ids, 12), starred=True) == 12
        for marks in ({}, {"unread": True}, {"unread": False}, {"starred": True}):
            for scope in ({}, {"source_id": next(iter(folders))}, {"folder": "甲"}, {"folder": ""}, {"folder": "无"}):
                chosen = Selection(**marks, **scope)
                assert keys(at, chosen) == wanted(at, folders, chosen), chosen
                assert keys(at, chosen, oldest_first=True) == wanted(at, folders, chosen)[::-1]
        with reading(at.services.engine) as connection:
            counts = entry_lists.unread_counts(connection)
            assert sum(counts.values()) == len(ids) - 20
            assert source_lists.folders(connection) == ["乙", "甲"]


def test_two_devices_that_mark_at_once_undo_nothing(any_database_url: str, tmp_path: Path) -> None:
    with shelf(tmp_path, any_database_url) as at:
        ids = at.publish(at.source("新闻"), *(an_entry(f"n{number}", START - number) for number in range(60)))
        began = threading.Barrier(3)

        def device(**marks: bool) -> None:
            began.wait()
            for some in (ids[at : at + 7] for at in range(0, 60, 7)):
                run_transaction(
                    at_engine, lambda connection, some=some: entry_lists.mark(connection, some[::-1], **marks)
                )

        at_engine = at.services.engine
        devices = [threading.Thread(target=device, kwargs=each) for each in ({"unread": False}, {"starred": True})]
        devices.append(
            threading.Thread(
                target=lambda: (began.wait(), entry_lists.mark_all_read(at_engine, Selection(), through=ids[-1]))
            )
        )
        for each in devices:
            each.start()
        for each in devices:
            each.join(60)
        assert set(at.marks().values()) == {(False, True)}


def test_what_came_after_the_page_was_shown_stays_unread(any_database_url: str, tmp_path: Path) -> None:
    with shelf(tmp_path, any_database_url) as at:
        news = at.source("新闻")
        ids = at.publish(news, an_entry("a", START))
        with reading(at.services.engine) as connection:
            through = entry_lists.newest_key(connection)
        later = at.publish(news, an_entry("b", START - DAY))
        assert entry_lists.mark_all_read(at.services.engine, Selection(source_id=news), through=through) == 1
        assert at.marks() == {ids[0]: (False, False), later[0]: (True, False)}
        # An edit is no new entry, and keeps what was marked.
        at.publish(news, an_entry("a", START, title="改过的标题"))
        assert at.marks()[ids[0]] == (False, False)


def test_a_removed_source_leaves_nothing_and_others_everything(any_database_url: str, tmp_path: Path) -> None:
    with shelf(tmp_path, any_database_url) as at:
        news, films = at.source("新闻"), at.source("电影")
        at.publish(news, *(an_entry(f"n{number}", START) for number in range(5)))
        at.publish(films, an_entry("f", START))
        with pytest.raises(ProblemsError, match="没有"):
            subscriptions.remove(at.services, ["新闻", "nobody"])
        assert len(at.rows()) == 6
        subscriptions.remove(at.services, ["新闻"])
        assert {row.source_id for row in at.rows()} == {films}
        with at.services.engine.connect() as connection:
            for table in (source, stats, poll):
                count = select(func.count()).select_from(table).where(table.c.source_id == news)
                assert connection.execute(count).scalar() == 0


def test_a_source_with_another_address_keeps_its_entries(tmp_path: Path) -> None:
    with shelf(tmp_path) as at:
        news, films = at.source("新闻"), at.source("电影")
        at.publish(news, an_entry("a", START))
        with reading(at.services.engine) as connection:
            taken = entry_lists.titles_of(connection, [films])[films].url
        for url, said in (
            (taken, "已经是另一来源"),
            ("ftp://a.example/", "http"),
            ("https://u:p@a.example/", "用户名"),
        ):
            with pytest.raises(ProblemsError, match=said):
                subscriptions.set_address(at.services, "新闻", url)
        before, after = subscriptions.set_address(at.services, "新闻", "https://new.example/feed")
        assert (before.source_id, after.url) == (news, "https://new.example/feed")
        with at.services.engine.connect() as connection:
            row = connection.execute(select(source).where(source.c.source_id == news)).one()
            due = connection.execute(select(stats.c.next_due_at).where(stats.c.source_id == news)).scalar()
        assert (row.url, row.host, row.etag) == ("https://new.example/feed", "new.example", "")
        assert due <= at.services.now()
        assert [row.source_id for row in at.rows()] == [news]


def test_retention_forgets_articles_that_were_read_and_no_mark(tmp_path: Path) -> None:
    with shelf(tmp_path) as at:
        news = at.source("新闻")
        ids = at.publish(news, *(an_entry(f"n{number}", START, content="<p>全文</p>") for number in range(3)))
        with at.services.engine.begin() as connection:
            entry_lists.mark(connection, ids[:2], unread=False)
            entry_lists.mark(connection, ids[1:2], starred=True)
        before = at.marks()
        at.clock.at += CONTENT_DAYS * DAY + 60
        drop_old(at.services, dry_run=True)
        assert all(row.content for row in at.rows())
        drop_old(at.services)
        assert [bool(row.content) for row in at.rows()] == [False, True, True]
        assert at.marks() == before


FEED = """<?xml version="1.0" encoding="utf-8"?><rss version="2.0"
 xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>T</title><item><guid>1</guid><title>甲</title>
<link>https://a.example/1</link><description>短</description>
<content:encoded><![CDATA[<p>全文 <img src="/x.png"></p>]]></content:encoded></item></channel></rss>"""


def test_an_article_is_kept_as_its_source_wrote_it() -> None:
    options: dict[str, Any] = {"now": START, "zone": None, "most": 5}
    [found] = parse_feed("a", FEED.encode(), "", "https://a.example/feed", **options).entries
    assert (found.summary, found.content) == ("短", '<p>全文 <img src="/x.png"></p>')
    plain = FEED.replace("<content:encoded>", "<other>").replace("</content:encoded>", "</other>")
    [found] = parse_feed("a", plain.encode(), "", "https://a.example/feed", **options).entries
    assert found.content == ""


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href=' java\tscript:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<img src='data:image/svg+xml,<svg onload=alert(1)>'>",
    "<iframe src='https://evil.example/'></iframe><object data=x></object><embed src=x>",
    "<style>body{display:none}</style><p style='position:fixed;inset:0'>x</p>",
    "<svg><script>alert(1)</script><a xlink:href='javascript:alert(1)'>x</a></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "<form action='https://evil.example/'><input name=q><button>x</button></form>",
    "<base href='https://evil.example/'><meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "</div></article></main><script>alert(1)</script>",
    "<template><script>alert(1)</script></template>",
    "<a id=root name=root class=open href='//evil.example/'>x</a>",
    "<img srcset='javascript:alert(1) 1x' src='vbscript:x' width='100%;x'>",
]
_LOADED = {"src", "href"}


class _Found(HTMLParser):
    """What a browser would find in the HTML: elements and attributes that may act."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def harmless(shown: str) -> None:
    found = _Found()
    found.feed(shown)
    bad = {"script", "style", "iframe", "object", "embed", "form", "input", "base", "meta", "svg", "math", "template"}
    assert not found.tags & bad
    for name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in ("style", "id", "class", "name", "srcset", "action")
        if name in _LOADED:
            assert re.match(r"https?://|mailto:", value), value


@pytest.mark.parametrize("written", HOSTILE)
def test_nothing_of_an_article_acts(written: str) -> None:
    harmless(safe_html(written, "", "https://a.example/1"))
    harmless(safe_html(f"<p>前</p>{written}<p>后</p>", "", ""))


@given(st.text(alphabet="<>/='\" abimgscriptonerrorhref:x\t", max_size=200))
def test_no_text_makes_an_article_act(written: str) -> None:
    harmless(safe_html(written, "", "https://a.example/"))


def test_addresses_and_late_pictures_of_an_article_are_its_page_s() -> None:
    shown = safe_html('<a href="/x">x</a><img data-src="p.png" class="lazy">', "", "https://a.example/dir/1")
    assert 'href="https://a.example/x"' in shown
    assert 'src="https://a.example/dir/p.png"' in shown
    assert 'referrerpolicy="no-referrer"' in shown
    assert safe_html(None, "a < b", "") == "<p>a &lt; b</p>"


@pytest.mark.parametrize("written", ["<div>" * 66_000, "<img " * 40_000, "<b data-src=" * 16_000, "&" * 200_000])
def test_a_huge_article_is_shown_or_cut_but_stops_nothing(written: str) -> None:
    harmless(safe_html(written, "", "https://a.example/"))


def test_what_is_deeper_than_any_page_is_shown_as_text() -> None:
    assert safe_html("<div>" * 1001 + "字<br>句 <script>", "", "") == "<p>字 句</p>"
    assert safe_html("<div>" * 999 + "字", "", "").count("<div>") == 999
    assert safe_html("<div></b>" * 1001 + "字", "", "") == "<p>字</p>"
    assert safe_html("<p>字" * 5000, "", "").count("<p>") == 5000


def test_a_hostile_article_is_shown_harmless_over_http(tmp_path: Path) -> None:
    with shelf(tmp_path) as at, served(at.services) as base:
        news = at.source("<script>来源</script>")
        ids = at.publish(
            news,
            *(
                an_entry(f"n{number}", START - number, title=f"{written} 题", content=written, summary=written)
                for number, written in enumerate(HOSTILE)
            ),
        )
        listed = httpx.get(f"{base}/feeds/?view=all")
        assert "<script>来源" not in listed.text
        for written in HOSTILE:
            assert f"{written} 题" not in listed.text
        for entry_id in ids:
            answer = httpx.get(f"{base}/feeds/entries/{entry_id}?view=all")
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            content = answer.text.partition('<div class="content">')[2].partition("</article>")[0]
            harmless(content)


def test_the_pages_show_mark_and_refuse(tmp_path: Path) -> None:
    with shelf(tmp_path) as at, served(at.services) as base, httpx.Client(base_url=base, headers=ORIGIN) as client:
        assert "还没有条目" in client.get("/feeds/").text
        news = at.source("新闻", "甲")
        ids = at.publish(news, *(an_entry(f"n{number}", START - number) for number in range(60)))
        assert client.get("/feeds").status_code == 307
        first = client.get("/feeds/").text
        assert first.count("<article") == 50
        after = unescape(re.search(r'<a class="plain next"[^>]*href="([^"]+)"', first)[1])
        assert client.get(f"/feeds/{after}").text.count("<article") == 10
        answer = client.post("/feeds/mark", data={"id": ids[0], "as": "read", "back": "?view=all"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/feeds/?view=all")
        assert at.marks()[ids[0]] == (False, False)
        kept = client.post("/feeds/mark", data={"id": ids[1], "as": "read"}, headers={"accept": "application/json"})
        assert kept.json() == {"changed": 1}
        shown = client.get(f"/feeds/entries/{ids[5]}").text
        assert f'href="{ids[4]}"' in shown
        assert f'href="{ids[6]}"' in shown
        assert "没有未读的条目" in client.get("/feeds/?folder=").text
        for back in ("//evil.example", "https://evil.example/", "/\\evil.example", "../login", "javascript:x", "a\nb"):
            away = client.post("/feeds/mark", data={"id": ids[0], "as": "read", "back": back})
            assert away.headers["location"] == "/feeds/"
        for data in ({"id": ids[0], "as": "gone"}, {"id": "x", "as": "read"}):
            assert client.post("/feeds/mark", data=data).status_code == 422
        foreign = {"sec-fetch-site": "cross-site"}
        assert client.post("/feeds/mark", data={"id": ids[2], "as": "read"}, headers=foreign).status_code == 403
        assert at.marks()[ids[2]] == (True, False)
        for path in ("entries/999999", "entries/0", f"entries/{2**63}", "nothing"):
            assert client.get(f"/feeds/{path}").status_code == 404
        assert client.get("/feeds/?view=odd").status_code == 422
        scope = {"folder": "甲", "through": ids[-1], "back": "?folder=甲"}
        assert client.post("/feeds/mark-all", data=scope).status_code == 303
        assert not any(unread for unread, _ in at.marks().values())


def test_sources_are_added_paused_and_removed_on_their_page(tmp_path: Path) -> None:
    with (
        FeedServer(lambda: START, {"news": SourceStandIn("rss", hourly(2), "新闻")}) as server,
        shelf(tmp_path) as at,
        served(at.services) as base,
        httpx.Client(base_url=base, headers=ORIGIN) as client,
    ):

        def send(**fields: str) -> httpx.Response:
            return client.post("/feeds/sources", data=fields)

        page = client.get("/feeds/sources").text
        assert "在上面填写地址" in page
        assert '<details class="add" open>' in page
        refused = send(**{"as": "added", "kind": "rss", "url": "http://u:p@a.example/<b>", "folder": "甲"})
        assert refused.status_code == 422
        assert "地址里不能带用户名和密码" in refused.text
        assert 'value="甲"' in refused.text
        assert "<b>" not in refused.text.partition("添加来源")[2].partition("</form>")[0].replace("<button", "")
        foreign = {"sec-fetch-site": "cross-site"}
        wanted = {"as": "added", "kind": "rss", "url": server.url("news"), "folder": "甲"}
        assert client.post("/feeds/sources", data=wanted, headers=foreign).status_code == 403
        added = send(**wanted)
        assert added.status_code == 303
        shown = client.get(added.headers["location"]).text
        assert f"已关注 {server.url('news')}" in shown
        with reading(at.services.engine) as connection:
            [one] = sources.all_sources(connection)
        assert (one.folder, one.url) == ("甲", server.url("news"))
        assert "没有改动" in client.get(send(**wanted).headers["location"]).text
        for what, state in (("paused", "paused"), ("resumed", "active")):
            assert "已" in client.get(send(**{"as": what, "source": one.source_id}).headers["location"]).text
            with reading(at.services.engine) as connection:
                assert sources.all_sources(connection)[0].state == state
        assert send(**{"as": "removed", "source": "rss-none"}).status_code == 404
        assert send(**{"as": "odd", "source": one.source_id}).status_code == 422
        assert "已移除" in client.get(send(**{"as": "removed", "source": one.source_id}).headers["location"]).text
        with reading(at.services.engine) as connection:
            assert not sources.all_sources(connection)


def test_sources_are_listed_in_pages_and_found(tmp_path: Path) -> None:
    with shelf(tmp_path) as at, served(at.services) as base:
        for number in range(120):
            at.source(f"来源 {number:03}", "甲" if number % 2 else None)
        found: list[str] = []
        path = "sources"
        while path:
            page = httpx.get(f"{base}/feeds/{path}").text
            found += re.findall(r"来源 \d{3}", "".join(re.findall(r'<td class="name".*?</a>', page)))
            following = re.search(r'<a class="plain next"[^>]*href="([^"]+)"', page)
            path = unescape(following[1]) if following else ""
        assert found == [f"来源 {number:03}" for number in range(120)]
        assert httpx.get(f"{base}/feeds/sources?q=来源+01&state=active&folder=甲").text.count('<td class="name"') == 7
        assert "没有这样的来源" in httpx.get(f"{base}/feeds/sources?state=failing").text


def test_a_password_that_is_easily_guessed_is_refused() -> None:
    with pytest.raises(SettingsError, match="DOUBAN_PIPELINE_FEEDS_READER_PASSWORD"):
        FeedsSettings.load(_env_file=None, reader_password="short")


def test_videos_of_resource_sites_are_not_waiting_to_be_read(tmp_path: Path) -> None:
    with shelf(tmp_path) as at:
        at.publish(at.source("资源站"), an_entry("v", START, edit_publishes=True))
        assert list(at.marks().values()) == [(False, False)]
        assert entry.c.unread.server_default is not None  # what was stored before there were marks counts as read
