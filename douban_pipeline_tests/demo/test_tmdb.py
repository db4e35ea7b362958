"""The demo of TMDB: questions, rows, outbox, graph; one film changes, and with it one edge."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from rich.console import Console

from douban_pipeline.demo import tmdb


def test_three_questions_fill_the_graph_and_a_change_moves_one_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    console = Console(record=True, width=200)
    with dg.DagsterInstance.ephemeral() as instance:
        first = tmdb.run_tmdb(tmp_path, instance, console)
        said = console.export_text()
        assert first.well, said
        assert "entities into the graph" in first.done
        again = tmdb.run_tmdb(tmp_path, instance, console)
        assert again.well, console.export_text()
        assert again.done.startswith("3 questions answered")
    assert "《喜宴》的导演是谁" in said
    assert "3 logged" in said
    assert "movie/9261: changed in the graph; 1 edge written" in said
