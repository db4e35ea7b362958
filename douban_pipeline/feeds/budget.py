"""The budget profile: so many polls a day, spent where they shorten delay most. Pure functions over numpy columns.

For publications of rate r that are looked for every T, delay costs r·T/2 and the looks 1/T. For a given sum of looks
the mean delay is least where T is inversely proportional to the square root of r (Sia and Cho), for a source as for an
hour. A slightly flatter exponent than one half costs little of the mean and shortens the longest delays: `EXPONENT` was
chosen on recorded push times. A source is asked when the integral of r to that exponent since the last look reaches a
constant, which the budget sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
"""Moments of a day at which a source's density is sampled for its share of the budget."""
_LEAST_WAIT = 60.0


def density(expected: Floats) -> Floats:
    """Return how densely looks lie where so many publications a second are expected, up to a constant."""
    return np.asarray(expected**EXPONENT)


@dataclass(frozen=True, slots=True)
class Allocation:
    """How a day's polls are spent.

    Attributes:
        constant: What the integral of the density reaches between two looks; larger is rarer.
        by_host: The constants of hosts that may not cost as many polls as would fall to them.
        polls: Polls a day that come of it.
    """

    constant: float
    by_host: Mapping[str, float] = field(default_factory=dict)
    polls: float = 0.0

    def constant_of(self, host: str) -> float:
        """Return the constant of a host's sources."""
        return self.by_host.get(host, self.constant)


@dataclass(frozen=True, slots=True)
class NextLook:
    """When a source is asked next, and why then.

    Attributes:
        at: The moment.
        expected: Publications that are expected until then since the last look.
        share: The share of a day's budget that looking at this pace costs.
        bound: What decided: ``budget``, ``max_gap`` or ``floor``.
    """

    at: int
    expected: float
    share: float
    bound: str


def daily_density(knowledge: Knowledge, profiles: Profiles, now: float, model: IntensityModel | None = None) -> Floats:
    """Return the integral of each source's density over the day that begins now."""
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
    """Return how to spend ``polls_per_day`` over sources whose daily density is given.

    Args:
        densities: See `daily_density`; one a source.
        hosts: The host of each.
        polls_per_day: Of the whole set.
        max_gap: Seconds after which every source is asked whatever the budget says: that may cost more than it.
        host_polls_per_day: Polls a day that one host may cost; 0 for no limit.
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
        for _ in range(3):  # what a limited host leaves goes to the others, which may then exceed theirs
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
    """Return when a source that was just asked is asked again.

    Args:
        knowledge: Of some sources.
        profiles: Their hours.
        row: Which of them.
        allocation: The budget.
        host: The source's host.
        polls_per_day: Of the whole set, for the share.
        now: The present moment.
        max_gap: Seconds to the next look at most; what the source itself demands (``floor``) goes before.
        floor: The earliest moment that the source allows.
    """
    steps = max(int(np.ceil(max_gap / SLOT)), 1)
    times: Floats = (now + (np.arange(steps) + 0.5) * SLOT).astype(float)
    expected = intensity(knowledge, profiles, np.full(steps, row), times)
    speed = density(expected)
    run = np.cumsum(speed) * SLOT
    constant = allocation.constant_of(host)
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
