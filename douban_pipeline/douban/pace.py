"""Intervals and concurrency of work. Pure functions.

How often a video is visited, by its age; how long it waits after a failure; how many concurrent requests and videos a
rate needs.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from douban_pipeline.cms.numbers import year_of

MISS_CACHE_AGE = timedelta(hours=24)
"""Age from which "nothing found" is requested again: sooner, a source would only be asked the same again."""

SUBJECT_CACHE_AGE = timedelta(hours=24)
"""Age from which a subject's answer is requested again: a day's facts do, and a visit comes days later."""

JITTER = 0.1
BACK_OFF_JITTER = 0.1
"""Maximum random extension of a wait after a failure, as a share of it: no wait is shorter than the plan's."""
"""Share of the interval by which visits are spread, so that videos added together are not due together."""

SLOW_ANSWER = 1.5
"""Seconds that an answer may take while the source's allowance is still fully used."""

MOST_AT_ONCE = 32
"""Most concurrent requests to a source whose concurrency is derived: each is a thread in some run."""

RUN_MINUTES = 2
"""Minutes of work of a run of the due sensor, if it is the only one and its shards have enough work."""


def requests_at_once(per_minute: float, *, least: int = 1) -> int:
    """Return how many concurrent requests reach ``per_minute`` if each takes `SLOW_ANSWER`."""
    return min(max(math.ceil(per_minute / 60 * SLOW_ANSWER), least), MOST_AT_ONCE)


def videos_at_once(search: int, douban: int) -> int:
    """Return how many videos a run processes at once, for the given concurrent requests to the two sources.

    A video waits for one source at a time, so the number for one source is not enough: while these videos wait for
    Douban, nothing would be searched. Two more are ready for the next free slot.
    """
    return search + douban + 2


def shards_at_once(per_minute: float, batch_size: int, most: int) -> int:
    """Return how many shards of ``batch_size`` videos are work for `RUN_MINUTES` at ``per_minute`` requests.

    A run takes seconds to begin and to end, in which it makes no requests: very short runs waste the allowance.
    """
    return min(max(int(per_minute * RUN_MINUTES / batch_size), 1), most)


@dataclass(frozen=True, slots=True)
class Tier:
    """Videos of one age group: their greatest age, the interval of visits, and their priority in the queue."""

    name: str
    max_age: timedelta
    interval: timedelta
    priority: int


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers of a library, the youngest first; the last has no age limit."""

    members: tuple[Tier, ...]

    @classmethod
    def of_days(cls, intervals: Mapping[float, float], *, older: float) -> Tiers:
        """Return tiers from days.

        Args:
            intervals: Days between visits, by the greatest age of the videos in days.
            older: Days between visits of all older videos.
        """
        count = len(intervals) + 1
        ages = sorted(intervals)
        members = [
            Tier(f"≤ {age:g} d", timedelta(days=age), timedelta(days=intervals[age]), 10 * (count - place))
            for place, age in enumerate(ages)
        ]
        name = f"> {ages[-1]:g} d" if ages else "all"
        return cls((*members, Tier(name, timedelta.max, timedelta(days=older), 10)))

    def index(self, vod_time: int, year: int | None, now: datetime) -> int:
        """Return the position of a video's tier; a video without any date belongs to the last."""
        moment = updated_at(vod_time, year)
        if moment is None:
            return len(self.members) - 1
        age = now - moment
        return next(index for index, tier in enumerate(self.members) if age <= tier.max_age)

    def tier(self, vod_time: int, year: int | None, now: datetime) -> Tier:
        """Return the tier of a video, see `index`."""
        return self.members[self.index(vod_time, year, now)]

    def tier_of_row(self, row: Mapping[Any, Any], now: datetime) -> Tier:
        """Return the tier of the video of a CMS row."""
        return self.tier(row["vod_time"], year_of(row["vod_year"]), now)

    def next_visit_of(self, row: Mapping[Any, Any], now: datetime) -> datetime:
        """Return the next visit of the video of a CMS row that was visited ``now``."""
        return next_visit(row["vod_id"], self.tier_of_row(row, now), now)


PLAN_TIERS = Tiers.of_days({30: 3, 180: 7, 365: 30, 730: 60}, older=90)
"""The tiers of the plan: up to a month, half a year, one year, two years, and older."""


def updated_at(vod_time: int, year: int | None) -> datetime | None:
    """Return when a video was last updated: ``vod_time`` (unix seconds), else the end of ``year``."""
    if vod_time > 0:
        return datetime.fromtimestamp(vod_time, UTC)
    return datetime(year, 12, 31, tzinfo=UTC) if year else None


def next_visit(vod_id: int, tier: Tier, now: datetime) -> datetime:
    """Return the next visit of a video: its tier's interval after ``now``, plus or minus `JITTER` of it.

    The jitter is derived from the video and the day, so that the result is deterministic.
    """
    return now + tier.interval * (1 + JITTER * (_lot(f"{vod_id}:{now:%Y%m%d}") * 2 - 1))


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long to wait after failures in a row.

    Attributes:
        steps: Waits after the first, second … failure; the last applies to all later ones.
        jitter: Share by which a wait is extended at most, so that videos that failed together are not tried together.
    """

    steps: tuple[timedelta, ...]
    jitter: float

    def wait(self, failures: int, vod_id: int) -> timedelta:
        """Return how long video ``vod_id`` waits after ``failures`` (1 or more) failures in a row.

        Never less than the step; the extension is derived from the video and the number of failures.
        """
        step = self.steps[min(failures, len(self.steps)) - 1]
        return step * (1 + self.jitter * _lot(f"{vod_id}:{failures}"))


def _lot(text: str) -> float:
    """Return a pseudo-random number from 0 to 1 that is always the same for ``text``."""
    return zlib.crc32(text.encode()) / 0xFFFFFFFF
