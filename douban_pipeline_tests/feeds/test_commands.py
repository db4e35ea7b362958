"""The commands ``feeds …`` from a terminal: following, asking why, OPML, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from douban_pipeline.core.language import Language
from douban_pipeline.demo.stand_ins.feed_server import FeedServer, SourceStandIn
from douban_pipeline.feeds.poller import Poller
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.settings import load_settings
from douban_pipeline.ops.cli import app
from douban_pipeline_tests.feeds.stage import START, hourly

Call = Callable[..., Result]


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer(lambda: START, {"news": SourceStandIn("rss", hourly(2), "新闻")}) as opened:
        yield opened


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("DOUBAN_PIPELINE_HOME", str(tmp_path))
    monkeypatch.setenv("DOUBAN_PIPELINE_FEEDS_ALLOW_PRIVATE", "true")
    return lambda *words: CliRunner().invoke(app, ["feeds", *words], env={"COLUMNS": "200"})


@pytest.mark.parametrize("words", [("why", "x"), ("export",)])
def test_what_only_shows_something_makes_no_database(call: Call, tmp_path: Path, words: tuple[str, ...]) -> None:
    refused = call(*words)
    assert refused.exit_code == 1
    assert "the tables of feeds in sqlite:///" in str(refused.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_newcomer_follows_imports_and_asks_why(call: Call, server: FeedServer, tmp_path: Path) -> None:
    url = server.url("news")
    assert "would be added" in call("add", url, "--dry-run").output
    assert "added" in call("add", url, "--folder", "每天").output
    services = open_services(load_settings())
    assert Poller(services, seconds=60).run().new == 2
    services.close()
    said = call("why", "新闻").output
    assert "budget" in said
    assert "hit" in said
    exported = call("export").output
    assert url in exported
    (tmp_path / "out.opml").write_text(exported)
    assert "known already" in call("import", str(tmp_path / "out.opml")).output
    assert "no web address" in str(call("set-url", "新闻", "http://[").exception)
    assert "moved: 新闻" in call("set-url", "新闻", f"{url}?2").output
    assert f"{url}?2" in call("export").output


def test_what_cannot_be_done_is_said(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "no source, or more than one, is called nobody" in str(
        call("set-url", "nobody", "http://a.example/").exception
    )
    assert "cannot be read" in str(call("import", "nowhere.opml").exception)
    monkeypatch.setenv("DOUBAN_PIPELINE_FEEDS_ALLOW_PRIVATE", "false")
    assert "a private or local address" in str(call("add", "http://10.0.0.1/feed").exception)


@pytest.mark.parametrize(("language", "other"), [("en", r"[\u4e00-\u9fff]"), ("zh", r"\b(source|credentials|login)\b")])
def test_a_terminal_speaks_one_language(
    call: Call, server: FeedServer, monkeypatch: pytest.MonkeyPatch, language: Language, other: str
) -> None:
    monkeypatch.setattr("douban_pipeline.core.language.terminal_language", lambda: language)
    monkeypatch.setattr("douban_pipeline.feeds.terminal.terminal_language", lambda: language)
    server.channels["news"] = SourceStandIn("rss", [], fault="unauthorised")
    said = [call("add", server.url("news"), "--title", "x")]
    services = open_services(load_settings())
    Poller(services, seconds=60).run()
    services.close()
    said += [call("why", "x"), call("why", "y"), call("set-url", "x", "here"), call("add", "here")]
    said.append(call("import", "nowhere"))
    texts = "".join(f"{each.output}{each.exception or ''}" for each in said)
    assert "401" in texts
    assert not re.findall(other, texts)
