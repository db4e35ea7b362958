"""The demo of comments: what people did is there once, however often it is run, and nothing hidden is shown."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from rich.console import Console

from douban_pipeline.core.language import terminal_text
from douban_pipeline.demo import talk


def test_a_section_is_talked_in_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    console = Console(record=True, width=200)
    with dg.DagsterInstance.ephemeral() as instance:
        first = talk.run_talk(tmp_path, instance, console)
        again = talk.run_talk(tmp_path, instance, console)
    said = console.export_text()
    assert first.well, said
    assert again.well, said
    assert again.done == terminal_text("nothing was due")
    assert "0 counters differ" in said
    assert "摄影和配乐" in said
    for hidden in ("加群", "路人甲"):
        assert hidden not in said
