"""The commands of the digest from a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.demo.stand_ins.answers import json_answer
from douban_pipeline.demo.stand_ins.werss import Article, WeRssStandIn
from douban_pipeline.digest.services import open_services
from douban_pipeline.digest.settings import load_settings
from douban_pipeline.ops.cli import app
from douban_pipeline_tests.stand_ins.completions import DigestServer

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    monkeypatch.chdir(tmp_path)
    werss = WeRssStandIn(lambda: 4e9, accounts={"MP": "示例"}, articles=[Article("1", "MP", "老文章", 1e9, "<p>x</p>")])
    with DigestServer(werss) as server:
        given: dict[str, Any] = {"WERSS_URL": server.base, "WERSS_USERNAME": "demo", "WERSS_PASSWORD": "demo"}
        given |= {"DIGEST_DEEPSEEK_URL": server.model_url, "DIGEST_DEEPSEEK_API_KEY": "k"}
        for name, value in given.items():
            monkeypatch.setenv(f"DOUBAN_PIPELINE_{name}", value)
        yield lambda *words: CliRunner().invoke(app, ["digest", *words], env={"COLUMNS": "200"})


def test_a_slot_is_run_and_explained(call: Call, tmp_path: Path) -> None:
    ran = call("run")
    assert ran.exit_code == 0, ran.output
    assert "success: 0 findings" in ran.output
    assert "不再重复" in call("run").output
    assert call("why", "老文章").exit_code != 0  # outside the window, so never taken in
    assert "rubric.md" in call("rubric").output
    assert (tmp_path / ".douban_pipeline" / "digest" / "subject.md").exists()
    assert "follows 1 accounts" in call("login").output
    assert call("run", "2999-01-01|07:00").exit_code != 0
    assert call("run", "2026-01-01|07:07").exit_code != 0


def test_a_person_s_login_asks_now_and_opens_the_gate(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOUBAN_PIPELINE_WERSS_PASSWORD", "wrong")
    for _ in range(2):
        refused = call("login")
        assert isinstance(refused.exception, ProblemsError)  # printed as a sentence
        assert "not logged in" in str(refused.exception)
    call("run")
    services = open_services(load_settings())
    services.gate.open("werss", services.now() + timedelta(hours=1), "连续失败")
    services.close()
    checked = CliRunner().invoke(app, ["check", "--system", "digest", "--no-dagster"], env={"COLUMNS": "300"}).output
    assert "gate werss" in checked
    assert "run digest login" in checked
    monkeypatch.setenv("DOUBAN_PIPELINE_WERSS_PASSWORD", "demo")
    assert "follows 1 accounts" in call("login").output
    checked = CliRunner().invoke(app, ["check", "--system", "digest", "--no-dagster"], env={"COLUMNS": "300"}).output
    assert "gate werss" not in checked


def test_a_wrong_prefix_is_named_at_the_login(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WeRssStandIn, "answer", lambda *_: json_answer({"detail": "Method Not Allowed"}, 405))
    assert "WERSS_URL" in str(call("login").exception)
