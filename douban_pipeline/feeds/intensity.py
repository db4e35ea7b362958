"""Expected publications of a source over time, from its history: numpy columns in, publications per second out.

A log-linear model of: the rate of the last days, shrunk to that of all sources; the source's own hours, smoothed at
three widths and shrunk to those of all sources (more strongly the fewer times are known); weekday or weekend; and, by
class of rate, the time since the last publication and whether it published today. The coefficients in
``intensity.json`` describe no single source; they were fitted to public accounts by `harness.feeds.fit`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DAY, HOUR = 86_400, 3_600
SLOT = 300
"""Length of a slot of the day in seconds."""
SLOTS = DAY // SLOT

_RATE_DAYS = (3.0, 12.0)
"""Days after which a publication's weight falls to a third, in the quick and in the slow rate."""
_HABIT_DAYS = 20.0
_PRIOR_RATE, _PRIOR_DAYS = 0.5, 1.0
_WIDTHS = ((8.0, 4.0), (25.0, 3.0), (90.0, 2.0))
"""Smoothing widths of a publication in minutes, and how many of all sources' publications are mixed in."""
_GLOBAL_WIDTH = 20.0
_WEEKEND_PRIOR = 6.0
_RATE_CLASSES = np.array([0.15, 0.4, 0.75, 1.3, 3.0])
_AGES = np.array(
    [0.5, 2, 4, 8, 12, 16, 19, 21, 22.5, 23.5, 24.5, 25.5, 27, 30, 36, 42, 46, 50, 60, 72, 96, 168, 336, 1e9]
)
"""Bounds of the age classes, in hours since the last publication."""
CLASSES = len(_RATE_CLASSES) + 1
AGES = len(_AGES)
_NEVER = -1e11
_EPOCH_WEEKDAY = 3
"""1970-01-01 was a Thursday."""


@dataclass(frozen=True, slots=True)
class IntensityModel:
    """Coefficients by column, by rate class and age, and by rate class and whether it published today."""

    columns: Floats
    ages: Floats
    today: Floats


@cache
def fitted_model() -> IntensityModel:
    """Return the model shipped with the package."""
    text = resources.files(__package__).joinpath("intensity.json").read_text(encoding="utf-8")
    return model_from(json.loads(text))


def model_from(stored: dict[str, Any]) -> IntensityModel:
    """Return a model from its JSON form.

    Raises:
        ValueError: Its shape differs from this release's.
    """
    model = IntensityModel(*(np.array(stored[name], dtype=float) for name in ("columns", "ages", "today")))
    shapes = (len(COLUMNS),), (CLASSES, AGES), (CLASSES, 2)
    if (model.columns.shape, model.ages.shape, model.today.shape) != shapes:
        raise ValueError("the intensity model has another shape than this release expects")
    return model


