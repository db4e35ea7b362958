"""Polling policies over replayed push times: what is asked when, given what earlier polls have seen.

Each keeps the moment of every feed's next look; a policy's intervals are multiplied by its ``scale``, by which all are
brought to the same number of polls. They are written from the documentation and source of others; what this project
ships is not among them, and runs itself: see `shipped`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta, timezone

import numpy as np

from douban_pipeline.feeds import cadence
from douban_pipeline.feeds.intensity import (
    DAY,
    HOUR,
    SLOT,
    SLOTS,
    Floats,
    Integers,
    Knowledge,
    everyone_of,
    smoothed,
)
from douban_pipeline_tests.harness.feeds.push_times import OFFSET

ZONE = timezone(timedelta(seconds=OFFSET))
_RENEWED = 6 * HOUR


class Policy(ABC):
    """A policy at work on some feeds; feeds are numbers from 0.

    Args:
        history: Times of each feed that are known at the start, ascending, doubles included.
        start: When the replay begins.
        scale: What its intervals are multiplied by.
        seed: Of everything random.
    """

    def __init__(self, history: Sequence[Floats], start: float, scale: float, seed: int = 0) -> None:
        self.scale = scale
        self.random = np.random.default_rng(seed)
        self.known = [list(feed[-40:]) for feed in history]
        self.due_at = np.full(len(history), start)
        self.begin(start)

    @abstractmethod
    def begin(self, start: float) -> None:
        """Set `due_at` for the first time."""

    def due(self, now: float, last: Floats) -> Integers:
        """Return the feeds to ask now."""
        return np.flatnonzero(self.due_at <= now)

    def found(self, feed: int, times: Floats) -> None:
        """Learn of new publications."""
        self.known[feed].extend(times)

    @abstractmethod
    def asked(self, feeds: Integers, now: float) -> None:
        """Plan the next look of feeds that were just asked."""


class IntervalPolicy(Policy):
    """Waits an interval that depends on a feed's publications alone."""

    def begin(self, start: float) -> None:
        """Begin somewhere in the first interval."""
        waits = np.array([self.interval(feed, start) for feed in range(len(self.known))])
        self.due_at = start + self.random.random(len(waits)) * waits * self.scale

    @abstractmethod
    def interval(self, feed: int, now: float) -> float:
        """Return seconds to the next look."""

    def asked(self, feeds: Integers, now: float) -> None:
        """Wait an interval."""
        self.due_at[feeds] = now + self.scale * np.array([self.interval(int(feed), now) for feed in feeds])


class FixedTimer(IntervalPolicy):
    """Every feed once an hour."""

    def interval(self, feed: int, now: float) -> float:
        """Return an hour."""
        return HOUR


class Miniflux(IntervalPolicy):
    """miniflux, entry_frequency: a week over the publications a week, from the gaps of the last seven days."""

    def interval(self, feed: int, now: float) -> float:
        """Return from 5 minutes to 24 hours, once scaled: the scale is miniflux's factor, which it applies before."""
        recent = [time for time in self.known[feed] if time > now - 7 * DAY]
        gap = (recent[-1] - recent[0]) / (len(recent) - 1) if len(recent) > 1 else 0.0
        weekly = 7 * DAY / gap if gap else 0.0
        return float(np.clip(self.scale * 7 * DAY / weekly if weekly else DAY, 300, DAY)) / self.scale


class CommaFeed(IntervalPolicy):
    """CommaFeed: half the mean gap between 5 minutes and an hour, rarer after a week of silence."""

    def interval(self, feed: int, now: float) -> float:
        """Return from 5 minutes to 4 hours, before scaling."""
        known = self.known[feed][-20:]
        silent = (now - known[-1]) / DAY if known else np.inf
        for days, hours in ((30, 4), (14, 2), (7, 1)):
            if silent >= days:
                return hours * HOUR
        gap = (known[-1] - known[0]) / (len(known) - 1) if len(known) > 1 else DAY
        return float(np.clip(gap / 2, 300, HOUR))


