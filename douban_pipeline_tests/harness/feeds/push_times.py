"""Reading recorded push times: CSV of ``feed,epoch``, plain or gzipped."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

from douban_pipeline.feeds.intensity import Floats

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
