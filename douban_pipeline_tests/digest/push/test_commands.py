"""The command ``digest push`` from a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from douban_pipeline.ops.cli import app
from douban_pipeline_tests.digest.push.office import office
from douban_pipeline_tests.stand_ins.push_server import KEY, PushServer

Call = Callable[..., Result]


@pytest.fixture
def platforms() -> Iterator[PushServer]:
    with PushServer() as server:
        yield server


@pytest.fixture
def call(tmp_path: Path, platforms: PushServer, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOUBAN_PIPELINE_HOME", str(tmp_path))
    channels = f"{platforms.channel('wecom')} {platforms.channel('ntfy', 'phone')}"
    monkeypatch.setenv("DOUBAN_PIPELINE_DIGEST_PUSH_CHANNELS", channels)
    return lambda *words: CliRunner().invoke(app, ["digest", *words], env={"COLUMNS": "250"})


def test_a_channel_is_tried_before_it_is_relied_on(call: Call, platforms: PushServer) -> None:
    done = call("push", "--test", "phone")
    assert (done.exit_code, "phone (ntfy): taken" in done.output) == (0, True)
    assert [taken.kind for taken in platforms.taken] == ["ntfy"]
    platforms.faults["wecom"].append("throttled")
    failed = call("push", "--test", "all")
    assert failed.exit_code == 1
    assert "wecom (wecom): 平台拒收，错误码 45009" in failed.output
    assert "phone (ntfy): taken" in failed.output
    assert "channels: wecom, phone" in str(call("push", "--test", "nobody").exception)
    assert KEY not in done.output + failed.output


def test_nothing_to_try_is_said(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOUBAN_PIPELINE_DIGEST_PUSH_CHANNELS")
    refused = call("push", "--test", "all")
    assert refused.exit_code == 1
    assert "DOUBAN_PIPELINE_DIGEST_PUSH_CHANNELS names no channel" in str(refused.exception)


def test_what_waits_is_sent(call: Call, platforms: PushServer, tmp_path: Path) -> None:
    with office(tmp_path, platforms.channel("wecom")) as place:
        place.enqueue(now=datetime.now(UTC))
    sent = call("push")
    assert (sent.exit_code, "1 sent" in sent.output) == (0, True)
    assert len(platforms.taken) == 1
