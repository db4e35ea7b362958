"""This evaluation against an earlier one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from douban_pipeline_tests.douban.quality.rows import gold, none_row, result, trap_row
from douban_pipeline_tests.tools.evaluate.comparison import (
    Grade,
    Prediction,
    compare_with,
    grade,
    grade_name,
    predictions_of,
    read_predictions,
)

NOTHING = Prediction("NOT_FOUND", None, ())


@pytest.mark.parametrize(
    ("row", "verdict", "candidates", "expected"),
    [
        (gold(), "CONFIRMED", (100,), Grade.RIGHT),
        (gold(), "CONFIRMED", (101, 100), Grade.WRONG),
        (gold(), "REVIEW", (100, 1), Grade.TOP),
        (gold(), "REVIEW", (1, 2, 3, 4, 100), Grade.SHOWN),
        (gold(), "REVIEW", (1, 2, 3, 4, 5, 100), Grade.DEEP),
        (gold(), "REVIEW", (1,), Grade.MISSED),
        (gold(), "NOT_FOUND", (100,), Grade.MISSED),  # nobody is shown it
        (none_row(), "CONFIRMED", (100,), Grade.WRONG),
        (none_row(), "REVIEW", (100,), Grade.TOP),
        (none_row(), "NOT_FOUND", (), Grade.RIGHT),
        (trap_row(), "CONFIRMED", (666,), Grade.WRONG),
        (trap_row(), "CONFIRMED", (1,), Grade.RIGHT),
        (trap_row(), "REVIEW", (666,), Grade.RIGHT),
    ],
)
def test_grades(row, verdict, candidates, expected):
    found = Prediction(verdict, candidates[0] if candidates else None, candidates)
    assert grade(row, found) is expected
    assert grade_name(row, expected)


def test_rows_fare_better_worse_or_as_before():
    before = [
        result(gold(1)),  # right, and stays
        result(gold(2)),  # right, then wrong
        result(gold(3)),  # right, then in review
        result(gold(4), "NOT_FOUND", None),  # missed, then right
        result(gold(5), "REVIEW", 1, others=(100,)),  # shown, then on top
        result(gold(6), "REVIEW", 1),  # missed, and stays with another candidate
        result(gold(7)),  # gone
    ]
    after = [
        result(gold(1)),
        result(gold(2), best=101),
        result(gold(3), "REVIEW"),
        result(gold(4)),
        result(gold(5), "REVIEW"),
        result(gold(6), "REVIEW", 2),
        result(gold(8)),  # new
    ]
    found = compare_with(predictions_of(before), after, "earlier")
    assert [change.result.gold.row for change in found.regressed] == [2, 3]
    assert [change.result.gold.row for change in found.improved] == [4, 5]
    assert (found.unchanged, found.relinked, found.added, found.gone) == (2, 1, 1, 1)
    assert (found.regressed[0].before, found.regressed[0].after) == (Grade.RIGHT, Grade.WRONG)
    assert found.regressed[0].earlier.douban_id == 100


def test_what_was_written_is_read_back(tmp_path: Path):
    results = [result(gold(1, gid="g1"), others=(7,)), result(none_row(1), "NOT_FOUND", None)]
    path = tmp_path / "predictions.jsonl"
    path.write_text("".join(json.dumps(each.to_json()) + "\n" for each in results), encoding="utf-8")
    assert read_predictions(path) == predictions_of(results)
    assert read_predictions(path)["gold.jsonl", 1, "g1"] == Prediction("CONFIRMED", 100, (100, 7))
    assert read_predictions(path)["none.jsonl", 1, ""] == NOTHING
