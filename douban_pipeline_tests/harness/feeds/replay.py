"""Replays push times against a policy, without HTTP: what its polls would have found, and how late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from douban_pipeline.feeds.intensity import DAY, Floats
from douban_pipeline_tests.harness.feeds.policies import Policy

STEP = 60
"""Seconds between two moments at which a policy may ask."""
_NEAR = 0.004
"""How near to the budget counts as equal."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The feeds of a replay: their history, and the distinct pushes of the test."""

    history: Sequence[Floats]
    tests: Sequence[Floats]
    start: int
    end: int

    @classmethod
    def of(cls, feeds: Sequence[Floats], days: int) -> Trial:
        """Return the trial whose test is the last ``days`` of the recording."""
        end = int(max(feed.max() for feed in feeds)) + 1
        start = end - days * DAY
        return cls(
            [feed[feed < start] for feed in feeds], [np.unique(feed[feed >= start]) for feed in feeds], start, end
        )

    @property
    def days(self) -> float:
        """Length of the test in days."""
        return (self.end - self.start) / DAY

    @property
    def pushes(self) -> int:
        """Distinct pushes in the test."""
        return sum(map(len, self.tests))


@dataclass(frozen=True, slots=True)
class Measured:
    """What a policy came to; delays in minutes, polls a feed and day.

    ``timer_mean_minutes`` and ``timer_p95_minutes`` are those of a fixed timer that made as many polls.
    """

    policy: str
    budget: float
    polls_per_day: float
    mean_minutes: float
    p50_minutes: float
    p95_minutes: float
    p99_minutes: float
    hit_rate: float
    feeds: int
    pushes: int
    timer_mean_minutes: float = 0.0
    timer_p95_minutes: float = 0.0

    def beside(self, timer: Measured) -> Measured:
        """Return it beside a fixed timer."""
        return replace(self, timer_mean_minutes=timer.mean_minutes, timer_p95_minutes=timer.p95_minutes)

    def to_json(self) -> dict[str, object]:
        """Return it as results keep it."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def replay(trial: Trial, policy: Policy) -> tuple[float, float, Floats]:
    """Return polls a feed and day, the share of polls that found something, and the delay of every push in seconds.

    A push that was not found by the end counts as found then.
    """
    sizes = [len(test) for test in trial.tests]
    ends = np.cumsum(sizes)
    place = ends - sizes
    moments = np.append(np.concatenate(list(trial.tests)), np.inf)
    delays = np.zeros(trial.pushes)
    last = np.full(len(sizes), float(trial.start))
    polls = hits = 0
    for now in range(trial.start + STEP, trial.end + STEP, STEP):
        asked = policy.due(now, last)
        if not len(asked):
            continue
        polls += len(asked)
        last[asked] = now
        waiting = asked[(place[asked] < ends[asked]) & (moments[place[asked]] <= now)]
        for feed in waiting:
            first, end = place[feed], ends[feed]
            past = first + int(np.searchsorted(moments[first:end], now, side="right"))
            delays[first:past] = now - moments[first:past]
            policy.found(int(feed), moments[first:past])
            place[feed] = past
        hits += len(waiting)
        policy.asked(asked, now)
    for feed in np.flatnonzero(place < ends):
        delays[place[feed] : ends[feed]] = trial.end - moments[place[feed] : ends[feed]]
    return polls / len(sizes) / trial.days, hits / max(polls, 1), delays


def at_budget(
    name: str, trial: Trial, make: Callable[[float], Policy], budget: float, scale: float, tries: int = 9
) -> tuple[Measured, float]:
    """Return what a policy comes to at the scale at which it costs ``budget`` polls a feed and day, and that scale.

    A policy whose bounds do not let it come there is measured at the nearest it does.
    """
    tried: list[tuple[float, float]] = []
    while True:
        polls, hit_rate, delays = replay(trial, make(scale))
        tried.append((np.log(scale), np.log(polls)))
        miss = np.log(budget) - np.log(polls)
        if abs(miss) < _NEAR or len(tried) == tries:
            break
        # The secant of the last two, which are nearly on a line; the first step takes polls as inverse to the scale.
        slope = -1.0
        if len(tried) > 1 and tried[-1][0] != tried[-2][0]:
            slope = min((tried[-1][1] - tried[-2][1]) / (tried[-1][0] - tried[-2][0]), -0.2)
        scale = float(np.exp(tried[-1][0] + miss / slope))
    minutes = delays / 60
    p50, p95, p99 = np.percentile(minutes, [50, 95, 99])
    measured = Measured(
        *(name, budget, polls, float(minutes.mean()), float(p50), float(p95), float(p99), hit_rate),
        *(len(trial.history), trial.pushes),
    )
    return measured, scale
