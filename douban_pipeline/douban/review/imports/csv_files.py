"""The review queue as a CSV file that is filled in with Excel, and that file read back as decisions."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from douban_pipeline.douban.review.imports.cells import (
    CellError,
    action_named,
    key_of,
    plain,
    protected,
    subject_id,
    unprotected,
    whole_number,
    yes_or_no,
)
from douban_pipeline.douban.review.imports.csv_rows import CsvError, Row, rows_of
from douban_pipeline.douban.review.reading.queue import Waiting
from douban_pipeline.douban.review.recording.candidates import Candidate
from douban_pipeline.douban.review.recording.wishes import Wish
from douban_pipeline.douban.wording import REVIEW_STATUSES, word_for

SHOWN_CANDIDATES = 5

FIELDS: Mapping[str, tuple[str, ...]] = {
    "vod_id": ("vod_id", "影片ID", "影片"),
    "action": ("决定", "action"),
    "douban_id": ("豆瓣ID", "douban_id"),
    "rank": ("候选序号", "rank"),
    "days": ("天数", "days"),
    "lock": ("锁定", "lock"),
    "accept_conflicts": ("接受冲突", "accept_conflicts"),
    "note": ("备注", "note"),
    "verdict_id": ("verdict_id", "判定ID"),
}
"""What a column may be called, by the field of the decision; the first is written."""

READING = ("片名", "年份", "类别", "热度", "现有ID", "状态", "原因", "首选", "候选2", "候选3", "候选4", "候选5")
"""Columns that are there to be read; they are not read back."""

_FILLED = ("action", "douban_id", "rank", "days", "lock", "accept_conflicts", "note")
_HEADER = ("vod_id", *READING, *(FIELDS[name][0] for name in _FILLED), "verdict_id")
_NEEDED = ("vod_id", "action")
# Whoever fills in one of these meant to decide something.
_TELLING = ("douban_id", "rank", "days", "lock", "accept_conflicts")

_READERS: Mapping[str, Callable[[str], Any]] = {
    "vod_id": whole_number,
    "action": action_named,
    "douban_id": subject_id,
    "rank": whole_number,
    "days": whole_number,
    "lock": yes_or_no,
    "accept_conflicts": yes_or_no,
    "note": unprotected,
    "verdict_id": whole_number,
}
_FIELD_OF = {key_of(name): field for field, names in FIELDS.items() for name in names}
_READING_KEYS = frozenset(map(key_of, READING))


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file says.

    Attributes:
        wishes: The decisions, each naming its line.
        lines: Their lines.
        refused: Lines that cannot be read, in the file's order, and why.
        undecided: How many lines have no decision.
        ignored: Columns that are not known.
    """

    wishes: tuple[Wish, ...]
    lines: tuple[int, ...]
    refused: tuple[tuple[int, str], ...]
    undecided: int
    ignored: tuple[str, ...]