class PlanLiterally(Policy):
    """The plan as written: every row counts, and the next look is the predicted hour or two base intervals."""

    def begin(self, start: float) -> None:
        """Classify every feed."""
        count = len(self.known)
        self.base, self.last = np.zeros(count), np.zeros(count)
        self.average, self.deviation = np.full(count, np.nan), np.ones(count)
        self.checks = np.full(count, 100)
        for feed in range(count):
            self.analyse(feed, start)
        self.due_at = start + self.random.random(count) * self.base * self.scale

    def analyse(self, feed: int, now: float) -> None:
        """Classify a feed as re-analysis does."""
        times = self.known[feed]
        entries = [{"published_at": time} for time in reversed(times[-30:])]
        _, step = cadence.classify_update_frequency(entries, now=now, tz=ZONE)
        average, deviation = cadence.calculate_publish_time_stats(entries, now=now, tz=ZONE)
        self.average[feed] = np.nan if average is None else average
        self.deviation[feed] = deviation or 1.0
        self.last[feed] = times[-1] if times else 0
        self.base[feed] = cadence.RSS_CADENCE_INTERVALS[step]

    def found(self, feed: int, times: Floats) -> None:
        """Learn of new publications, which are analysed every ten checks."""
        super().found(feed, times)
        self.last[feed] = times[-1]

    def asked(self, feeds: Integers, now: float) -> None:
        """Count the checks, analyse what is to be analysed, and wait."""
        self.checks[feeds] += 1
        for feed in feeds[self.checks[feeds] % 10 == 0]:
            self.analyse(int(feed), now)
        self.due_at[feeds] = now + self.scale * self.waits(feeds, now)

    def waits(self, feeds: Integers, now: float) -> Floats:
        """Return seconds to the next look before scaling."""
        base, average = self.base[feeds], self.average[feeds]
        hour = (now + OFFSET) % DAY / HOUR
        wait = (average + self.deviation[feeds] - hour) % 24 * HOUR
        fixed = base * self.random.uniform(0.85, 1.15, len(feeds))
        return np.clip(np.where(np.isnan(average), fixed, wait), 60, np.minimum(2 * base, DAY))


class DensityPolicy(Policy):
    """Asks when the integral of a density since the last look reaches a constant, which is the scale."""

    max_gap = DAY

    def begin(self, start: float) -> None:
        """Begin somewhere in the first interval."""
        self.knowledge = Knowledge.of(self.known, OFFSET)
        self.rows = np.arange(len(self.known))
        self.run = self.random.random(len(self.known)) * self.scale
        self.renewed_at = self.sampled_at = -np.inf
        self.at = start

    def due(self, now: float, last: Floats) -> Integers:
        """Return the feeds whose integral is complete, or that were not asked for too long."""
        if now - self.renewed_at >= _RENEWED:
            self.renew(now)
            self.renewed_at = now
        if now - self.sampled_at >= SLOT:
            self.speed = self.sample(now + SLOT / 2)
            self.sampled_at = now
        self.run += self.speed * (now - self.at)
        self.at = now
        return np.flatnonzero((self.run >= self.scale) | (now - last >= self.max_gap))

    @abstractmethod
    def renew(self, now: float) -> None:
        """Renew what changes slowly."""

    @abstractmethod
    def sample(self, now: float) -> Floats:
        """Return each feed's density now."""

    def asked(self, feeds: Integers, now: float) -> None:
        """Begin anew."""
        self.run[feeds] = 0


class SquareRootPoisson(DensityPolicy):
    """The literature's: the square root of a slow rate times an hour profile shrunk to that of all feeds."""

    def renew(self, now: float) -> None:
        """Smooth each feed's times of day by kernels of several widths, and mix them with 3 publications of all.

        Bare counts by the hour, mixed with 10 publications of all, are 2 minutes later at 24 polls a day.
        """
        slots = self.knowledge.slots
        own = sum(share * smoothed(slots, minutes) for minutes, share in ((10, 0.4), (30, 0.3), (75, 0.3)))
        prior = 3 * everyone_of(slots)
        self.hours = (np.maximum(own, 0.0) + prior) / (slots.sum(axis=1, keepdims=True) + 3) * SLOTS

    def sample(self, now: float) -> Floats:
        """Return the square root of rate and hour."""
        _, slow = self.knowledge.rates(self.rows, np.full(len(self.rows), now))
        return np.sqrt(slow / DAY * self.hours[:, int((now + OFFSET) % DAY // SLOT)])

    def found(self, feed: int, times: Floats) -> None:
        """Learn of new publications."""
        self.knowledge.add(feed, times)


POLICIES: dict[str, tuple[type[Policy], float]] = {
    "fixed": (FixedTimer, 1.0),
    "miniflux": (Miniflux, 0.1),
    "commafeed": (CommaFeed, 0.8),
    "plan_literal": (PlanLiterally, 0.7),
    "ceiling": (SquareRootPoisson, 8.0),
}
"""Every policy of others, by its name in results, with the scale that comes near 24 polls a feed and day."""
