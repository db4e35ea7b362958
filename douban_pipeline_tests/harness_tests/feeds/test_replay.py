"""The replay of push times: what it measures, that it is the same twice, and that our profiles win in it."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from douban_pipeline_tests.harness.feeds import __main__ as command
from douban_pipeline_tests.harness.feeds.bundled import bundled_feeds
from douban_pipeline_tests.harness.feeds.policies import POLICIES, FixedTimer
from douban_pipeline_tests.harness.feeds.push_times import PushTimesError, read_push_times
from douban_pipeline_tests.harness.feeds.replay import Trial, at_budget, replay

DAY = 86_400.0


def test_a_fixed_timer_finds_pushes_half_an_interval_late() -> None:
    feeds = [np.array([start, start + 9 * DAY + 37.0 * start]) for start in range(0, 3600, 40)]
    trial = Trial.of([feed.astype(float) for feed in feeds], 4)
    polls, hit_rate, delays = replay(trial, FixedTimer(trial.history, trial.start, 1.0))
    assert polls == pytest.approx(24, abs=0.5)
    assert hit_rate == pytest.approx(trial.pushes / (polls * 4 * len(feeds)), rel=0.05)
    assert 20 * 60 < delays.mean() < 40 * 60
    assert delays.max() <= 3660


def test_our_profiles_beat_the_timer_at_equal_polls() -> None:
    trial = Trial.of([*bundled_feeds(150).values()], 2)
    found = {}
    for name in ("fixed", "plan", "budget"):
        kind, scale = POLICIES[name]
        made = partial(kind, trial.history, trial.start, seed=1)
        found[name], _ = at_budget(name, trial, made, 24, scale, 5)
        assert found[name].polls_per_day == pytest.approx(24, rel=0.1)
    assert found["plan"].mean_minutes < 0.66 * found["fixed"].mean_minutes
    assert found["budget"].mean_minutes < 0.5 * found["fixed"].mean_minutes
    assert found["budget"].p95_minutes < found["plan"].p95_minutes


def test_results_are_the_same_twice_and_hold_every_field(tmp_path: Path) -> None:
    data = tmp_path / "pushes.csv.gz"
    lines = ["feed,epoch", *(f"{name},{int(t)}" for name, times in bundled_feeds(40).items() for t in times)]
    data.write_bytes(gzip.compress("\n".join(lines).encode()))
    options = ["--data", str(data), "--budgets", "24", "--policies", "fixed", "plan", "--days", "1", "--processes", "1"]
    results = []
    for folder in ("a", "b"):
        assert command.main([*options, "--out", str(tmp_path / folder)]) == 0
        results.append(json.loads((tmp_path / folder / "results.json").read_text()))
    assert results[0] == results[1]
    fields = "policy budget polls_per_day mean_minutes p50_minutes p95_minutes p99_minutes hit_rate feeds pushes"
    assert [set(each) for each in results[0]] == [set(fields.split())] * 2


def test_a_file_without_push_times_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("feed,epoch\na,yesterday\n")
    with pytest.raises(PushTimesError, match="line 2"):
        read_push_times(path)
    assert command.main(["--data", str(path)]) == 2