def export_csv(waiting: Iterable[Waiting]) -> bytes:
    """Return a CSV file of ``waiting``, a line a video, that Excel opens as UTF-8; nothing in it is a formula."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_HEADER)
    for entry in waiting:
        shown = [_candidate(candidate) for candidate in entry.candidates[:SHOWN_CANDIDATES]]
        shown += [""] * (SHOWN_CANDIDATES - len(shown))
        facts = (
            entry.title,
            entry.year,
            entry.category,
            str(entry.hits),
            str(entry.douban_id or ""),
            word_for(REVIEW_STATUSES, entry.status),
            entry.reason,
        )
        told = map(protected, (*facts, *shown))
        writer.writerow((entry.vod_id, *told, *("" for _ in _FILLED), entry.verdict_id or ""))
    return text.getvalue().encode("utf-8-sig")


def _candidate(candidate: Candidate) -> str:
    told = f"{candidate.rank}. {candidate.title}（{candidate.year or '?'}）{candidate.douban_id} {candidate.score:.1f}"
    return told + (f" 冲突：{'；'.join(candidate.conflicts.values())}" if candidate.conflicts else "")


def parse_csv(data: bytes) -> Parsed:
    """Return the decisions of a file that was exported or typed.

    Lines without a decision are passed over; a line that cannot be read, or that may mean something else, is refused
    by itself.

    Raises:
        CsvError: The file as a whole cannot be read, or lacks a column.
    """
    header, rows = rows_of(data, lambda cell: key_of(cell) in _FIELD_OF)
    columns, ignored = _columns(header)
    wishes: dict[int, Wish] = {}
    refused: list[tuple[int, str]] = []
    undecided = 0
    for row in rows:
        if row.blank:
            continue
        why = row.wrong or _misfit(row, columns, len(header.cells))
        cells = {} if why else {field: row.cells[at] for field, at in columns.items() if at < len(row.cells)}
        if not why and not plain(cells["action"]):
            why = _half_filled(cells)
            undecided += not why
            if not why:
                continue
        wish = None if why else _wish(row.line, cells)
        if isinstance(wish, Wish):
            wishes[row.line] = wish
        else:
            refused.append((row.line, why or str(wish)))
    return Parsed(tuple(wishes.values()), tuple(wishes), tuple(refused), undecided, ignored)


def _columns(header: Row) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the place of every field, and the columns that are not known."""
    columns: dict[str, int] = {}
    problems: list[str] = []
    strange: list[str] = []
    for at, cell in enumerate(header.cells):
        key = key_of(cell)
        field = _FIELD_OF.get(key)
        if field in columns:
            problems.append(f"“{FIELDS[field][0]}”一列有两个：第 {columns[field] + 1} 列和第 {at + 1} 列")
        elif field:
            columns[field] = at
        elif key and key not in _READING_KEYS:
            strange.append(plain(cell)[:20])
    # What was written into a misspelt column must not be lost; one of another name is somebody's own.
    missing = {key: FIELDS[field][0] for key, field in _FIELD_OF.items() if field not in columns}
    for name in strange:
        problems += [
            f"没有“{name}”这一列；若是“{missing[near]}”请改名，否则请删去"
            for near in difflib.get_close_matches(key_of(name), missing, n=1, cutoff=0.5)
        ]
    problems += [f"缺少“{FIELDS[field][0]}”一列" for field in _NEEDED if field not in columns]
    if problems:
        raise CsvError([f"第 {header.line} 行（表头）：{problem}" for problem in problems])
    return columns, tuple(strange)


def _misfit(row: Row, columns: Mapping[str, int], width: int) -> str:
    """Return why the cells of a row cannot be trusted to stand under their heads, empty if they can.

    Spreadsheets leave out empty cells at the end of a row, so that one may be short; but not before the decision.
    """
    found = len(row.cells)
    if any(cell.strip() for cell in row.cells[width:]):
        return f"有 {found} 格，表头只有 {width} 列：多半是某格里的逗号没有用引号括住"
    if found <= max(columns[field] for field in _NEEDED):
        return f"只有 {found} 格，表头有 {width} 列：这一行不完整，或被格内的换行拆开"
    return ""


def _half_filled(cells: Mapping[str, str]) -> str:
    filled = [FIELDS[field][0] for field in _TELLING if plain(cells.get(field, "")) not in ("", "0", "否")]
    return f"填写了{'、'.join(filled)}，但“决定”一格是空的" if filled else ""


def _wish(line: int, cells: Mapping[str, str]) -> Wish | str:
    """Return the decision of a line, or what is wrong with its cells."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field, cell in cells.items():
        try:
            values[field] = _READERS[field](cell)
        except CellError as error:
            problems.append(f"{FIELDS[field][0]}：{error}")
    if not problems and not values["vod_id"]:
        problems.append("vod_id：是空的")
    return "；".join(problems) if problems else Wish(**values, where=f"第 {line} 行")
