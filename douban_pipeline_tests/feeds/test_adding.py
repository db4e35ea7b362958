"""Adding sources: the feed behind a page, credentials by name, folders, and OPML."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.demo.stand_ins.feed_server import SourceStandIn
from douban_pipeline.feeds.clients.opml import read_opml, write_opml
from douban_pipeline.feeds.services import read_credentials
from douban_pipeline.feeds.store import sources
from douban_pipeline.feeds.subscriptions import SourceRequest, find_feed, follow, import_opml
from douban_pipeline_tests.feeds.stage import Site, Stage, channels, hourly, stage

FEED = b'<rss version="2.0"><channel><title>T</title><item><guid>1</guid><title>one</title></item></channel></rss>'
HTML = "text/html; charset=utf-8"


@contextmanager
def site(home: Path, pages: dict[str, bytes], login: str = "", **settings: Any) -> Iterator[tuple[Stage, Site]]:
    with Site(pages, login=login) as opened, stage(home, {}, **settings) as on:
        yield on, opened


def private(home: Path, text: str) -> str:
    path = home / "credentials.json"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_a_new_source_is_polled_at_once(tmp_path: Path) -> None:
    with stage(tmp_path, channels(news=SourceStandIn("rss", hourly(2)))) as on:
        follow(on.services, [SourceRequest(url=on.server.url("news"))], dry_run=False)
        assert on.poll().polled == 1


def test_the_feed_of_a_page_is_found(tmp_path: Path) -> None:
    page = b"""<!doctype html><html><head>
    <link rel="alternate" type="application/rss+xml" href="/comments.xml" title="Comments">
    <link rel="alternate" type="application/atom+xml; charset=utf-8" href="posts.xml" title="Posts"></head></html>"""
    with site(tmp_path, {"/blog/": page, "/blog/posts.xml": FEED}) as (on, there):
        request, found = find_feed(on.services, SourceRequest(url=f"{there.base}/blog/", folder="读"))
        assert request.url == f"{there.base}/blog/posts.xml"
        assert [each.title for each in found.feeds] == ["Posts", "Comments"]
        report = follow(on.services, [request], dry_run=False)
        assert on.poll().new == 1
        with reading(on.services.engine) as connection:
            [stored] = sources.read_sources(connection, [report.added[0].source_id]).values()
    assert stored.folder == "读"


def test_a_page_that_names_no_feed_is_tried_at_the_usual_paths(tmp_path: Path) -> None:
    with site(tmp_path, {"/blog": b"<html><head></head></html>", "/blog/rss.xml": FEED}) as (on, there):
        request, found = find_feed(on.services, SourceRequest(url=f"{there.base}/blog"))
    assert request.url == f"{there.base}/blog/rss.xml"
    assert not found.problem


def test_what_is_no_feed_stays_as_it_is_and_says_so(tmp_path: Path) -> None:
    with site(tmp_path, {"/": b"<html></html>"}) as (on, there):
        request, found = find_feed(on.services, SourceRequest(url=f"{there.base}/"))
        assert request.url == f"{there.base}/"
        assert "no feed" in found.problem
        assert "404" in find_feed(on.services, SourceRequest(url=f"{there.base}/lost"))[1].problem


@pytest.mark.parametrize(
    ("secret", "sent"),
    [
        ({"user": "me", "password": "pä"}, "Basic " + base64.b64encode("me:pä".encode()).decode()),
        ({"bearer": "key"}, "Bearer key"),
        ({"cookie": "session=1"}, "session=1"),
    ],
)
def test_a_source_with_a_login_is_read_with_its_credentials(tmp_path: Path, secret: dict[str, str], sent: str) -> None:
    with Site({"/feed": FEED}, login=sent) as there:
        given = private(tmp_path, json.dumps({"mine": {"host": there.base.removeprefix("http://"), **secret}}))
        with stage(tmp_path, {}, credentials_file=given) as on:
            url = f"{there.base}/feed"
            [added] = follow(on.services, [SourceRequest(url=url)], dry_run=False).added
            on.poll()
            error = on.stats(added.source_id)["last_error"]
            assert "401" in error
            assert "--credential" in error
            follow(on.services, [SourceRequest(url=url, credential="mine")], dry_run=False)
            on.make_due()
            assert on.poll().new == 1
            row = on.source(added.source_id)
    assert row["credential"] == "mine"
    assert all(value not in str(row) for value in secret.values())


def test_credentials_are_never_sent_to_another_host(tmp_path: Path) -> None:
    with Site({"/feed": FEED}) as other, Site({}) as there:
        there.pages["/feed"] = f"->{other.base}/feed".encode()
        given = private(tmp_path, json.dumps({"mine": {"host": there.base.removeprefix("http://"), "bearer": "key"}}))
        with stage(tmp_path, {}, credentials_file=given) as on:
            request = SourceRequest(url=f"{there.base}/feed", credential="mine")
            [added] = follow(on.services, [request], dry_run=False).added
            on.poll()  # moved for good
            on.make_due()
            on.poll()
            assert "are not sent to" in on.stats(added.source_id)["last_error"]
        assert there.asked[0][1]["Authorization"] == "Bearer key"
        assert [headers["Authorization"] for _, headers in other.asked] == [None]


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"a": {"bearer": "s3cret"}}', '{"a": {"host": "h", "cookie": "s3cret\\n"}}']
)
def test_credentials_that_cannot_be_used_are_refused_without_their_secrets(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProblemsError) as refused:
        read_credentials(private(tmp_path, text), "FILE")
    assert "FILE" in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_file_of_credentials_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = Path(private(tmp_path, '{"a": {"host": "h", "bearer": "x"}}'))
    path.chmod(0o644)
    with pytest.raises(ProblemsError, match="chmod 600"):
        read_credentials(str(path), "FILE")
    path.chmod(0o600)
    assert read_credentials(str(path), "FILE")["a"].host == "h"
    with pytest.raises(ProblemsError, match="FILE"):
        read_credentials(str(tmp_path / "none"), "FILE")


def test_opml_keeps_folders_and_takes_what_is_usable(tmp_path: Path) -> None:
    text = """<opml version="2.0"><body><outline text="科技"><outline text="a/b">
    <outline type="rss" text="一" xmlUrl="https://example.com/1.xml"/></outline>
    <outline type="rss" text="坏" xmlUrl="ftp://example.com/2.xml"/><outline type="rss" text="没有地址"/></outline>
    <outline type="rss" text="三" xmlUrl="https://example.com/3.xml" category="/影视/新片,其他"/></body></opml>"""
    with stage(tmp_path, {}) as on:
        report = import_opml(on.services, text, dry_run=False)
        assert {each.title: each.folder for each in report.added} == {"一": "科技/a b", "三": "其他"}
        assert [each.partition("：")[0] for each in report.refused] == ["坏"]
        with reading(on.services.engine) as connection:
            written = write_opml(sources.all_sources(connection))
    again = {each.title: each.folder for each in read_opml(written)}
    assert again == {"一": "科技/a b", "三": "其他"}
