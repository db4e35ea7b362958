"""Ctrl-C while a service does not answer: the command ends, and the next one goes on with what it left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.demo.stand_ins.werss import ACCOUNT, PASSWORD, Article, WeRssStandIn
from douban_pipeline.digest.types import AnalysedStatus
from douban_pipeline_tests.digest.push.office import office
from douban_pipeline_tests.digest.stage import text_of
from douban_pipeline_tests.stand_ins.completions import DigestServer, ModelStandIn
from douban_pipeline_tests.stand_ins.push_server import PushServer

SECONDS = 20.0
"""Time for a crowded machine; the calls would take minutes."""


def begun(home: Path, settings: dict[str, str], *words: str) -> subprocess.Popen[str]:
    names = {f"DOUBAN_PIPELINE_{name}": value for name, value in settings.items()}
    return subprocess.Popen(
        [sys.executable, "-m", "douban_pipeline", *words],
        env={**os.environ, "DOUBAN_PIPELINE_HOME": str(home), "LC_ALL": "C.UTF-8", "COLUMNS": "200", **names},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def interrupted(process: subprocess.Popen[str], asked: threading.Event) -> str:
    """Press Ctrl-C once the service was asked; return what the process, which has ended, printed."""
    with process:
        try:
            assert asked.wait(60)
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 130, printed
    return printed


def noting(answer: Callable[..., object], asked: threading.Event) -> Callable[..., object]:
    def answered(*given: object) -> object:
        try:
            return answer(*given)
        finally:
            asked.set()

    return answered


def test_an_interrupted_slot_leaves_its_articles_to_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()
    monkeypatch.setattr(ModelStandIn, "answer", noting(ModelStandIn.answer, asked))
    articles = [
        Article(str(each), "MP", f"第 {each} 篇", time.time() - 60 * each, text_of(each, 70)) for each in (1, 2)
    ]
    with DigestServer(WeRssStandIn(time.time, accounts={"MP": "示例"}, articles=articles)) as server:
        server.model.always = "hanging"
        settings = {
            "WERSS_URL": server.base,
            "WERSS_USERNAME": ACCOUNT,
            "WERSS_PASSWORD": PASSWORD,
        }
        settings |= {"DIGEST_DEEPSEEK_URL": server.model_url, "DIGEST_DEEPSEEK_API_KEY": "k"}
        url = f"sqlite:///{tmp_path}/digest.sqlite"
        settings |= {"DIGEST_DATABASE_URL": url, "DIGEST_DEEPSEEK_TIMEOUT_SECONDS": "300"}
        printed = interrupted(begun(tmp_path, settings, "digest", "run"), asked)
        assert "stopped; the next run continues" in printed
        states = text("SELECT analyzed_status, analysis_attempts, claim_owner FROM content_item")
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(states).all() == [(AnalysedStatus.WAITING.value, 0, "")] * 2
        server.model.always = ""
        with begun(tmp_path, settings, "digest", "run") as again:
            assert "success: 2 findings" in again.communicate(timeout=60)[0]
        with engine.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM analysis_result")).scalar_one() == 2
        engine.dispose()


def test_an_interrupted_push_leaves_its_messages_to_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()
    monkeypatch.setattr(PushServer, "respond", noting(PushServer.respond, asked))
    url = f"sqlite:///{tmp_path}/digest.sqlite"
    with PushServer() as platforms:
        platforms.faults["wecom"].append("silent")
        channel = platforms.channel("wecom")
        settings = {"DIGEST_PUSH_CHANNELS": channel, "DIGEST_DATABASE_URL": url}
        with office(tmp_path, channel, url, SystemClock()) as place:
            for slot in ("12:00", "14:00"):
                place.enqueue("finding", slot=slot, now=place.services.now())
        assert "the next run settles" in interrupted(begun(tmp_path, settings, "digest", "push"), asked)
        with office(tmp_path, channel, url, SystemClock()) as place:
            assert [row.state.value for row in place.rows()] == ["sending", "pending"]
            place.push()
            assert [row.state.value for row in place.rows()] == ["unknown", "sent"]
        assert len(platforms.taken) == 2
