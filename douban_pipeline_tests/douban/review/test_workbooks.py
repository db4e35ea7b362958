"""Decisions in Excel's own files: read as the CSV of the same sheet would be."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from openpyxl import Workbook

from douban_pipeline.douban.review.imports import cells
from douban_pipeline.douban.review.imports.csv_files import CsvError, parse_csv
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction

HEADS = ["vod_id", "决定", "豆瓣ID", "天数", "锁定", "备注"]


def workbook(*rows: list[Any]) -> bytes:
    """Return a workbook whose first sheet has these rows; the second is somebody's own."""
    book = Workbook()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    book.create_sheet("别的").append(["vod_id", "决定"])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def test_numbers_words_and_booleans_are_what_they_mean() -> None:
    parsed = parse_csv(
        workbook(
            HEADS,
            [4, "指定豆瓣 ID", 1292052, None, True, "海报一致"],
            [5.0, "忽略", None, 30.0, False, None],
            [6, None, None, None, None, None],
            ["7", "set_id", "https://movie.douban.com/subject/1291546/", None, "是", None],
        )
    )
    assert parsed.refused == ()
    assert parsed.undecided == 1
    assert parsed.lines == (2, 3, 5)
    assert parsed.decisions == (
        Decision(4, DecisionAction.set_id, 1292052, lock=True, note="海报一致", where="第 2 行"),
        Decision(5, DecisionAction.ignore, days=30, where="第 3 行"),
        Decision(7, DecisionAction.set_id, 1291546, lock=True, where="第 5 行"),
    )


def test_empty_rows_above_and_between_are_skipped_and_lines_are_those_of_the_sheet() -> None:
    parsed = parse_csv(workbook([], HEADS, [], [4, "忽略"], [5, "没有这种"]))
    assert parsed.lines == (4,)
    [(line, why)] = parsed.refused
    assert line == 5
    assert "没有这种" in why


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([4.5, "忽略"], "4.5"),
        ([4, "set_id", 1.292052e20], "科学计数法"),
        ([4, "set_id", "#REF!"], "Excel 的错误提示"),
    ],
)
def test_what_may_mean_something_else_is_refused(row: list[Any], why: str) -> None:
    [(_, told)] = parse_csv(workbook(HEADS, row)).refused
    assert why in told


def test_a_workbook_that_is_none_says_why() -> None:
    with pytest.raises(CsvError, match="没有一列的名字认得"):
        parse_csv(workbook(["甲", "乙"], [1, 2]))
    with pytest.raises(CsvError, match="文件是空的"):
        parse_csv(workbook())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("a.txt", "x")
    with pytest.raises(CsvError, match="工作簿无法读取"):
        parse_csv(packed.getvalue())


def test_one_that_unpacks_to_too_much_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_UNPACKED", 100)
    with pytest.raises(CsvError, match="解压后"):
        parse_csv(workbook(HEADS, [4, "忽略"]))
    monkeypatch.undo()
    monkeypatch.setattr(cells, "MOST_ROWS", 2)
    with pytest.raises(CsvError, match="工作表多于"):
        parse_csv(workbook(HEADS, [4, "忽略"], [5, "忽略"]))
