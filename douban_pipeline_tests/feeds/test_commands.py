"""The commands ``feeds …`` from a terminal: following, polling, asking why, OPML, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from douban_pipeline.core.language import Language
from douban_pipeline.demo.stand_ins.feed_server import FeedServer, SourceStandIn
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


def test_feeds_that_cannot_be_written_whole_leave_the_file_before(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("douban_pipeline.feeds.terminal.write_opml", lambda _: "\ud800")  # refused when it is written
    folder = tmp_path / "exported"
    folder.mkdir()
    path = folder / "out.opml"
    path.write_text("before")
    assert call("poll").exit_code == 0
    assert isinstance(call("export", str(path)).exception, UnicodeEncodeError)
    assert path.read_text() == "before"
    assert [each.name for each in folder.iterdir()] == ["out.opml"]


@pytest.mark.parametrize("words", [("list",), ("why", "x"), ("export",)])
def test_what_only_shows_something_makes_no_database(call: Call, tmp_path: Path, words: tuple[str, ...]) -> None:
    refused = call(*words)
    assert refused.exit_code == 1
    assert "the tables of feeds in sqlite:///" in str(refused.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_newcomer_follows_polls_and_asks_why(call: Call, server: FeedServer, tmp_path: Path) -> None:
    url = server.url("news")
    assert "would be added" in call("add", url, "--dry-run").output
    assert "added" in call("add", url, "--cadence", "P3").output
    assert "1 sources polled (1 hit), 2 new entries" in call("poll", url).output
    [row] = json.loads(call("list", "--json").output)
    assert (row["title"], row["hit_count"], row["why"]["profile"]) == ("新闻", 1, "budget")
    said = call("why", "新闻").output
    assert "budget" in said
    assert "hit" in said
    exported = call("export", str(tmp_path / "out.opml"))
    assert exported.exit_code == 0
    assert "known already" in call("import", str(tmp_path / "out.opml")).output
    assert url in call("export").output
    assert "1 sources" in call("list").output


def test_what_cannot_be_done_is_said(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert call("poll").exit_code == 0
    assert "no source, or more than one, is called nobody" in str(call("why", "nobody").exception)
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
    said = [call("add", server.url("news"), "--title", "x"), call("poll", "x")]
    said += [call("why", "x"), call("list"), call("why", "y"), call("pause", "x", "--reason", "…"), call("why", "x")]
    said += [call("set-url", "x", "here"), call("add", "here"), call("remove", "y"), call("import", "nowhere")]
    texts = "".join(f"{each.output}{each.exception or ''}" for each in said)
    assert "401" in texts
    assert not re.findall(other, texts)


def test_entries_are_read_and_sources_paused_moved_and_removed(call: Call, server: FeedServer) -> None:
    url = server.url("news")
    call("add", url, "--folder", "每天")
    call("poll", url)
    entries = json.loads(call("entries", "--unread", "--folder", "每天", "--json").output)
    assert [each["source"] for each in entries] == ["新闻", "新闻"]
    assert entries[0]["published_at"] > entries[1]["published_at"]
    assert "1 entries" in call("entries", "--source", "新闻", "--limit", "1").output
    assert "0 entries" in call("entries", "--search", "没有这个词").output
    assert "0 entries" in call("entries", "--starred").output
    assert "no folder" in str(call("entries", "--folder", "别处").exception)
    assert "is called nobody" in str(call("entries", "--source", "nobody").exception)

    assert call("pause", "新闻").exit_code == 2
    assert "--reason" in str(call("pause", "新闻", "--reason", " ").exception)
    assert "would be paused" in call("pause", "新闻", "--reason", "改版", "--dry-run").output
    assert json.loads(call("list", "--json").output)[0]["state"] == "active"
    assert "paused: 新闻" in call("pause", "新闻", "--reason", "改版").output
    assert json.loads(call("list", "--json").output)[0]["state"] == "paused"
    assert "resumed: 新闻" in call("resume", "新闻").output

    assert "no web address" in str(call("set-url", "新闻", "http://[").exception)
    assert "would be moved" in call("set-url", "新闻", f"{url}?2", "--dry-run").output
    assert "moved: 新闻" in call("set-url", "新闻", f"{url}?2").output
    assert json.loads(call("list", "--json").output)[0]["url"] == f"{url}?2"

    assert "nothing was changed" in call("remove", "新闻", "--dry-run").output
    assert call("remove", "新闻").exit_code == 1  # nobody is there to say yes
    assert len(json.loads(call("list", "--json").output)) == 1
    assert "2 entries (0 starred)" in call("remove", "新闻", "--yes").output
    assert json.loads(call("list", "--json").output) == []
    assert "0 entries" in call("entries").output
