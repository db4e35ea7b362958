"""The budget profile: a fixed number of polls per day, spread for minimal delay. Pure functions over numpy columns.

For publications of rate r polled every T, the delay costs r·T/2 and the polls 1/T. For a given number of polls the mean
delay is smallest if T is inversely proportional to the square root of r (Sia and Cho); this holds for sources as well
as for hours. An exponent slightly below one half costs little of the mean and shortens the longest delays: `EXPONENT`
was chosen on recorded push times. A source is polled when the integral of r to that exponent since the last poll
reaches a constant, which is set by the budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from douban_pipeline.feeds.intensity import (
    DAY,
    SLOT,
    Floats,
    IntensityModel,
    Knowledge,
    Profiles,
    intensity,
)

EXPONENT = 0.40
_SAMPLES = 48
"""Times of a day at which a source's density is sampled for its share of the budget."""
_NEAR = 48
"""Slots in which most polls fall: four hours."""
_LEAST_WAIT = 60.0


def density(expected: Floats) -> Floats:
    """Return the density of polls for the expected number of publications per second, up to a constant factor."""
    return np.asarray(expected**EXPONENT)


@dataclass(frozen=True, slots=True)
class Allocation:
    """Distribution of a day's polls.

    Attributes:
        constant: Integral of the density between two polls; larger means rarer polls.
        by_host: Constants of hosts that would otherwise exceed their limit of polls per day.
        polls: Resulting number of polls per day.
    """

    constant: float
    by_host: Mapping[str, float] = field(default_factory=dict)
    polls: float = 0.0

    def constant_of(self, host: str) -> float:
        """Return the constant of a host's sources."""
        return self.by_host.get(host, self.constant)

    def corrected(self, factor: float) -> Allocation:
        """Return the allocation by which ``factor`` times as much is polled, except of hosts at their limit."""
        return replace(self, constant=self.constant / factor)


@dataclass(frozen=True, slots=True)
class NextLook:
    """When a source is polled next, and why then.

    Attributes:
        at: Time of the poll.
        expected: Publications expected since the last poll by then.
        share: Share of a day's budget that polling at this rate costs.
        bound: The deciding limit: ``budget``, ``max_gap`` or ``floor``.
    """

    at: int
    expected: float
    share: float
    bound: str


def daily_density(knowledge: Knowledge, profiles: Profiles, now: float, model: IntensityModel | None = None) -> Floats:
    """Return the integral of each source's density over the day that begins at ``now``."""
    rows = np.arange(len(knowledge.known))
    step = DAY / _SAMPLES
    total = np.zeros(len(rows))
    for number in range(_SAMPLES):
        times = np.full(len(rows), now + (number + 0.5) * step)
        total += density(intensity(knowledge, profiles, rows, times, model)) * step
    return total


def allocate(
    densities: Floats,
    hosts: Sequence[str],
    polls_per_day: float,
    *,
    max_gap: float,
    host_polls_per_day: float = 0.0,
) -> Allocation:
    """Return the distribution of ``polls_per_day`` over sources with the given daily densities.

    Args:
        densities: See `daily_density`; one per source.
        hosts: The host of each source.
        polls_per_day: Polls per day of all sources.
        max_gap: Seconds after which every source is polled, even beyond the budget.
        host_polls_per_day: Polls per day that one host may cost; 0 for no limit.
    """
    least = DAY / max_gap

    def polls(constant: float, some: Floats) -> float:
        return float(np.maximum(some / constant, least).sum())

    def solve(budget: float, some: Floats) -> float:
        if not len(some):
            return 1.0
        low = high = max(float(some.sum()) / max(budget, 1e-9), 1e-12)
        if polls(low, some) <= budget * 1.0001:
            return low
        for _ in range(60):
            high *= 2
            if polls(high, some) <= budget:
                break
        for _ in range(50):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if polls(middle, some) > budget else (low, middle)
        return high

    names = np.array(hosts, dtype=object)
    by_host: dict[str, float] = {}
    constant = solve(polls_per_day, densities)
    if host_polls_per_day:
        limited = np.zeros(len(densities), dtype=bool)
        for _ in range(3):  # polls not used by a limited host go to the others, which may then reach their limit
            for host in {str(name) for name in names[~limited]}:
                own = names == host
                if polls(constant, densities[own]) > host_polls_per_day:
                    by_host[host] = solve(host_polls_per_day, densities[own])
                    limited |= own
            spent = sum(polls(each, densities[names == host]) for host, each in by_host.items())
            constant = solve(max(polls_per_day - spent, 1.0), densities[~limited])
    total = sum(polls(by_host.get(host, constant), densities[names == host]) for host in {str(name) for name in names})
    return Allocation(constant, by_host, total)


def next_look(
    knowledge: Knowledge,
    profiles: Profiles,
    row: int,
    allocation: Allocation,
    *,
    host: str,
    polls_per_day: float,
    now: float,
    max_gap: float,
    floor: float = 0.0,
) -> NextLook:
    """Return when a source that was just polled is polled again.

    Args:
        knowledge: Knowledge of some sources.
        profiles: Their publishing hours.
        row: Row of the source.
        allocation: The budget's distribution.
        host: The source's host.
        polls_per_day: Polls per day of all sources, for the share.
        now: The current time.
        max_gap: Maximum seconds to the next poll; ``floor`` takes precedence.
        floor: The earliest time the source allows.
    """
    longest = max(int(np.ceil(max_gap / SLOT)), 1)
    constant = allocation.constant_of(host)
    for steps in (min(_NEAR, longest), longest):
        times: Floats = (now + (np.arange(steps) + 0.5) * SLOT).astype(float)
        expected = intensity(knowledge, profiles, np.full(steps, row), times)
        speed = density(expected)
        run = np.cumsum(speed) * SLOT
        if run[-1] > constant and now + steps * SLOT > floor:
            break  # most polls are so soon that the rest of the day is not looked at
    step = int(np.searchsorted(run, constant))
    wait, bound = float(max_gap), "max_gap"
    if step < steps:
        before = run[step - 1] if step else 0.0
        wait, bound = min(step * SLOT + (constant - before) / speed[step], max_gap), "budget"
    wait = max(wait, _LEAST_WAIT)
    if now + wait < floor:
        wait, bound = floor - now, "floor"
    covered = np.clip((wait - np.arange(steps) * SLOT) / SLOT, 0, 1)
    seen = float((expected * covered).sum() * SLOT)
    return NextLook(int(np.ceil(now + wait)), seen, DAY / wait / max(polls_per_day, 1.0), bound)
