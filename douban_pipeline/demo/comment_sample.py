"""Creates a table of comments like the CMS's for the demo, distributed like real ones, with composed texts.

Most comments are without a like, a few have thousands. The constants are fitted to likes, lengths and replies of 2,489
real comments; `compare` prints how closely a generated section matches such a file:
``python -m douban_pipeline.demo.comment_sample FILE``.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sqlalchemy import BigInteger, Column, Connection, Integer, MetaData, SmallInteger, String, Table, insert

from douban_pipeline.demo.sample import read_data

ADVERT = "想看完整版的都来这里 https://watch.example/full 限时免费，不用谢"
"""A comment with purchased likes, for the demo's rule."""
_ADVERT_LIKES, _ADVERT_REPORTS, _ADVERT_BEHIND = 940, 4, 40
_TABLE = Table(
    "mac_comment",
    MetaData(),
    Column("comment_id", BigInteger, primary_key=True),
    *(Column(f"comment_{name}", SmallInteger, nullable=False, default=1) for name in ("mid", "status")),
    *(Column(name, Integer, nullable=False, default=0) for name in ("comment_rid", "comment_pid", "user_id")),
    *(Column(f"comment_{name}", BigInteger, nullable=False, default=0) for name in ("ip", "time")),
    *(Column(f"comment_{name}", Integer, nullable=False, default=0) for name in ("up", "down", "reply", "report")),
    Column("comment_name", String(60), nullable=False, default=""),
    Column("comment_content", String(255), nullable=False, default=""),
)


def make_comments(connection: Connection, count: int, object_id: int, now: datetime) -> None:
    """Create the table ``mac_comment`` with comments on one video, oldest first."""
    _TABLE.create(connection)
    connection.execute(insert(_TABLE), list(_rows(count, object_id, now)))


def _rows(count: int, object_id: int, now: datetime) -> Iterator[dict[str, Any]]:
    draw = random.Random(7)
    shape = generate(count, seed=7)
    texts: dict[str, list[str]] = read_data("comments.json")
    clauses, short, names, replies = (texts[name] for name in ("clauses", "short", "names", "replies"))
    # As many roots as fit with their replies; leftover replies go to the last root.
    kept = int(np.searchsorted(np.cumsum(1 + shape.replies), count))
    below = [int(each) for each in shape.replies[:kept]]
    oldest_first = sorted(range(kept), key=lambda row: -shape.age_hours[row])
    below[oldest_first[0]] += count - kept - sum(below)
    number = 0
    for place, row in enumerate(oldest_first):
        number += 1
        root, begun = number, now.timestamp() - 3600 * float(shape.age_hours[row])
        advert = place == kept - _ADVERT_BEHIND
        text = ADVERT if advert else _text(int(shape.length[row]), clauses, short, draw)
        yield _row(number, object_id, 0, begun, text, draw, names) | {
            "comment_up": _ADVERT_LIKES if advert else int(shape.likes[row]),
            "comment_down": int(shape.dislikes[row]),
            "comment_report": _ADVERT_REPORTS if advert else int(shape.reports[row]),
        }
        for _ in range(below[row]):
            number += 1
            at = begun + draw.random() * (now.timestamp() - begun)
            yield _row(number, object_id, root, at, draw.choice(replies), draw, names)


def _row(
    number: int, object_id: int, parent: int, at: float, text: str, draw: random.Random, names: list[str]
) -> dict[str, Any]:
    user = draw.randrange(1, 900)
    given: dict[str, Any] = {"comment_id": number, "comment_rid": object_id, "comment_pid": parent, "user_id": user}
    given |= {"comment_name": names[user % len(names)], "comment_time": int(at), "comment_content": text}
    return given | {"comment_up": 0, "comment_down": 0, "comment_report": 0}


def _text(length: int, clauses: list[str], short: list[str], draw: random.Random) -> str:
    if length < 5:
        return draw.choice(short)
    found = draw.choice(clauses)
    while len(found) < min(length, 240):
        found += draw.choice("，，，。") + draw.choice(clauses)
    return found


_Numbers = np.ndarray[Any, Any]

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

    likes: _Numbers
    dislikes: _Numbers
    reports: _Numbers
    replies: _Numbers
    length: _Numbers
    level: _Numbers
    age_hours: _Numbers
    owner_liked: _Numbers


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
