"""Writes the review queue as a CSV file to be filled in with Excel, and reads that file back as decisions."""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.lists.list_table import protected, unprotected
from douban_pipeline.douban.review.imports.cells import (
    CellError,
    WorkbookError,
    action_named,
    key_of,
    plain,
    subject_id,
    whole_number,
    workbook_rows,
    yes_or_no,
)
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate
from douban_pipeline.douban.review.worklist.queue import QueueEntry
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.wording import REVIEW_STATUSES, word_for

MOST_BYTES = 20 * 1024 * 1024
"""Size limit of a file, in bytes; a file with one line for each of 170,000 videos is smaller."""

DELIMITERS = (",", ";", "\t")

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_WORKBOOK = b"PK\x03\x04"
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_SAVE_AS = "请在 Excel 或 WPS 中另存为“CSV UTF-8（逗号分隔）”"
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t])"?\s*', re.IGNORECASE)
_QUOTES = "引号不成对，或引号后面还有文字：含逗号、引号或换行的单元格要整个放在引号里，其中的引号写两遍"


class CsvError(ProblemsError):
    """The file as a whole cannot be read; ``problems`` holds a sentence for each reason."""


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of the file: its first line, and its cells or why they cannot be separated."""

    line: int
    cells: tuple[str, ...]
    wrong: str = ""

    @property
    def blank(self) -> bool:
        """Whether it is empty."""
        return not self.wrong and not any(cell.strip() for cell in self.cells)


def rows_of(data: bytes, is_column: Callable[[str], bool]) -> tuple[CsvRow, Iterator[CsvRow]]:
    """Return the header and the rows below it.

    Args:
        data: UTF-8, UTF-16 with a BOM, or GB18030; separated by commas, semicolons or tabs. Or a workbook (xlsx).
        is_column: Whether a cell is the heading of a known column, by which the separator is detected.

    Raises:
        CsvError: It is empty, too large, not text, or has no known header.
    """
    if data.startswith(_WORKBOOK):
        return _of_workbook(data, is_column)
    lines = list(io.StringIO(_decoded(data), newline=""))
    match = _SEPARATOR_LINE.fullmatch(lines[0])
    first, delimiters = (1, match[1]) if match else (0, DELIMITERS)
    heads = [(delimiter, _header(lines, first, delimiter)) for delimiter in delimiters]
    delimiter, header = max(heads, key=lambda found: sum(map(is_column, found[1].cells)))
    if not any(map(is_column, header.cells)):
        raise CsvError([f"第 {header.line} 行（表头）：{header.wrong}" if header.wrong else _no_header(header)])
    return header, _rows(lines, header.line, delimiter)


def _of_workbook(data: bytes, is_column: Callable[[str], bool]) -> tuple[CsvRow, Iterator[CsvRow]]:
    if len(data) > MOST_BYTES:
        raise CsvError([too_large(len(data))])
    rows = (CsvRow(number, cells) for number, cells in workbook_rows(data))
    try:
        header = next((row for row in rows if not row.blank), CsvRow(1, ()))
        # Empty cells after the last heading are due to the sheet's width and are no error.
        found = list(rows)
    except WorkbookError as error:
        raise CsvError([str(error)]) from error
    if header.blank:
        raise CsvError(["文件是空的"])
    if not any(map(is_column, header.cells)):
        raise CsvError([_no_header(header)])
    width = len(header.cells)
    return header, (replace(row, cells=row.cells + ("",) * (width - len(row.cells))) for row in found)


def too_large(size: int) -> str:
    """Return the message for a file of ``size`` bytes that is too large."""
    return f"文件太大：{size / 2**20:.1f} MB，最多 {MOST_BYTES // 2**20} MB；请分成几个文件"


def _header(lines: Sequence[str], first: int, delimiter: str) -> CsvRow:
    return next((row for row in _rows(lines, first, delimiter) if not row.blank), CsvRow(first + 1, ()))


def _no_header(header: CsvRow) -> str:
    found = "，".join(cell.strip()[:20] for cell in header.cells[:8] if cell.strip())
    return f"第 {header.line} 行不是表头：没有一列的名字认得，读到的是“{found}”；第一行请保留导出时的列名"


def _decoded(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise CsvError([too_large(len(data))])
    if data.startswith(_OLD_WORKBOOK):
        raise CsvError(
            [f"这是 Excel 97–2003 的工作簿（xls）或有密码的工作簿：请另存为 xlsx，或{_SAVE_AS.removeprefix('请')}"]
        )
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", ""))
    text = _first_that_fits(data[len(bom) :], (encoding,) if encoding else ("utf-8", "gb18030"))
    if not text.strip():
        raise CsvError(["文件是空的"])
    if "\0" in text:
        line = _line_at(text, text.index("\0"))
        raise CsvError([f"第 {line} 行含有空字符（NUL）：这不是纯文本，或是没有标记的 UTF-16；{_SAVE_AS}"])
    return text


def _first_that_fits(data: bytes, encodings: Sequence[str]) -> str:
    wrong: UnicodeDecodeError | None = None
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            wrong = wrong or error
    assert wrong is not None
    line = _line_at(data[: wrong.start].decode(wrong.encoding, "replace"), None)
    raise CsvError([f"第 {line} 行的编码无法识别（不是完整的 {wrong.encoding.upper()} 文本）：{_SAVE_AS}"])


def _line_at(text: str, position: int | None) -> int:
    return len(list(io.StringIO(text[:position] + "x", newline="")))


def _rows(lines: Sequence[str], start: int, delimiter: str) -> Iterator[CsvRow]:
    """Yield the rows from line index ``start`` on. After a line that cannot be read, parsing restarts at the next one.

    Otherwise an unclosed quote would consume the rest of the file.
    """
    swallowed = re.compile(rf'[\r\n]\s*"?\d+"?{delimiter}')
    while start < len(lines):
        begin = start
        reader = csv.reader((lines[at] for at in range(start, len(lines))), delimiter=delimiter, strict=True)
        try:
            for cells in reader:
                end = start + reader.line_num
                if end > begin + 1 and any(map(swallowed.search, cells)):
                    raise csv.Error("rows within a cell")
                yield CsvRow(begin + 1, tuple(cells))
                begin = end
            return
        except csv.Error as error:
            long = "field limit" in str(error)
            why = f"一个单元格超过 {csv.field_size_limit()} 个字符，多半是引号没有闭合" if long else _QUOTES
            yield CsvRow(begin + 1, (), why)
            start = begin + 1


SHOWN_CANDIDATES = 5

FIELDS: Mapping[str, tuple[str, ...]] = {
    "vod_id": ("vod_id", "影片ID", "影片"),
    "action": ("决定", "action"),
    "douban_id": ("豆瓣ID", "douban_id"),
    "rank": ("候选序号", "rank"),
    "days": ("天数", "days"),
    "lock": ("锁定", "lock"),
    "accept_conflicts": ("接受冲突", "accept_conflicts"),
    "override_cms_lock": ("写入CMS锁定", "override_cms_lock"),
    "note": ("备注", "note"),
    "verdict_id": ("verdict_id", "判定ID"),
}
"""Accepted names of the columns, by the field of the decision; the first is used on export."""

READING = (
    "片名",
    "年份",
    "类别",
    "热度",
    "现有ID",
    "状态",
    "原因",
    "首选",
    "候选2",
    "候选3",
    "候选4",
    "候选5",
    "相似度",
)
"""Columns for information; they are ignored on import."""

_FILLED = ("action", "douban_id", "rank", "days", "lock", "accept_conflicts", "override_cms_lock", "note")
_HEADER = ("vod_id", *READING, *(FIELDS[name][0] for name in _FILLED), "verdict_id")
_NEEDED = ("vod_id", "action")
# A value in one of these shows that a decision was intended.
_TELLING = ("douban_id", "rank", "days", "lock", "accept_conflicts", "override_cms_lock")

_READERS: Mapping[str, Callable[[str], Any]] = {
    "vod_id": whole_number,
    "action": action_named,
    "douban_id": subject_id,
    "rank": whole_number,
    "days": whole_number,
    "lock": yes_or_no,
    "accept_conflicts": yes_or_no,
    "override_cms_lock": yes_or_no,
    "note": unprotected,
    "verdict_id": whole_number,
}
_FIELD_OF = {key_of(name): field for field, names in FIELDS.items() for name in names}
_READING_KEYS = frozenset(map(key_of, READING))


@dataclass(frozen=True, slots=True)
class ParsedDecisions:
    """Decisions of a file.

    Attributes:
        decisions: The decisions, each with its line.
        lines: Their lines.
        refused: Lines that cannot be read, in the file's order, and why.
        undecided: Number of lines without a decision.
        ignored: Unknown columns.
    """

    decisions: tuple[Decision, ...]
    lines: tuple[int, ...]
    refused: tuple[tuple[int, str], ...]
    undecided: int
    ignored: tuple[str, ...]


def export_csv(waiting: Iterable[QueueEntry]) -> bytes:
    """Return a CSV file of ``waiting``, one line per video, that Excel opens as UTF-8; no cell is a formula."""
    import pandas  # loaded only by a run that needs it

    rows = []
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
        similarity = entry.candidates[0].similarity if entry.candidates else None
        shown.append("" if similarity is None else f"{similarity:.2f}")
        cells = map(protected, (*facts, *shown))
        rows.append((entry.vod_id, *cells, *("" for _ in _FILLED), entry.verdict_id or ""))
    table = pandas.DataFrame(rows, columns=list(_HEADER), dtype=object)
    return table.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def _candidate(candidate: ReviewCandidate) -> str:
    text = f"{candidate.rank}. {candidate.title}（{candidate.year or '?'}）{candidate.douban_id} {candidate.score:.1f}"
    return text + (f" 冲突：{'；'.join(candidate.conflicts.values())}" if candidate.conflicts else "")


def parse_csv(data: bytes) -> ParsedDecisions:
    """Return the decisions of a file that was exported or written by hand.

    Lines without a decision are skipped; a line that cannot be read, or that may mean something else, is refused
    by itself.

    Raises:
        CsvError: The file as a whole cannot be read, or lacks a column.
    """
    header, rows = rows_of(data, lambda cell: key_of(cell) in _FIELD_OF)
    columns, ignored = _columns(header)
    decisions: dict[int, Decision] = {}
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
        decision = None if why else _decision(row.line, cells)
        if isinstance(decision, Decision):
            decisions[row.line] = decision
        else:
            refused.append((row.line, why or str(decision)))
    return ParsedDecisions(tuple(decisions.values()), tuple(decisions), tuple(refused), undecided, ignored)


def _columns(header: CsvRow) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the position of every field, and the unknown columns."""
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
    # Values in a misspelt column must not be lost. A column with an unrelated name is ignored.
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


def _misfit(row: CsvRow, columns: Mapping[str, int], width: int) -> str:
    """Return why the cells of a row may not be under their headings, empty if they are.

    Spreadsheets omit empty cells at the end of a row, so a row may be short, but not before the decision.
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


def _decision(line: int, cells: Mapping[str, str]) -> Decision | str:
    """Return the decision of a line, or the problems of its cells as text."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for field, cell in cells.items():
        try:
            values[field] = _READERS[field](cell)
        except CellError as error:
            problems.append(f"{FIELDS[field][0]}：{error}")
    if not problems and not values["vod_id"]:
        problems.append("vod_id：是空的")
    return "；".join(problems) if problems else Decision(**values, where=f"第 {line} 行")
