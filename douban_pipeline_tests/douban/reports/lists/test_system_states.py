"""What the home page says of the other installed systems: their own checks, whatever state they are in."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from douban_pipeline.core.check_results import CheckResult, State
from douban_pipeline.core.extras import install_command
from douban_pipeline.core.system import system_named
from douban_pipeline.douban.reports.lists import system_states as module
from douban_pipeline.douban.reports.lists.overview import front_page
from douban_pipeline.douban.reports.lists.system_states import system_states
from douban_pipeline_tests.harness.fixtures.library import Library

ALL = ("douban", "feeds", "digest", "tmdb", "comments")


@pytest.fixture(autouse=True)
def trial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each system's tables are in a file in HOME, and nothing but that is set."""
    monkeypatch.setenv("DOUBAN_PIPELINE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def set_up() -> None:
    """The tables of three systems are there."""
    for name in ("feeds", "digest", "comments"):
        with system_named(name).opened() as services:
            services.ready()


@pytest.mark.usefixtures("set_up")
def test_each_installed_system_says_what_its_checks_find() -> None:
    found = {each.title: each for each in system_states(ALL, seconds=120)}
    assert list(found) == ["关注的来源", "每日摘要", "TMDB", "评论"]
    assert (found["关注的来源"].state, found["关注的来源"].said) == ("ok", "")
    digest = found["每日摘要"]
    assert digest.state == "fail", "nothing to digest"
    assert "DOUBAN_PIPELINE_WERSS_URL" in digest.said.split("\n")[0], "the worst comes first"
    assert "DOUBAN_PIPELINE_DIGEST_DEEPSEEK_API_KEY" in digest.said
    assert not re.search("[a-z]{4,} [a-z]{2,}", digest.said), "the page is Chinese, whatever this process's locale"
    assert found["TMDB"].state == "fail"
    assert "DOUBAN_PIPELINE_TMDB_DATABASE_URL" in found["TMDB"].said, "no server of its own is started"
    assert system_states(["douban"]) == []


def test_a_page_sets_nothing_up() -> None:
    for _ in range(2):
        [feeds] = system_states(["feeds"], seconds=120)
        assert feeds.state == "warn"
        assert "douban-pipeline setup --system feeds" in feeds.said


def test_a_setting_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOUBAN_PIPELINE_FEEDS_DATABASE_URL", "oracle://nowhere")
    [feeds] = system_states(["feeds"])
    assert feeds.state == "fail"
    assert "DOUBAN_PIPELINE_FEEDS_DATABASE_URL" in feeds.said


@pytest.mark.usefixtures("set_up")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OperationalError("", {}, Exception("server has gone away")), "server has gone away"),
        (ModuleNotFoundError("", name="redis"), "没有安装 redis；附加依赖 feeds 会带上它：" + install_command("feeds")),
    ],
)
def test_a_system_that_cannot_be_looked_at_says_why(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def failing(*_: object) -> list[CheckResult]:
        raise error

    monkeypatch.setattr("douban_pipeline.feeds.operations.FeedsOperations.checks", failing)
    [feeds] = system_states(["feeds"])
    assert (feeds.state, feeds.said) == ("fail", said)


@pytest.mark.usefixtures("set_up")
def test_a_system_that_does_not_answer_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def hanging(*_: object) -> list[CheckResult]:
        go_on.wait(60)
        return []

    monkeypatch.setattr("douban_pipeline.feeds.operations.FeedsOperations.checks", hanging)
    try:
        [feeds] = system_states(["feeds"], seconds=0.05)
    finally:
        go_on.set()
    assert feeds.state == "warn"
    assert "没有结束" in feeds.said


@pytest.mark.usefixtures("set_up")
@pytest.mark.parametrize(
    ("state", "lead"),
    [
        ("ok", "一切正常"),
        ("warn", "没有故障；请留意关注的来源"),
        ("fail", "需要处理：关注的来源有故障"),
    ],
)
def test_all_is_well_only_where_every_system_is(
    shared_library: Library, monkeypatch: pytest.MonkeyPatch, state: State, lead: str
) -> None:
    library = shared_library.renewed([], systems=("douban", "feeds"))
    result = CheckResult("sources", state, "一个来源坏了", "看看它")
    monkeypatch.setattr("douban_pipeline.feeds.operations.FeedsOperations.checks", lambda *_: [result])
    monkeypatch.setattr(module, "LOOK_SECONDS", 120.0)
    page, _ = front_page(library.services, system_states(library.settings.systems))
    assert lead in page
    assert ("一切正常" in page) == (state == "ok")
    assert ("一个来源坏了：看看它" in page) == (state != "ok")
    assert "其他系统" in page
