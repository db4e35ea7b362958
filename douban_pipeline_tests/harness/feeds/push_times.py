"""Push times: recorded ones, as CSV of ``feed,epoch``, plain or gzipped, and generated ones."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

from douban_pipeline.feeds.intensity import DAY, Floats

OFFSET = 8 * 3600
"""The recorded accounts are Chinese: their days begin at midnight in Asia/Shanghai."""


class PushTimesError(Exception):
    """The file holds no push times."""


def read_push_times(path: Path) -> dict[str, Floats]:
    """Return the times of each feed in ascending order, doubles included, in the order of the file.

    Raises:
        PushTimesError: A row is not ``feed,epoch``, or there is none.
    """
    found: dict[str, list[int]] = {}
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if row[:2] == ["feed", "epoch"] or not row:
                continue
            try:
                feed, epoch = row[0], int(float(row[1]))
            except (IndexError, ValueError) as error:
                raise PushTimesError(f"{path}, line {number}: expected feed,epoch") from error
            found.setdefault(feed, []).append(epoch)
    if not found:
        raise PushTimesError(f"{path} holds no push times")
    return {feed: np.sort(np.array(times, dtype=float)) for feed, times in found.items()}


_START = 1_622_505_600 - OFFSET
_DAYS = 20


def bundled_feeds(feeds: int = 600, seed: int = 7) -> dict[str, Floats]:
    """Return the push times of ``feeds`` made-up accounts over twenty days, the same for the same seed."""
    random = np.random.default_rng(seed)
    found: dict[str, Floats] = {}
    for number in range(feeds):
        hour, spread = random.normal(16.5, 4.0) % 24, random.choice([0.1, 0.5, 2.0], p=[0.3, 0.4, 0.3])
        daily, weekend = random.choice([0.15, 0.5, 0.9, 2.5], p=[0.25, 0.3, 0.35, 0.1]), random.random()
        times: list[float] = []
        for day in range(_DAYS):
            rate = daily * (weekend if day % 7 >= 5 else 1.0)
            pushes = random.poisson(rate) if rate > 1 else int(random.random() < rate)
            for _ in range(pushes):
                moment = _START + day * DAY + random.normal(hour, spread) * 3600
                times += [float(int(moment))] * int(random.choice([1, 1, 3]))
        if times:
            found[f"account-{number}"] = np.sort(np.array(times))
    return found
