"""The measures of what people meet of the systems, at small sizes: each comes to its figures."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from douban_pipeline_tests.conftest import missing, server_url
from douban_pipeline_tests.harness.benchmarks import browsing
from douban_pipeline_tests.harness.benchmarks.measures import as_met
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, World
from douban_pipeline_tests.harness.benchmarks.report import rows_of
from douban_pipeline_tests.harness.benchmarks.results import Outcome, Results
from douban_pipeline_tests.harness.reviewing.sitting import Openings, Sitting


@pytest.fixture
def world(tmp_path: Path) -> World:
    """What the measures are given; these use no library."""
    return World(cast(Any, None), 0, 1, tmp_path, lambda words: None)


def results(measure: str, figures: Sequence[Figure]) -> Results:
    return Results(datetime.now(UTC), 1, (), {}, [Outcome(measure, 0, 1.0, tuple(figures))])


def test_delays_are_beside_those_of_a_timer_and_can_be_compared(world: World) -> None:
    figures = [*as_met.delays(world, feeds=4, days=1)]
    assert [figure.name for figure in figures if figure.target] == [
        "profile plan: mean delay against a timer's",
        "profile budget: mean delay against a timer's",
        "profile budget: polls made of those set",
    ]
    assert all(figure.value > 0 for figure in figures)
    assert {figure.against for figure in figures if figure.baseline} == {"a fixed timer"}
    twice = [replace(figure, value=2 * figure.value) for figure in figures]
    rows = rows_of(results("feeds-delays", twice), results("feeds-delays", figures))
    assert {row.since for row in rows} == {"2.00×"}


@pytest.mark.mariadb
@pytest.mark.long
def test_comments_are_published_and_read_by_processes_of_their_own(world: World) -> None:
    server_url("mariadb")
    if shutil.which("redis-server") is None:
        missing("redis", "redis-server is not installed")
    figures = [*as_met.comments(world, seconds=1, rate=20)]
    assert len(figures) == 6
    assert all(figure.value > 0 for figure in figures)
    assert len([figure for figure in figures if figure.target]) == 3


def test_a_queue_that_was_opened_is_told_by_its_medians_and_by_its_first_opening() -> None:
    sitting = Sitting(chosen=dict.fromkeys(range(4), 0.0), keys=5, milliseconds=[10.0] * 19 + [40.0])
    found = Openings(1_000, sitting, [3.0, 0.5, 0.7, 0.6], [1.0, 0.02, 0.04, 0.03], [9, 2_000_000, 2_000_000, 5])
    figures = [*as_met.openings(found)]
    assert {figure.note for figure in figures} == {"1,000 videos wait", ""}
    assert {figure.name: (figure.value, figure.unit) for figure in figures} == {
        "first card, service just started": (3.0, "s"),
        "first card": (0.6, "s"),
        "opening, the service's CPU": (30.0, "ms"),
        "opening, sent to the browser": (2.0, "MB"),
        "keys a video": (1.25, ""),
        "from a key to the next frame, p95": (10.0, "ms"),
    }


def test_without_a_browser_the_queue_is_left_out_and_said_to_be(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(browsing, "chromium", lambda: None)
    assert list(as_met.review(replace(world, say=said.append))) == []
    assert "no Chromium" in said[0]
