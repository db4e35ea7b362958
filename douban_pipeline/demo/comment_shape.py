"""Generates comment sections distributed like real ones: most without a like, a few with thousands.

The constants are fitted to likes, lengths and replies of 2,489 real comments; `compare` prints how closely a generated
section matches such a file: ``python -m douban_pipeline.demo.comment_shape FILE``.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

Column = np.ndarray[Any, Any]

WITHOUT_LIKE = 0.5645
"""Share of comments without likes."""
_SHARES = (0.0, 0.448, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
_LIKES = (1.0, 1.0, 1.6, 2.0, 3.0, 5.0, 10.7, 35.9, 295.0, 866.0, 2300.0, 6000.0)
"""Quantiles of the likes of the others, with log-linear interpolation."""
_LENGTH, _LENGTH_BY_LIKES, _LENGTH_SPREAD = 2.48, 0.15, 0.72
"""Logarithm of the length: without likes, increase per e-fold of likes, standard deviation."""
_REPLIES = ((0, 0.05), (1, 0.16), (5, 0.31), (20, 0.55), (100, 1.4), (1000, 3.6))
"""Mean number of replies up to a number of likes; 5.2 beyond."""
_MOST_REPLIES = 5.2
_LEVELS = (0.05, 0.07, 0.13, 0.2, 0.25, 0.22, 0.08)


@dataclass(frozen=True, slots=True)
class GeneratedComments:
    """Columns of comments; each element is one comment.

    Attributes:
        likes, dislikes, reports, replies, length, level: As in the tables.
        age_hours: Age; most comments are from the section's first days.
        owner_liked: True for about one in a hundred.
    """

    likes: Column
    dislikes: Column
    reports: Column
    replies: Column
    length: Column
    level: Column
    age_hours: Column
    owner_liked: Column


def generate(count: int, seed: int = 1) -> GeneratedComments:
    """Return ``count`` comments; the same seed gives the same comments."""
    random = np.random.default_rng(seed)
    share = random.random(count)
    likes = np.exp(np.interp(random.random(count), _SHARES, np.log(_LIKES))).astype(np.int64)
    likes[share < WITHOUT_LIKE] = 0
    mean = _LENGTH + _LENGTH_BY_LIKES * np.log1p(likes)
    length = np.clip(np.exp(random.normal(mean, _LENGTH_SPREAD)).astype(np.int64), 1, 3000)
    bounds, means = np.array([each[0] for each in _REPLIES]), np.array([*(each[1] for each in _REPLIES), _MOST_REPLIES])
    replies = random.poisson(means[np.searchsorted(bounds, likes)])
    return GeneratedComments(
        likes=likes,
        dislikes=random.poisson(0.02 + 0.04 * likes),
        reports=random.poisson(0.004, count),
        replies=replies,
        length=length,
        level=random.choice(len(_LEVELS), count, p=_LEVELS),
        age_hours=random.gamma(0.6, 24 * 40, count),
        owner_liked=random.random(count) < 0.003,
    )


def compare(file: Path, console: Console) -> None:
    """Print quantiles of a file with the columns likes, characters and replies beside those of a generated section."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    made = generate(200_000)
    shares = (0.5, 0.7, 0.9, 0.95, 0.99, 0.999)
    for name, column in (("likes", made.likes), ("characters", made.length), ("replies", made.replies)):
        real = np.array([int(row[name]) for row in rows])
        console.print(f"{name}: none in {np.mean(real == 0):.3f}, generated {np.mean(column == 0):.3f}")
        for share in shares:
            console.print(f"  {share:g}: {np.quantile(real, share):.0f}, generated {np.quantile(column, share):.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    compare(parser.parse_args().file, Console(width=120, highlight=False))
