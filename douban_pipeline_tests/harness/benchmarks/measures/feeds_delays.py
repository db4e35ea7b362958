"""What an operator gets of the shipped profiles over push times, and of other readers' rules at their defaults and at
their best settings, each beside a fixed timer of as many polls."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.feeds.peers import at_best, at_defaults
from douban_pipeline_tests.harness.feeds.push_times import bundled_feeds, read_push_times
from douban_pipeline_tests.harness.feeds.replay import Measured, Trial
from douban_pipeline_tests.harness.feeds.shipped import SETTLING, replay_shipped

BUDGETS = (24.0, 12.0)
PEERS = "peers"
TARGETS = {"plan": Target(most=0.75), "budget": Target(most=0.6)}
_SEED = 20210617


def measured(wanted: tuple[str, float], trial: Trial, settling: int) -> list[Measured]:
    """Return what a profile, or every other reader's rule, comes to at a budget (0: at its defaults).

    For all feeds and for those of which enough is known.
    """
    profile, budget = wanted
    if profile == PEERS:
        courses = [*(at_best(trial, budget) if budget else at_defaults(trial))]
    else:
        courses = [(f"profile {profile}", budget, replay_shipped(profile, trial, budget, settling))]
    groups = (None, trial.known) if trial.known.any() else (None,)
    found = [Measured.of(*course, trial, chosen) for course in courses for chosen in groups]
    return [each.beside_a_timer(trial) for each in found]


def delays(
    world: World,
    data: str = "",
    feeds: int = 60,
    days: int = 2,
    settling: int = SETTLING,
    peers: bool = False,
    processes: int = 2,
) -> Iterator[Figure]:
    """Replay push times: those of ``data``, a CSV of ``feed,epoch``, perhaps gzipped, or generated ones.

    Of ``feeds`` of them (0: of all), drawn with a fixed seed; the last ``days`` are the test.
    """
    chosen = list((read_push_times(Path(data)) if data else bundled_feeds()).values())
    if feeds and feeds < len(chosen):
        numbers = np.random.default_rng(_SEED).choice(len(chosen), feeds, replace=False)
        chosen = [chosen[number] for number in sorted(numbers)]
    trial = Trial.of(chosen, days)
    world.say(f"{data or 'generated push times'}: {len(chosen)} feeds, {trial.pushes} pushes in {days} days")
    # The profile plan has no budget to set: it makes the polls that its cadences ask for.
    wanted = [("budget", budget) for budget in BUDGETS] + [("plan", 0.0)]
    wanted += [(PEERS, budget) for budget in (*BUDGETS, 0.0)] if peers else []
    work = partial(measured, trial=trial, settling=settling)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for found in pool.map(work, wanted):
            for each in found:
                yield from _figures(each)


def _figures(found: Measured) -> Iterator[Figure]:
    name = f"{found.policy}{f' at {found.budget:g} a day' if found.budget else ''}"
    name += f", {found.group} ones" if found.group != "all" else ""
    note = f"{found.polls_per_day:.1f} polls a source and day, {found.feeds:,} feeds, {found.pushes:,} pushes"
    timer, against = (60 * found.timer_mean_minutes, 60 * found.timer_p95_minutes), "a fixed timer"
    yield Figure(f"{name}: delay, mean", 60 * found.mean_minutes, "s", None, timer[0], against, note)
    yield Figure(f"{name}: delay, p95", 60 * found.p95_minutes, "s", None, timer[1], against, note)
    if found.group == "all":
        yield Figure(f"{name}: polls a source and day", found.polls_per_day, "")
        profile = found.policy.removeprefix("profile ")
        if profile in TARGETS:
            ratio = found.mean_minutes / found.timer_mean_minutes
            yield Figure(f"{name}: mean delay against a timer's", ratio, "", TARGETS[profile])


MEASURES = (Measure("feeds-delays", "how late entries are found, against a fixed timer", delays, ()),)
