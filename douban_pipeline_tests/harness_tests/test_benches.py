"""The benches of single systems, at small sizes: each comes to its figures, and ours stand beside a bare peer."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from douban_pipeline.feeds.budget_plan import BudgetPlanner
from douban_pipeline.feeds.intensity import DAY, HOUR
from douban_pipeline.feeds.scheduler import PlannedCheck
from douban_pipeline_tests.conftest import missing, server_url
from douban_pipeline_tests.harness.benchmarks import browsing
from douban_pipeline_tests.harness.benchmarks.bench import bench
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target, World
from douban_pipeline_tests.harness.benchmarks.results import read_results
from douban_pipeline_tests.harness.comments import __main__ as comments
from douban_pipeline_tests.harness.feeds import __main__ as feeds
from douban_pipeline_tests.harness.feeds import peers
from douban_pipeline_tests.harness.feeds.bundled import bundled_feeds
from douban_pipeline_tests.harness.feeds.replay import Measured, Trial, timer_delays
from douban_pipeline_tests.harness.feeds.shipped import replay_shipped
from douban_pipeline_tests.harness.reviewing import __main__ as reviewing
from douban_pipeline_tests.harness.reviewing.sitting import Openings, Sitting


@pytest.fixture
def world(tmp_path: Path) -> World:
    """What the measures are given; these use no library."""
    return World(cast(Any, None), 0, 1, tmp_path, lambda words: None)


def test_a_bench_prints_and_keeps_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench("it", iter([Figure("slow", 3.0, "s", Target(most=2))]), tmp_path / "found.json")
    assert "missed: it: slow: 3 s at 0, at most 2 s" in capsys.readouterr().out
    [outcome] = read_results(tmp_path / "found.json").outcomes
    assert outcome.figures == (Figure("slow", 3.0, "s", Target(most=2)),)


def test_a_fixed_timer_finds_pushes_half_an_interval_late() -> None:
    pushes = [np.array([start, start + 9 * DAY + 37.0 * start]) for start in range(0, 3600, 40)]
    trial = Trial.of([feed.astype(float) for feed in pushes], 4)
    delays = timer_delays(trial, 24.0)
    assert len(delays) % trial.pushes == 0
    assert 20 * 60 < delays.mean() < 40 * 60
    assert 0 <= delays.min() <= delays.max() <= 3600
    assert timer_delays(trial, 0.0).mean() == np.mean(trial.end - np.concatenate(trial.tests)), "never found"


def test_delays_are_those_of_what_is_shipped_beside_a_timer_s(world: World) -> None:
    figures = [*feeds.delays(world, feeds=2, days=1)]
    assert [figure.name for figure in figures if figure.target] == [
        "profile plan: mean delay against a timer's",
        "profile budget: mean delay against a timer's",
        "profile budget: polls made of those set",
    ]
    assert all(figure.value > 0 for figure in figures)
    assert {figure.against for figure in figures if figure.baseline} == {"a fixed timer"}


@pytest.mark.parametrize(
    ("rule", "gaps", "hours"),
    [
        # An entry a day: a week over seven entries; over one that is twice as often wanted; silent: the longest.
        (partial(peers.miniflux, factor=1, least=300, most=DAY), [24, 24, 24], 24),
        (partial(peers.miniflux, factor=2, least=300, most=DAY), [24, 24, 24], 12),
        (partial(peers.miniflux, factor=1, least=300, most=DAY), [200], 24),
        # Half the gap of two hours; at most a quarter of the longest; silent for a week, two, and a month.
        (partial(peers.commafeed, least=300, most=4 * HOUR), [1, 1, 1], 0.5),
        (partial(peers.commafeed, least=300, most=4 * HOUR), [24, 24], 1),
        (partial(peers.commafeed, least=300, most=4 * HOUR), [1, 1, 24 * 8], 1),
        (partial(peers.commafeed, least=300, most=4 * HOUR), [1, 1, 24 * 15], 2),
        (partial(peers.commafeed, least=300, most=4 * HOUR), [1, 1, 24 * 31], 4),
        # The span over all entries, between both limits.
        (partial(peers.auto_ttl, least=HOUR, most=DAY), [4, 4, 4, 0], 3),
        (partial(peers.auto_ttl, least=HOUR, most=DAY), [0.5, 0.5, 0], 1),
        (partial(peers.auto_ttl, least=HOUR, most=DAY), [4, 4, 60], 24),
        (partial(peers.superfeedr, share=0.5, most=900), [24, 24], 0.25),
        (partial(peers.superfeedr, share=0.5, most=900), [0.1, 0.1, 0], 0.05),
    ],
)
def test_other_readers_choose_their_next_poll_as_they_do(rule: peers.Wait, gaps: list[float], hours: float) -> None:
    """The last gap is that from the newest entry to now."""
    items = [0.0, *(HOUR * sum(gaps[:number]) for number in range(1, len(gaps)))]
    assert rule(items, len(items), HOUR * sum(gaps)) == pytest.approx(HOUR * hours, rel=0.01)


def test_a_plan_by_which_nothing_is_polled_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial.of([*bundled_feeds(5).values()], 1)
    later = PlannedCheck(int(trial.end) + HOUR, {"profile": "budget"})
    monkeypatch.setattr(BudgetPlanner, "next_check", lambda *_: later)
    found = Measured.of("budget", 6.0, replay_shipped("budget", trial, 6.0, settling=1), trial)
    assert (found.polls_per_day, found.hit_rate) == (0, 0)
    assert found.mean_minutes > 5 * 60


def test_a_recording_is_replayed_and_a_file_of_something_else_refused(tmp_path: Path) -> None:
    data = tmp_path / "pushes.csv.gz"
    lines = ["feed,epoch", *(f"{name},{int(t)}" for name, times in bundled_feeds(40).items() for t in times)]
    data.write_bytes(gzip.compress("\n".join(lines).encode()))
    chosen = "--budgets 6 --policies budget --days 1 --settling 0 --feeds 4 --processes 1 --scale 0"
    assert feeds.main(["--data", str(data), *chosen.split(), "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "results.json").read_text())
    assert {(each["policy"], each["group"]) for each in found} == {
        ("profile budget", "all"),
        ("profile budget", "known"),
    }
    assert (found[0]["feeds"], found[0]["polls_per_day"] > 0) == (4, True)
    other = tmp_path / "x.csv"
    other.write_text("feed,epoch\na,yesterday\n")
    assert feeds.main(["--data", str(other)]) == 2


@pytest.mark.mariadb
@pytest.mark.long
def test_comments_are_published_and_read_by_processes_of_their_own(world: World) -> None:
    server_url("mariadb")
    if shutil.which("redis-server") is None:
        missing("redis", "redis-server is not installed")
    size = comments.Size(comments=400, rate=20, seconds=1, times=2, processes=1)
    figures = [*comments.served(world, size, ("publishing", "pages"))]
    targets = [figure.name for figure in figures if figure.target]
    assert targets == ["from publishing to visible, p95", "page one", "page one, p95"]
    assert all(figure.value > 0 for figure in figures if figure.name != "page one, refused")


def test_a_queue_that_was_opened_is_told_by_its_medians_and_by_its_first_opening() -> None:
    sitting = Sitting(chosen=dict.fromkeys(range(4), 0.0), keys=5, milliseconds=[10.0] * 19 + [40.0])
    found = Openings(1_000, sitting, [3.0, 0.5, 0.7, 0.6], [1.0, 0.02, 0.04, 0.03], [9, 2_000_000, 2_000_000, 5])
    assert {figure.name: (figure.value, figure.unit) for figure in reviewing.openings(found)} == {
        "first card, service just started": (3.0, "s"),
        "first card": (0.6, "s"),
        "opening, the service's CPU": (30.0, "ms"),
        "opening, sent to the browser": (2.0, "MB"),
        "a long queue: keys a video": (1.25, ""),
        "a long queue: from a key to the next frame, p95": (10.0, "ms"),
    }


def test_without_a_browser_the_queue_is_left_out_and_said_to_be(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(browsing, "chromium", lambda: None)
    assert list(reviewing.opened_queue(replace(world, say=said.append))) == []
    assert "no Chromium" in said[0]
