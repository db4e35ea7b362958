"""The replay of push times: what it measures, that it is the same twice, and that our profiles win in it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from douban_pipeline.feeds.intensity import HOUR
from douban_pipeline.feeds.planning import BudgetPlanner
from douban_pipeline.feeds.scheduler import PlannedCheck
from douban_pipeline_tests.harness.feeds import __main__ as command
from douban_pipeline_tests.harness.feeds.__main__ import measure
from douban_pipeline_tests.harness.feeds.bundled import bundled_feeds
from douban_pipeline_tests.harness.feeds.policies import FixedTimer
from douban_pipeline_tests.harness.feeds.push_times import PushTimesError, read_push_times
from douban_pipeline_tests.harness.feeds.replay import Trial, replay
from douban_pipeline_tests.harness.feeds.shipped import measure_shipped

DAY = 86_400.0


def test_a_fixed_timer_finds_pushes_half_an_interval_late() -> None:
    feeds = [np.array([start, start + 9 * DAY + 37.0 * start]) for start in range(0, 3600, 40)]
    trial = Trial.of([feed.astype(float) for feed in feeds], 4)
    polls, hit_rate, delays = replay(trial, FixedTimer(trial.history, trial.start, 1.0))
    assert polls == pytest.approx(24, abs=0.5)
    assert hit_rate == pytest.approx(trial.pushes / (polls * 4 * len(feeds)), rel=0.05)
    assert 20 * 60 < delays.mean() < 40 * 60
    assert delays.max() <= 3660


def test_what_is_shipped_is_what_is_replayed(tmp_path: Path) -> None:
    # Every poll goes through the poller, and the next one through the planner: their rows are what is measured.
    trial = Trial.of([*bundled_feeds(10).values()], 1)
    found = measure(("budget", 6.0), trial, settling=1)
    assert found.polls_per_day == pytest.approx(6, rel=0.4)
    assert (found.feeds, found.pushes) == (len(trial.history), trial.pushes)
    assert found.timer_mean_minutes > 0


def test_a_plan_by_which_nothing_is_polled_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial.of([*bundled_feeds(5).values()], 1)
    later = PlannedCheck(int(trial.end) + HOUR, {"profile": "budget"})
    monkeypatch.setattr(BudgetPlanner, "next_check", lambda *_: later)
    found = measure_shipped("budget", trial, 6.0, settling=1)
    assert (found.polls_per_day, found.hit_rate) == (0, 0)
    assert found.mean_minutes > 5 * 60


def test_results_are_the_same_twice_and_hold_every_field(tmp_path: Path) -> None:
    data = tmp_path / "pushes.csv.gz"
    lines = ["feed,epoch", *(f"{name},{int(t)}" for name, times in bundled_feeds(40).items() for t in times)]
    data.write_bytes(gzip.compress("\n".join(lines).encode()))
    chosen = "--budgets 6 --policies budget plan --days 1 --settling 0 --feeds 4 --processes 1"
    options = ["--data", str(data), *chosen.split()]
    results = []
    for folder in ("a", "b"):
        assert command.main([*options, "--out", str(tmp_path / folder)]) == 0
        results.append(json.loads((tmp_path / folder / "results.json").read_text()))
    # The jitter of the profile plan is drawn anew.
    assert results[0][0] == results[1][0]
    fields = "policy budget polls_per_day mean_minutes p50_minutes p95_minutes p99_minutes hit_rate feeds pushes"
    fields += " timer_mean_minutes timer_p95_minutes"
    assert [set(each) for each in results[0]] == [set(fields.split())] * 2
    assert [(each["policy"], each["budget"]) for each in results[0]] == [("budget", 6.0), ("plan", 0.0)]


def test_a_file_without_push_times_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("feed,epoch\na,yesterday\n")
    with pytest.raises(PushTimesError, match="line 2"):
        read_push_times(path)
    assert command.main(["--data", str(path)]) == 2
