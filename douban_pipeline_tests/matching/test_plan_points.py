"""The plan's points, pair by pair, against a table worked out from the plan by hand.

``data/plan_points.tsv`` holds invented pairs. 名 is the title, 别 aliases, 年 the year, 映 years of release, 型 the
kind, 区 regions, 导 directors, 演 actors, 类 genres, 分 minutes, 集 episodes, 评 the rating. Notes explain.
Names that are unlike are worked out as the letters in common, twice, over the letters of both.
"""

from __future__ import annotations

import csv
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from douban_pipeline.matching import Kind, Subject, Video, Weights, compare
from douban_pipeline.matching.fields import LengthMatch
from douban_pipeline.matching.plan_points import length_share
from douban_pipeline.matching.profiles import PLAN

TABLE = Path(__file__).parent / "data" / "plan_points.tsv"
ITEMS = [item.name for item in fields(Weights) if item.name != "tie_break"]
WORDS = {"别": "aliases", "区": "regions", "导": "directors", "演": "actors", "类": "genres"}
NUMBERS = {"年": "year", "分": "duration_minutes", "集": "episodes"}


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def facts(cell: str) -> dict[str, Any]:
    """Return the fields that a cell states; strokes part words, and ``_`` is a space."""
    found: dict[str, Any] = {}
    for piece in cell.split(" "):
        key, _, value = piece.replace("_", " ").partition("=")
        if key in WORDS:
            found[WORDS[key]] = tuple(value.split("/"))
        elif key in NUMBERS:
            found[NUMBERS[key]] = int(value)
        elif key == "映":
            found["release_years"] = tuple(map(int, value.split("/")))
        else:
            name, read = {"名": ("title", str), "型": ("kind", Kind), "评": ("rating", float)}[key]
            found[name] = read(value)
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["what"])
def test_the_plan_is_taken_literally(row):
    found = compare(Video(1, **facts(row["video"])), Subject(2, **facts(row["subject"])))
    given = {item.name: round(item.points, 2) for item in PLAN.items(found)[:-1]}
    assert given == {name: float(row[name]) for name in ITEMS}
    assert PLAN.score(found) == pytest.approx(float(row["sum"]), abs=0.01)


@pytest.mark.parametrize(
    ("match", "share"),
    [
        (LengthMatch(None, ""), 0),
        (LengthMatch(True, "", minutes=0), 1),
        (LengthMatch(False, "", minutes=300), 0),
        (LengthMatch(False, "", episodes=(1, 2)), 0.8),
        (LengthMatch(False, "", episodes=(3, 1)), 0.6),
        (LengthMatch(False, "", episodes=(1, 4)), 0),
    ],
)
def test_lengths_at_their_ends(match, share):
    assert length_share(match) == share
