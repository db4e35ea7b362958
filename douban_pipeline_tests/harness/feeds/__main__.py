"""Measures what an operator gets of the shipped profiles over push times, beside other readers' rules at their defaults
and at their best settings, and each beside a fixed timer of as many polls."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from douban_pipeline_tests.harness.benchmarks.bench import bench
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.feeds.bundled import bundled_feeds
from douban_pipeline_tests.harness.feeds.peers import at_best, at_defaults
from douban_pipeline_tests.harness.feeds.push_times import PushTimesError, read_push_times
from douban_pipeline_tests.harness.feeds.replay import Measured, Trial
from douban_pipeline_tests.harness.feeds.shipped import SETTLING, replay_shipped
from douban_pipeline_tests.harness.feeds.speed import at_scale

BUDGETS = (24.0, 12.0)
SHIPPED = ("budget", "plan")
PEERS = "peers"
ALL = (*SHIPPED, PEERS)
GROUPS = {"all": "all feeds", "known": "feeds with three pushes or more before the test"}
FEEDS = 200
"""Feeds of a replay unless others are wanted: what is shipped makes every poll in its tables, 20 ms each."""
RECORDED = Path(__file__).resolve().parents[4] / "shared" / "feeds" / "push_times_dev.csv.gz"
_SEED = 20210617


def measure(wanted: tuple[str, float], trial: Trial, settling: int) -> list[Measured]:
    """Return what a profile, or every other reader's rule, comes to at a budget (0: at its defaults).

    For all feeds and for those of which enough is known, each beside a fixed timer that makes as many polls.
    """
    profile, budget = wanted
    if profile == PEERS:
        courses = [*(at_best(trial, budget) if budget else at_defaults(trial))]
    else:
        courses = [(f"profile {profile}", budget, replay_shipped(profile, trial, budget, settling))]
    groups = (None, trial.known) if trial.known.any() else (None,)
    found = [Measured.of(*course, trial, chosen) for course in courses for chosen in groups]
    return [each.beside_a_timer(trial) for each in found]


def table_of(results: Sequence[Measured], group: str = "all") -> Table:
    """Return the results of a group with their ratio to those of a fixed timer at the same polls."""
    feeds = next(item.feeds for item in results if item.group == group)
    table = Table(*("set", "policy", "polls/day", "mean", "p50", "p95", "p99", "timer", "mean ÷", "p95 ÷"))
    table.title = f"{GROUPS[group]}: {feeds:,}"
    for budget in sorted({item.budget for item in results}, reverse=True):
        some = [item for item in results if item.budget == budget and item.group == group]
        for item in sorted(some, key=lambda each: each.mean_minutes / each.timer_mean_minutes):
            minutes = (item.mean_minutes, item.p50_minutes, item.p95_minutes, item.p99_minutes)
            shown = [f"{item.polls_per_day:.2f}", *(f"{each:.1f}" for each in minutes)]
            pairs = (item.mean_minutes, item.timer_mean_minutes), (item.p95_minutes, item.timer_p95_minutes)
            ratios = [f"{mine / theirs:.3f}" for mine, theirs in pairs]
            set_to = f"{budget:g}" if budget else "—"
            table.add_row(set_to, item.policy, *shown, f"{item.timer_mean_minutes:.1f}", *ratios)
        table.add_section()
    return table


def delays(_world: World, feeds: int = 60, days: int = 2, polls: float = 24.0) -> Iterator[Figure]:
    """Replay generated push times through both shipped profiles, and over a fixed timer at the polls they made."""
    trial = Trial.of([*bundled_feeds(feeds).values()], days)
    for name, set_to, most in (("plan", 0.0, 0.75), ("budget", polls, 0.6)):
        mine = measure((name, set_to), trial, settling=1 if set_to else 0)[0]
        said = f"{mine.polls_per_day:.1f} polls a source and day, {mine.pushes:,} pushes"
        timer = {"against": "a fixed timer", "note": said}
        minutes = mine.mean_minutes, mine.timer_mean_minutes
        yield Figure(f"profile {name}: delay, mean", 60 * minutes[0], "s", None, 60 * minutes[1], **timer)
        late = mine.p95_minutes, mine.timer_p95_minutes
        yield Figure(f"profile {name}: delay, p95", 60 * late[0], "s", None, 60 * late[1], **timer)
        yield Figure(f"profile {name}: mean delay against a timer's", minutes[0] / minutes[1], "", Target(most=most))
        if set_to:
            yield Figure("profile budget: polls made of those set", mine.polls_per_day / set_to, "", Target(least=0.9))


MEASURES = (Measure("feeds-delays", "how late entries are found, against a fixed timer", delays, ()),)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write ``results.json``; return the exit status."""
    parser = argparse.ArgumentParser(prog="make bench-feeds", description=__doc__)
    parser.add_argument("--data", type=Path, help="CSV of feed,epoch, perhaps gzipped")
    parser.add_argument("--out", type=Path, default=Path(".douban_pipeline/bench-feeds"), help="folder of results.json")
    parser.add_argument("--days", type=int, default=4, help="days at the end that are the test")
    parser.add_argument("--budgets", type=float, nargs="+", default=BUDGETS, help="polls a feed and day")
    parser.add_argument("--settling", type=int, default=SETTLING, help="days before, in which what is shipped settles")
    parser.add_argument("--policies", nargs="+", choices=ALL, default=ALL, help="what is replayed")
    parser.add_argument("--feeds", type=int, default=FEEDS, help="feeds, drawn with a fixed seed; 0: all of them")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--scale", type=int, default=1000, help="sources on loopback that show the cost; 0: none")
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
    # The profile plan has no budget to set: it makes the polls that its cadences ask for.
    wanted = [(name, budget) for name in given.policies if name != "plan" for budget in given.budgets]
    wanted += [(name, 0.0) for name in given.policies if name != "budget"]
    work = partial(measure, trial=trial, settling=given.settling)
    with ProcessPoolExecutor(given.processes) as pool:
        results = [item for found in pool.map(work, wanted) for item in found]
    for group in GROUPS:
        if any(item.group == group for item in results):
            console.print(table_of(results, group))
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "results.json"
    path.write_text(json.dumps([item.to_json() for item in results], indent=1) + "\n", encoding="utf-8")
    if given.scale:
        with tempfile.TemporaryDirectory() as folder:
            bench("feeds", at_scale(Path(folder), given.scale), given.out / "scale.json")
    console.print(f"{path} in {time.monotonic() - began:.0f} s", markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
