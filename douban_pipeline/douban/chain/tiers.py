"""How often a video is looked at, by its age. Pure functions."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from douban_pipeline.cms.numbers import year_of

MONTH = timedelta(days=30)
YEAR = timedelta(days=365)
JITTER = 0.1
"""Share of the interval by which visits are spread, so that what came in together does not come due together."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Videos of one age: how old at most, how often they are looked at, and how they rank in the queue."""

    name: str
    max_age: timedelta
    interval: timedelta
    priority: int


TIERS = (
    Tier("≤ 1 month", MONTH, timedelta(days=3), 50),
    Tier("≤ 6 months", 6 * MONTH, timedelta(days=7), 40),
    Tier("≤ 1 year", YEAR, timedelta(days=30), 30),
    Tier("> 1 year", 2 * YEAR, timedelta(days=60), 20),
    Tier("> 2 years", timedelta.max, timedelta(days=90), 10),
)


def updated_at(vod_time: int, year: int | None) -> datetime | None:
    """Return when a video was last updated: ``vod_time`` (unix seconds), else the end of ``year``."""
    if vod_time > 0:
        return datetime.fromtimestamp(vod_time, UTC)
    return datetime(year, 12, 31, tzinfo=UTC) if year else None


def tier_index(vod_time: int, year: int | None, now: datetime) -> int:
    """Return the position in `TIERS` of a video; one without any date belongs to the last."""
    moment = updated_at(vod_time, year)
    if moment is None:
        return len(TIERS) - 1
    age = now - moment
    return next(index for index, tier in enumerate(TIERS) if age <= tier.max_age)


def tier_of(vod_time: int, year: int | None, now: datetime) -> Tier:
    """Return the tier of a video, see `tier_index`."""
    return TIERS[tier_index(vod_time, year, now)]


def next_visit(vod_id: int, tier: Tier, now: datetime) -> datetime:
    """Return when to look at a video again: its tier's interval from ``now``, give or take `JITTER` of it.

    The jitter follows from the video and the day, so that the same question has the same answer.
    """
    seed = zlib.crc32(f"{vod_id}:{now:%Y%m%d}".encode())
    return now + tier.interval * (1 + JITTER * (seed / 0xFFFFFFFF * 2 - 1))


def tier_of_row(row: Mapping[Any, Any], now: datetime) -> Tier:
    """Return the tier of the video of a CMS row."""
    return tier_of(row["vod_time"], year_of(row["vod_year"]), now)


def next_visit_of(row: Mapping[Any, Any], now: datetime) -> datetime:
    """Return when to look again at the video of a CMS row that was looked at ``now``."""
    return next_visit(row["vod_id"], tier_of_row(row, now), now)
