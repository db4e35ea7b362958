"""Compares polling policies at equal polls, over recorded or generated push times."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from douban_pipeline_tests.harness.feeds.bundled import bundled_feeds
from douban_pipeline_tests.harness.feeds.policies import POLICIES
from douban_pipeline_tests.harness.feeds.push_times import PushTimesError, read_push_times
from douban_pipeline_tests.harness.feeds.replay import Measured, Trial, at_budget

BUDGETS = (24.0, 12.0, 6.0)
RECORDED = Path(__file__).resolve().parents[4] / "shared" / "feeds" / "push_times_dev.csv.gz"
_SEED = 20210617


def measure(name: str, trial: Trial, budgets: Sequence[float]) -> list[Measured]:
    """Return one policy at each budget."""
    kind, scale = POLICIES[name]
    found = []
    for budget in budgets:
        measured, used = at_budget(
            name, trial, lambda scale: kind(trial.history, trial.start, scale, _SEED), budget, scale * 24 / budget
        )
        scale = used * budget / 24
        found.append(measured)
    return found


def table_of(results: Sequence[Measured]) -> Table:
    """Return the results with their ratio to the fixed timer's."""
    table = Table("polls", "policy", "mean", "p50", "p95", "p99", "hit rate", "polls/day", "mean ÷", "p95 ÷")
    for budget in sorted({item.budget for item in results}, reverse=True):
        some = [item for item in results if item.budget == budget]
        fixed = next((item for item in some if item.policy == "fixed"), None)
        for item in some:
            minutes = (item.mean_minutes, item.p50_minutes, item.p95_minutes, item.p99_minutes)
            ratios = ("", "")
            if fixed:
                pairs = (item.mean_minutes, fixed.mean_minutes), (item.p95_minutes, fixed.p95_minutes)
                ratios = tuple(f"{mine / theirs:.3f}" for mine, theirs in pairs)  # type: ignore[assignment]
            shown = (*(f"{each:.1f}" for each in minutes), f"{item.hit_rate:.3f}", f"{item.polls_per_day:.2f}")
            table.add_row(f"{budget:g}", item.policy, *shown, *ratios)
        table.add_section()
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write ``results.json``; return the exit status."""
    parser = argparse.ArgumentParser(prog="make bench-feeds", description=__doc__)
    parser.add_argument("--data", type=Path, help="CSV of feed,epoch, perhaps gzipped")
    parser.add_argument("--out", type=Path, default=Path(".douban_pipeline/bench-feeds"), help="folder of results.json")
    parser.add_argument("--days", type=int, default=4, help="days at the end that are the test")
    parser.add_argument("--budgets", type=float, nargs="+", default=BUDGETS, help="polls a feed and day")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--feeds", type=int, help="take only so many feeds, drawn with a fixed seed")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    console = Console(width=110)
    began = time.monotonic()
    data = given.data or (RECORDED if RECORDED.exists() else None)
    try:
        feeds = list((read_push_times(data) if data else bundled_feeds()).values())
    except (PushTimesError, OSError) as error:
        console.print(f"error: {error}", markup=False)
        return 2
    if given.feeds and given.feeds < len(feeds):
        chosen = np.random.default_rng(_SEED).choice(len(feeds), given.feeds, replace=False)
        feeds = [feeds[number] for number in sorted(chosen)]
    trial = Trial.of(feeds, given.days)
    console.print(f"{data or 'generated push times'}: {len(feeds)} feeds, {trial.pushes} pushes in {given.days} days")
    work = partial(measure, trial=trial, budgets=given.budgets)
    with ProcessPoolExecutor(given.processes) as pool:
        results = [item for found in pool.map(work, given.policies) for item in found]
    console.print(table_of(results))
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "results.json"
    path.write_text(json.dumps([item.to_json() for item in results], indent=1) + "\n", encoding="utf-8")
    console.print(f"{path} in {time.monotonic() - began:.0f} s", markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
