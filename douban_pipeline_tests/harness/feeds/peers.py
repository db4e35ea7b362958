"""How other feed readers choose the next poll, as rules of a few lines, replayed over push times.

The rules were read in the programs' sources (miniflux `ScheduleNextCheck` and `WeeklyFeedEntryCount`, CommaFeed
`FeedRefreshIntervalCalculator`, FreshRSS's TTL and its extension AutoTTL) and, for Superfeedr, in its maker's answers.
Each is given what a perfect run of it would have: no ticks in between, no failures, and entries as the feed lists them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from douban_pipeline.feeds.intensity import DAY, HOUR
from douban_pipeline_tests.harness.feeds.replay import SHOWN, Course, Measured, Trial

Wait = Callable[[Sequence[float], int, float], float]
"""Seconds to the next poll, from a feed's items, how many of them are known, and the current time."""

MINUTE, WEEK = 60, 7 * DAY
_SEED = 20210617
_PHASES = 5
_NEAR = 0.01
"""Share by which polls may differ from those that are set, for a setting to count as one of that budget."""


def every(seconds: float) -> Wait:
    """Return a fixed timer: miniflux's round_robin, and FreshRSS's TTL."""
    return lambda _items, _known, _now: seconds


def miniflux(items: Sequence[float], known: int, now: float, *, factor: float, least: float, most: float) -> float:
    """Return the wait of entry_frequency: a week over the entries a week, as the last seven days' gaps foresee them."""
    first = bisect_left(items, now - WEEK, 0, known)
    count = known - first
    span = items[known - 1] - items[first] if count > 1 else 0.0
    if span <= 0:
        return most
    weekly = math.ceil(WEEK * (count - 1) / span)
    return max(min(WEEK / (weekly * factor), most), least)


def commafeed(items: Sequence[float], known: int, now: float, *, least: float, most: float) -> float:
    """Return the wait of the empirical interval: half the mean gap, at most a quarter of the longest, unless silent."""
    if not known:
        return most
    silent = (now - items[known - 1]) // DAY
    if silent >= 7:
        return max(most / (1 if silent >= 30 else 2 if silent >= 14 else 4), least)
    gap = _gap(items, known)
    return most if gap is None else min(max(min(gap / 2, most / 4), least), most)


def auto_ttl(items: Sequence[float], known: int, now: float, *, least: float, most: float) -> float:
    """Return the wait of FreshRSS's AutoTTL: the mean gap of all entries, between the default TTL and the longest."""
    gap = (items[known - 1] - items[0]) / known if known else 0.0
    if gap == 0 or gap > most or now - items[known - 1] > 2 * most:
        return max(most, least)
    return max(gap, least)


def superfeedr(items: Sequence[float], known: int, now: float, *, share: float, most: float) -> float:
    """Return the wait of a timer as Superfeedr's: every minute for busy feeds, and for all at least every ``most``."""
    gap = _gap(items, known)
    return most if gap is None or now - items[known - 1] > WEEK else min(max(gap * share, MINUTE), most)


def _gap(items: Sequence[float], known: int) -> float | None:
    listed = min(known, SHOWN)
    return (items[known - 1] - items[known - listed]) / (listed - 1) if listed > 1 else None


def replay(trial: Trial, wait: Wait, phases: int = 1) -> Course:
    """Return what a rule comes to; each feed's first poll is anywhere within its first wait, as often as ``phases``."""
    random = np.random.default_rng(_SEED)
    found = [_replay(trial, wait, random) for _ in range(phases)]
    delays = [np.concatenate(each) for each in zip(*(course.delays for course in found), strict=True)]
    return Course(np.mean([course.polls for course in found], axis=0), delays)


def _replay(trial: Trial, wait: Wait, random: np.random.Generator) -> Course:
    polls = np.zeros(len(trial.tests))
    delays = []
    for row, (given, pushes) in enumerate(zip(trial.items, trial.tests, strict=True)):
        items, waiting = given.tolist(), pushes.tolist()
        late, done = [], 0
        now = trial.start + random.random() * wait(items, bisect_right(items, trial.start), trial.start)
        while now < trial.end:
            polls[row] += 1
            found = bisect_right(waiting, now)
            late += [now - each for each in waiting[done:found]]
            done = found
            now += wait(items, bisect_right(items, now), now)
        late += [trial.end - each for each in waiting[done:]]
        delays.append(np.array(late))
    return Course(polls, delays)


DEFAULTS: dict[str, Wait] = {
    "miniflux round_robin, FreshRSS: 60 min": every(HOUR),
    "miniflux entry_frequency": partial(miniflux, factor=1, least=5 * MINUTE, most=DAY),
    "CommaFeed": partial(commafeed, least=5 * MINUTE, most=4 * HOUR),
    "FreshRSS with AutoTTL": partial(auto_ttl, least=HOUR, most=DAY),
    "Superfeedr-like": partial(superfeedr, share=0.5, most=15 * MINUTE),
}
"""The rules at their defaults."""

_LONGEST = [hours * HOUR for hours in (24, 16, 12, 8, 6, 4, 3, 2, 1.5, 1, 0.75)]


def _frequencies(most: float, free: float) -> Wait:
    return partial(miniflux, factor=1 / free, least=MINUTE, most=most)


def _empirical(most: float, free: float) -> Wait:
    return partial(commafeed, least=free, most=4 * most)


def _ttls(most: float, free: float) -> Wait:
    return partial(auto_ttl, least=free, most=most)


def _shares(share: float, free: float) -> Wait:
    return partial(superfeedr, share=share, most=free)


@dataclass(frozen=True, slots=True)
class Family:
    """The settings of a rule: one of some values, and a number of which larger ones mean fewer polls."""

    wait: Callable[[float, float], Wait]
    values: Sequence[float]
    least: float = MINUTE
    most: float = DAY


FAMILIES = {
    "miniflux entry_frequency": Family(_frequencies, _LONGEST, 1e-3, 1e2),
    "CommaFeed": Family(_empirical, _LONGEST),
    "FreshRSS with AutoTTL": Family(_ttls, _LONGEST),
    "Superfeedr-like": Family(_shares, (0.5, 0.25, 0.1, 0.03, 0.01)),
}


def at_defaults(trial: Trial) -> Iterator[tuple[str, float, Course]]:
    """Yield each rule at its default: name, 0 for no budget, and what it came to."""
    for name, wait in DEFAULTS.items():
        yield f"{name}, default", 0.0, replay(trial, wait, _PHASES)


def at_best(trial: Trial, budget: float) -> Iterator[tuple[str, float, Course]]:
    """Yield each rule at the settings that make ``budget`` polls a feed and day with the least mean delay.

    They are chosen on the test itself, which no operator could: to the rules' advantage.
    """
    for name, family in FAMILIES.items():
        found = [each for value in family.values if (each := _at_budget(trial, family, value, budget)) is not None]
        if found:
            best = min(found, key=lambda each: Measured.of(name, budget, replay(trial, each), trial).mean_minutes)
            yield f"{name}, best", budget, replay(trial, best, _PHASES)


def _at_budget(trial: Trial, family: Family, value: float, budget: float) -> Wait | None:
    low, high = family.least, family.most
    wanted = budget * trial.days * len(trial.tests)
    for _ in range(22):
        middle = math.sqrt(low * high)
        wait = family.wait(value, middle)
        made = float(replay(trial, wait).polls.sum())
        if abs(made - wanted) <= _NEAR * wanted:
            return wait
        low, high = (middle, high) if made > wanted else (low, middle)
    return None