class Knowledge:
    """Publication history of several sources, as columns with one row per source.

    Args:
        sources: Number of sources.
        offset: Seconds by which the site's clock is ahead of UTC.
    """

    def __init__(self, sources: int, offset: int) -> None:
        self.offset = offset
        self.known = np.zeros(sources)
        self.first = np.full(sources, np.inf)
        self.last = np.full(sources, -np.inf)
        self._counts = np.zeros((len(_RATE_DAYS), sources))
        self.slots = np.zeros((sources, SLOTS))
        self.weekend = np.zeros((sources, 2))

    @classmethod
    def of(cls, times: Sequence[Iterable[float]], offset: int) -> Knowledge:
        """Return the knowledge gained from each source's publication times."""
        knowledge = cls(len(times), offset)
        for row, each in enumerate(times):
            knowledge._learn(row, np.unique(np.fromiter(each, dtype=float)))
        return knowledge

    def _learn(self, row: int, times: Floats) -> None:
        """Do what `add` does for a source of which nothing is known, with all its publications at once."""
        if not len(times):
            return
        self.first[row], self.last[row], self.known[row] = times[0], times[-1], len(times)
        age = (times[-1] - times) / DAY
        for number, days in enumerate(_RATE_DAYS):
            self._counts[number, row] = np.exp(-age / days).sum()
        weights = np.exp(-age / _HABIT_DAYS)
        local = times.astype(np.int64) + self.offset
        self.slots[row] = np.bincount(local % DAY // SLOT, weights, SLOTS)
        self.weekend[row] = np.bincount((_weekday(local) >= 5).astype(int), weights, 2)

    def add(self, row: int, times: Iterable[float]) -> None:
        """Add a source's publications, in order of time; those not after the last known one are left out."""
        for moment in times:
            since = moment - self.last[row]
            if since <= 0:
                continue
            if np.isfinite(since):
                self._counts[:, row] *= np.exp(-since / DAY / np.array(_RATE_DAYS))
                fading = np.exp(-since / DAY / _HABIT_DAYS)
                self.slots[row] *= fading
                self.weekend[row] *= fading
            self._counts[:, row] += 1
            self.first[row] = min(self.first[row], moment)
            self.last[row] = moment
            self.known[row] += 1
            local = int(moment) + self.offset
            self.slots[row, local % DAY // SLOT] += 1
            self.weekend[row, int(_weekday(local) >= 5)] += 1

    def rates(self, rows: Integers, times: Floats) -> tuple[Floats, Floats]:
        """Return the quick and the slow rate of sources at given times, in publications per day."""
        # Of a source without a publication the span is 0, and the age infinite, at which nothing is left of no count.
        span = np.maximum((times - self.first[rows]) / DAY, 0.0)
        age = np.maximum((times - self.last[rows]) / DAY, 0.0)
        found = []
        for number, days in enumerate(_RATE_DAYS):
            seen = days * -np.expm1(-span / days)
            # The first known publication only starts the span and does not count for the rate.
            count = np.maximum(self._counts[number, rows] * np.exp(-age / days) - np.exp(-span / days), 0.0)
            found.append((count + _PRIOR_DAYS * _PRIOR_RATE) / (seen + _PRIOR_DAYS))
        return found[0], found[1]


@dataclass(frozen=True, slots=True)
class Profiles:
    """Publishing hours of sources relative to an even day (1.0), one row per source: see `profiles_of`."""

    by_width: Sequence[Floats]
    everyone: Floats
    weekend: Floats


def everyone_of(slots: Floats) -> Floats:
    """Return the smoothed publishing hours of all sources together, as shares of a day, from counts by slot.

    Without any publication, the day is even.
    """
    total = np.maximum(smoothed(slots.sum(axis=0), _GLOBAL_WIDTH), 1e-9)
    return np.asarray(total / total.sum())


def profiles_of(knowledge: Knowledge, everyone: Floats, weekend_share: float) -> Profiles:
    """Return the publishing hours of each source, shrunk to those of all sources (``everyone``).

    Args:
        knowledge: The sources.
        everyone: See `everyone_of`.
        weekend_share: Share of all publications that fall on a weekend, above 0 and under 1.
    """
    count = knowledge.slots.sum(axis=1, keepdims=True)
    spectrum = np.fft.rfft(knowledge.slots, axis=-1)
    widths = [
        (np.maximum(_smooth(spectrum, minutes), 0.0) + prior * everyone) / (count + prior) * SLOTS
        for minutes, prior in _WIDTHS
    ]
    prior = _WEEKEND_PRIOR * np.array([1 - weekend_share, weekend_share])
    share = (knowledge.weekend + prior) / (knowledge.weekend.sum(axis=1, keepdims=True) + _WEEKEND_PRIOR)
    return Profiles(widths, everyone * SLOTS, share * np.array([7 / 5, 7 / 2]))


COLUMNS = (
    *("even", "quick rate", "slow rate", "hours in 8 minutes", "hours in 25 minutes", "hours in 90 minutes"),
    *("everyone's hours", "weekday or weekend", "8 minutes × known", "25 minutes × known"),
)
"""Names of the columns of `design`."""


def design(
    knowledge: Knowledge, profiles: Profiles, rows: Integers, times: Floats
) -> tuple[Floats, Integers, Integers]:
    """Return the model's inputs for sources at given times: columns, class of rate and age, class of rate and today.

    Args:
        knowledge: The sources.
        profiles: Their publishing hours.
        rows: Row of the source, for each time.
        times: The times.
    """
    local = times + knowledge.offset
    slot = (local % DAY // SLOT).astype(int)
    quick, slow = knowledge.rates(rows, times)
    hours = [np.log(width[rows, slot]) for width in profiles.by_width]
    trust = np.log1p(knowledge.known[rows]) - 2
    weekend = (_weekday(local) >= 5).astype(int)
    columns = np.stack(
        [
            *(np.ones(len(times)), np.log(quick), np.log(slow), *hours),
            *(np.log(profiles.everyone[slot]), np.log(profiles.weekend[rows, weekend])),
            *(hours[0] * trust, hours[1] * trust),
        ],
        axis=1,
    )
    last = np.where(knowledge.known[rows] > 0, knowledge.last[rows], _NEVER)
    age = (times - last) / HOUR
    rate = np.digitize(slow, _RATE_CLASSES)
    today = (local // DAY == (last + knowledge.offset) // DAY).astype(int)
    return columns, rate * AGES + np.searchsorted(_AGES, age), rate * 2 + today


def intensity(
    knowledge: Knowledge, profiles: Profiles, rows: Integers, times: Floats, model: IntensityModel | None = None
) -> Floats:
    """Return the expected publications per second of sources at given times; arguments as for `design`."""
    model = model or fitted_model()
    columns, age, today = design(knowledge, profiles, rows, times)
    return np.exp(intensity_log(columns, age, today, model)) / (15 * 60)


def intensity_log(columns: Floats, age: Integers, today: Integers, model: IntensityModel) -> Floats:
    """Return the logarithm of the publications expected in a quarter of an hour."""
    total = columns @ model.columns + model.ages.ravel()[age] + model.today.ravel()[today]
    return np.asarray(np.clip(total, -20.0, 3.0))


def _weekday(local: Any) -> Any:
    """Return the day of the week, from 0 for Monday, of local seconds."""
    return (local // DAY + _EPOCH_WEEKDAY) % 7


@cache
def _kernel(minutes: float) -> Any:
    slots = np.arange(SLOTS)
    distance = np.minimum(slots, SLOTS - slots) * SLOT / 60
    weights = np.exp(-0.5 * (distance / minutes) ** 2)
    return np.fft.rfft(weights / weights.sum())


def smoothed(slots: Floats, minutes: float) -> Floats:
    """Return counts by slot of the day, smoothed around the clock by a normal distribution of the given width."""
    return _smooth(np.fft.rfft(slots, axis=-1), minutes)


def _smooth(spectrum: Any, minutes: float) -> Floats:
    return np.asarray(np.fft.irfft(spectrum * _kernel(minutes), n=SLOTS, axis=-1))
