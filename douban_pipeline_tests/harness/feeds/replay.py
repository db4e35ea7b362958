"""The feeds of a replay, what a policy came to, and a fixed timer, which every one stands beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from douban_pipeline.feeds.intensity import DAY, Floats

SHOWN = 20
"""Entries that a feed shows."""
LEAST_KNOWN = 3
"""Pushes before the test from which a feed's habits can be known."""
_SEED = 20210617
_PHASES = 20
"""Times that the fixed timer is tried, each begun elsewhere: one alone would be off by as much as what it is beside."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The feeds of a replay."""

    items: Sequence[Floats]
    history: Sequence[Floats]
    tests: Sequence[Floats]
    start: int
    end: int

    @classmethod
    def of(cls, feeds: Sequence[Floats], days: int) -> Trial:
        """Return the trial whose test is the last ``days`` of the recording."""
        end = int(max(feed.max() for feed in feeds)) + 1
        start = end - days * DAY
        history = [feed[feed < start] for feed in feeds]
        return cls(feeds, history, [np.unique(feed[feed >= start]) for feed in feeds], start, end)

    @property
    def days(self) -> float:
        """Length of the test in days."""
        return (self.end - self.start) / DAY

    @property
    def known(self) -> NDArray[np.bool_]:
        """Return which feeds had three pushes or more before the test."""
        return np.array([len(np.unique(feed)) >= LEAST_KNOWN for feed in self.history])

    @property
    def pushes(self) -> int:
        """Distinct pushes in the test."""
        return sum(map(len, self.tests))


@dataclass(frozen=True, slots=True)
class Course:
    """What a policy did in a test, by feed: polls, and how late each push was found, in seconds; one that was not found
    by the end counts as found then."""

    polls: Floats
    delays: Sequence[Floats]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a policy came to; delays in minutes, polls a feed and day.

    ``timer_mean_minutes`` and ``timer_p95_minutes`` are those of a fixed timer that made as many polls; ``group`` is
    ``all`` feeds, or those that were ``known`` before the test.
    """

    policy: str
    budget: float
    polls_per_day: float
    mean_minutes: float
    p95_minutes: float
    feeds: int
    pushes: int
    timer_mean_minutes: float = 0.0
    timer_p95_minutes: float = 0.0
    group: str = "all"

    @classmethod
    def of(
        cls, policy: str, budget: float, course: Course, trial: Trial, chosen: NDArray[np.bool_] | None = None
    ) -> Measured:
        """Return what a policy came to for all feeds, or for those ``chosen``; ``budget`` 0: none was set."""
        rows = np.flatnonzero(np.ones(len(trial.tests), dtype=bool) if chosen is None else chosen)
        minutes = np.concatenate([course.delays[int(row)] for row in rows]) / 60
        polls = float(course.polls[rows].sum()) / len(rows) / trial.days
        delays = float(minutes.mean()), float(np.percentile(minutes, 95))
        group = "all" if chosen is None else "known"
        return cls(policy, budget, polls, *delays, len(rows), len(minutes), group=group)

    def beside_a_timer(self, trial: Trial) -> Measured:
        """Return it beside a fixed timer that makes as many polls of the same feeds."""
        chosen = None if self.group == "all" else trial.known
        minutes = timer_delays(trial, self.polls_per_day, chosen) / 60
        return replace(
            self, timer_mean_minutes=float(minutes.mean()), timer_p95_minutes=float(np.percentile(minutes, 95))
        )


def timer_delays(trial: Trial, polls_per_day: float, chosen: NDArray[np.bool_] | None = None) -> Floats:
    """Return how late each push is found, in seconds, by a timer that begins anywhere in its interval for each feed.

    A push that is not found by the end counts as found then, as it does for every policy. Each push is there `_PHASES`
    times, each time found by a timer that began elsewhere.
    """
    interval = DAY / polls_per_day if polls_per_day else np.inf
    random = np.random.default_rng(_SEED)
    wanted = np.ones(len(trial.tests), dtype=bool) if chosen is None else chosen
    delays = []
    for _ in range(_PHASES):
        first = trial.start + random.random(len(trial.tests)) * min(interval, DAY)
        delays += [
            np.minimum((at - test) % interval if np.isfinite(interval) else np.inf, trial.end - test)
            for at, test, taken in zip(first, trial.tests, wanted, strict=True)
            if taken
        ]
    return np.concatenate(delays)
