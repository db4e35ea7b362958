"""The demo of the digest: five slots through Dagster, messages at two robots, and the report's page."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from rich.console import Console

from douban_pipeline.demo import digest


def test_a_day_of_five_slots_ends_with_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    console = Console(record=True, width=200)
    with dg.DagsterInstance.ephemeral() as instance:
        first = digest.run_digest(tmp_path, instance, console)
        assert first.well
        assert "5 slots" in first.done
        assert "4 messages pushed" in first.done
    said = console.export_text()
    assert "4 messages taken by a robot" in said
    assert "【机会提醒】07:00 发现 1 条（最高分 82）" in said
    assert "3 条机会（最高分 82）" in said
