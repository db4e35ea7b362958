"""The plan's rules for the next poll of a source, as pure functions: no database, and the time is an argument.

Within the plan's limits, polls are placed where a source publishes: the wait is the time in which a schedule, which
runs fast in the source's usual hours and slowly in others, covers one base interval.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RSS_CADENCE_INTERVALS = {
    "P0": 15 * 60,
    "P1": 30 * 60,
    "P2": 60 * 60,
    "P3": 2 * 60 * 60,
    "P4": 4 * 60 * 60,
    "P5": 8 * 60 * 60,
    "P6": 24 * 60 * 60,
}
"""Seconds between two polls, by cadence."""

FREQUENCY_CADENCE_MAP = {
    "realtime": "P0",
    "high": "P1",
    "daily": "P2",
    "daily_fixed": "P3",
    "weekly": "P4",
    "monthly": "P5",
    "low": "P6",
}

DEFAULT_FREQUENCY, DEFAULT_CADENCE = "daily", "P2"
DEFAULT_ZONE = ZoneInfo("Asia/Shanghai")
LEAST_PUBLICATIONS = 3
DAY, HOUR = 86_400, 3_600

_BOUNDS = ((6, "realtime"), (18, "high"), (36, "daily"), (72, "daily_fixed"), (168, "weekly"), (720, "monthly"))
_A_DAY = 5
_LEAST_STD, _MOST_STD = 1.0, 6.0

_STEP = 600
"""Step of the accrual schedule in seconds."""
_EVEN = 0.15
"""Share of the schedule that runs evenly, regardless of the hour."""
_AGE_HOURS = np.array([8.0, 20.0, 23.0, 26.0, 32.0])
_AGE_FACTORS = np.array([0.1, 0.5, 1.3, 2.8, 1.8, 1.0])
"""How much more likely a daily source publishes this many hours after its last time: most publish once a day."""
_DAILY = frozenset({"daily", "daily_fixed"})
_LEAST_WAIT = 60.0

RATE_LIMIT_BACKOFF = 6 * HOUR
FORBIDDEN_BACKOFF = 12 * HOUR


def publication_times(entries: Iterable[Mapping[str, Any]], now: float) -> list[int]:
    """Return the valid times in ``entries``, newest first; a time in early 1970 or after tomorrow is not valid."""
    times = []
    for entry in entries:
        value = as_seconds(entry.get("published_at"))
        if value is not None and 0 < value <= now + DAY:
            times.append(value)
    return sorted(times, reverse=True)


def as_seconds(value: object) -> int | None:
    """Return in whole seconds a time given in seconds or milliseconds, as number or digits; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(seconds):
        return None
    return int(seconds // 1000) if abs(seconds) > 1e11 else int(seconds)


def classify_update_frequency(
    entries: Sequence[Mapping[str, Any]], *, now: float | None = None, tz: tzinfo = DEFAULT_ZONE
) -> tuple[str, str]:
    """Return how often a source publishes, as frequency type and cadence.

    Args:
        entries: With ``published_at``; invalid times are left out. Every row counts, so pass distinct ones.
        now: The current time; the real one by default.
        tz: Time zone in which days are counted.
    """
    times = publication_times(entries, time.time() if now is None else now)
    if len(times) < LEAST_PUBLICATIONS:
        return DEFAULT_FREQUENCY, DEFAULT_CADENCE
    days = Counter(datetime.fromtimestamp(each, tz).date() for each in times)
    hours = (times[0] - times[-1]) / (len(times) - 1) / HOUR
    frequency = "realtime" if max(days.values()) >= _A_DAY else _frequency(hours)
    return frequency, FREQUENCY_CADENCE_MAP[frequency]


def _frequency(hours: float) -> str:
    return next((name for bound, name in _BOUNDS if hours < bound), "low")


def calculate_publish_time_stats(
    entries: Sequence[Mapping[str, Any]], *, now: float | None = None, tz: tzinfo = DEFAULT_ZONE
) -> tuple[float | None, float | None]:
    """Return the mean publishing hour and its standard deviation, limited to 1 to 6 hours.

    Args:
        entries: With ``published_at``; invalid times are left out.
        now: The current time; the real one by default.
        tz: Time zone of the hours.

    Returns:
        Two numbers, or (None, None) for fewer than three valid times.
    """
    times = publication_times(entries, time.time() if now is None else now)
    if len(times) < LEAST_PUBLICATIONS:
        return None, None
    hours = np.array([_hour_of(each, tz) for each in times])
    return float(hours.mean()), float(np.clip(hours.std(), _LEAST_STD, _MOST_STD))


def _hour_of(moment: float, tz: tzinfo) -> float:
    at = datetime.fromtimestamp(moment, tz)
    return at.hour + at.minute / 60 + at.second / HOUR


def calculate_next_check_time(
    cadence: str,
    frequency_type: str = DEFAULT_FREQUENCY,
    avg_publish_hour: float | None = None,
    std_publish_hour: float | None = None,
    last_article_at: int = 0,
    *,
    now: float | None = None,
    tz: tzinfo = DEFAULT_ZONE,
    rng: Random | None = None,
) -> int:
    """Return when a source is polled again: after now, within two base intervals and 24 hours.

    A source with usual hours is polled more often in them and less often in others. Without usable hours the wait is
    the base interval times 0.85 to 1.15, at most 24 hours.

    Args:
        cadence: P0 to P6; anything else counts as P2.
        frequency_type: A name of `FREQUENCY_CADENCE_MAP`.
        avg_publish_hour: Mean publishing hour.
        std_publish_hour: Its standard deviation; from 6 hours on there are no usual hours.
        last_article_at: The last publication, 0 for none.
        now: The current time; the real one by default.
        tz: Time zone of the hours.
        rng: Jitter.
    """
    now = time.time() if now is None else now
    base = RSS_CADENCE_INTERVALS.get(cadence, RSS_CADENCE_INTERVALS[DEFAULT_CADENCE])
    least, most = jitter_range(base)
    wait = base * (rng or Random()).uniform(least, most - 1 / base)  # stays in range when rounded up to a second
    if usual_hours(avg_publish_hour, std_publish_hour):
        assert avg_publish_hour is not None
        assert std_publish_hour is not None
        [wait] = accrual_waits(
            np.array([_hour_of(now, tz)]),
            np.array([float(base)]),
            np.array([avg_publish_hour]),
            np.array([std_publish_hour]),
            np.array([now - last_article_at if last_article_at > 0 else np.inf]),
            np.array([frequency_type in _DAILY]),
        )
    latest = math.floor(now + min(2 * base, DAY))
    return max(min(math.ceil(now + max(wait, _LEAST_WAIT)), latest), math.floor(now) + 1)


def jitter_range(base: float) -> tuple[float, float]:
    """Return the range of multiples of ``base`` (seconds) for a fixed interval: never more than a day."""
    return 0.85, min(1.15, DAY / base)


def usual_hours(average: float | None, deviation: float | None) -> bool:
    """Return whether the statistics of publishing hours are usable."""
    if average is None or deviation is None or not math.isfinite(average) or not math.isfinite(deviation):
        return False
    return 0 <= average < 24 and 0 < deviation < _MOST_STD


def accrual_waits(
    hour: Floats, base: Floats, average: Floats, deviation: Floats, age: Floats, daily: NDArray[np.bool_]
) -> Floats:
    """Return the seconds that several sources wait, by the accrual schedule.

    A source's schedule runs at the square root of its intensity: partly even, otherwise by its usual hours (a normal
    distribution around the clock); for a daily source, times the likelihood given the age of its last publication.

    Args:
        hour: The current hour of the day of each source.
        base: Base intervals in seconds.
        average: Mean hours of publishing.
        deviation: Their standard deviations.
        age: Seconds since the last publication; infinite if there was none.
        daily: Whether a source publishes about once a day.

    Returns:
        Seconds, from 60 to two base intervals, at most a day.
    """
    steps = DAY // _STEP
    deviation = np.maximum(deviation, _LEAST_STD / 4)  # narrower values cannot be resolved by the steps
    ahead = (np.arange(steps) + 0.5) * _STEP
    distance = np.abs((hour[:, None] + ahead / HOUR) % 24 - average[:, None])
    distance = np.minimum(distance, 24 - distance) / deviation[:, None]
    density = 24 * np.exp(-0.5 * distance**2) / (deviation[:, None] * math.sqrt(2 * math.pi))
    speed = np.sqrt(_EVEN + (1 - _EVEN) * density)
    speed /= speed.mean(axis=1, keepdims=True)
    hours_old = (age[:, None] + ahead) / HOUR
    factor = _AGE_FACTORS[np.searchsorted(_AGE_HOURS, np.nan_to_num(hours_old, posinf=1e9))]
    speed *= np.where(daily[:, None], np.sqrt(factor), 1.0)
    run = np.cumsum(speed, axis=1) * _STEP
    whole = np.minimum((run < base[:, None]).sum(axis=1), steps - 1)
    rows = np.arange(len(base))
    before = np.where(whole > 0, run[rows, np.maximum(whole - 1, 0)], 0.0)
    wait = whole * _STEP + (base - before) / speed[rows, whole]
    limits = np.minimum(2 * base, DAY)
    return np.clip(wait, np.minimum(_LEAST_WAIT, limits), limits)


def silent_cadence(cadence: str, last_article_at: int, mean_gap: float | None, now: float) -> str:
    """Return the cadence of a source after a time of silence: never a faster one than ``cadence``.

    A source that was silent for three of its gaps steps down to P2; after 7, 14 and 30 days to P3, P4 and P5.
    """
    silent = now - last_article_at
    if last_article_at <= 0 or mean_gap is None or silent <= 3 * mean_gap:
        return cadence
    down = next((step for days, step in ((7, "P2"), (14, "P3"), (30, "P4")) if silent < days * DAY), "P5")
    return max(cadence, down)


def calculate_backoff(fail_count: int, error_message: str = "") -> int:
    """Return the back-off in seconds after a source's ``fail_count``-th failure in a row.

    Decided by words in this order: 429, rate or 频繁; 401, expired or 过期; 403 or forbidden. They match anywhere in
    the text ("separate" contains "rate"), so pass a canonical message; see `failures.canonical_message`.
    """
    said = error_message.lower()
    if any(word in said for word in ("429", "rate", "频繁")):
        return RATE_LIMIT_BACKOFF
    if any(word in said for word in ("401", "expired", "过期")):
        return 0
    if any(word in said for word in ("403", "forbidden")):
        return FORBIDDEN_BACKOFF
    exponent = min(max(fail_count, 1) - 1, 10)
    return int(min(15 * 60 * 2**exponent, DAY))
