"""The demo of followed sources: every kind gives entries, every fault ends in its state, and the page is written."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from rich.console import Console
from sqlalchemy import create_engine, select

from douban_pipeline.demo import feeds
from douban_pipeline.feeds.store.tables import entry, poll, source, stats


def _polls(home: Path) -> list[int]:
    engine = create_engine(f"sqlite:///{home / 'feeds.sqlite'}")
    with engine.connect() as connection:
        found = list(connection.execute(select(poll.c.poll_id)).scalars())
    engine.dispose()
    return found


def test_eight_hours_of_a_dozen_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    console = Console(record=True, width=160)
    with dg.DagsterInstance.ephemeral() as instance:
        first = feeds.run_feeds(tmp_path, instance, console)
        assert first.well
        asked = len(_polls(tmp_path))
        assert first.done.startswith(f"{asked} polls of 12 sources")
        again = feeds.run_feeds(tmp_path, instance, console)
        assert again.well
        # Only what came due while the first one was looked at; never those hours again.
        assert len(_polls(tmp_path)) - asked <= 12
    engine = create_engine(f"sqlite:///{tmp_path / 'feeds.sqlite'}")
    with engine.connect() as connection:
        rows = connection.execute(
            select(source.c.title, source.c.state, stats.c.error_kind, stats.c.hit_count).join_from(
                source, stats, source.c.source_id == stats.c.source_id
            )
        ).all()
        kinds = set(connection.execute(select(entry.c.source_id).distinct()).scalars())
    engine.dispose()
    assert len(rows) == 12
    assert len(kinds) == 8
    ended = {row.title: (row.state, row.error_kind) for row in rows if not row.hit_count}
    assert ended == {
        "坏掉的源": ("active", "answer unreadable"),
        "网页冒充的源": ("active", "answer unreadable"),
        "要登录的源": ("active", "HTTP 401 unauthorised"),
        "停更的源": ("gone", "HTTP 410 gone"),
    }
    assert "polls in 8.0 hours" in console.export_text()
    assert "坏掉的源" in (tmp_path / "reports" / "feeds.html").read_text(encoding="utf-8")
