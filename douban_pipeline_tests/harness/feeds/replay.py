"""The feeds of a replay, what a policy came to, and a fixed timer, which every one stands beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from douban_pipeline.feeds.intensity import DAY, Floats

_SEED = 20210617


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

    def beside_a_timer(self, trial: Trial) -> Measured:
        """Return it beside a fixed timer that makes as many polls."""
        minutes = timer_delays(trial, self.polls_per_day) / 60
        return replace(
            self, timer_mean_minutes=float(minutes.mean()), timer_p95_minutes=float(np.percentile(minutes, 95))
        )

    def to_json(self) -> dict[str, object]:
        """Return it as results keep it."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def timer_delays(trial: Trial, polls_per_day: float) -> Floats:
    """Return how late each push is found, in seconds, by a timer that begins anywhere in its interval for each feed.

    A push that is not found by the end counts as found then, as it does for what is shipped.
    """
    interval = DAY / polls_per_day if polls_per_day else np.inf
    first = trial.start + np.random.default_rng(_SEED).random(len(trial.tests)) * min(interval, DAY)
    delays = [
        np.minimum((at - test) % interval if np.isfinite(interval) else np.inf, trial.end - test)
        for at, test in zip(first, trial.tests, strict=True)
    ]
    return np.concatenate(delays)
