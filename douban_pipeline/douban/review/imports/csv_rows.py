"""Bytes as spreadsheets and editors save them, taken apart into rows: encoding, separator, quotes, line numbers.

Knows nothing of decisions. What cannot be read is told in a sentence with its line; nothing is guessed.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.core.errors import ProblemsError

MOST_BYTES = 20 * 1024 * 1024
"""A line for every video of a library of 170,000 is smaller."""

DELIMITERS = (",", ";", "\t")

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Excel's old and new files, saved or renamed as if they were CSV.
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_SAVE_AS = "请在 Excel 或 WPS 中另存为“CSV UTF-8（逗号分隔）”"
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t])"?\s*', re.IGNORECASE)
_QUOTES = "引号不成对，或引号后面还有文字：含逗号、引号或换行的单元格要整个放在引号里，其中的引号写两遍"


class CsvError(ProblemsError):
    """The file as a whole cannot be read; ``problems`` holds a sentence for each reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the file: the line on which it begins, and its cells or why they cannot be told apart."""

    line: int
    cells: tuple[str, ...]
    wrong: str = ""

    @property
    def blank(self) -> bool:
        """Whether nothing is written in it."""
        return not self.wrong and not any(cell.strip() for cell in self.cells)


def rows_of(data: bytes, is_column: Callable[[str], bool]) -> tuple[Row, Iterator[Row]]:
    """Return the header and the rows under it.

    Args:
        data: UTF-8, UTF-16 with its mark, or GB18030; separated by commas, semicolons or tabs.
        is_column: Whether a cell is the head of a column that is known: by it the separator is told.

    Raises:
        CsvError: It is empty, too large, no text, or has no header that is known.
    """
    lines = list(io.StringIO(_decoded(data), newline=""))
    match = _SEPARATOR_LINE.fullmatch(lines[0])
    first, delimiters = (1, match[1]) if match else (0, DELIMITERS)
    heads = [(delimiter, _header(lines, first, delimiter)) for delimiter in delimiters]
    delimiter, header = max(heads, key=lambda found: sum(map(is_column, found[1].cells)))
    if not any(map(is_column, header.cells)):
        raise CsvError([f"第 {header.line} 行（表头）：{header.wrong}" if header.wrong else _no_header(header)])
    return header, _rows(lines, header.line, delimiter)


def too_large(size: int) -> str:
    """Return what is said of a file of so many bytes."""
    return f"文件太大：{size / 2**20:.1f} MB，最多 {MOST_BYTES // 2**20} MB；请分成几个文件"


def _header(lines: Sequence[str], first: int, delimiter: str) -> Row:
    return next((row for row in _rows(lines, first, delimiter) if not row.blank), Row(first + 1, ()))


def _no_header(header: Row) -> str:
    found = "，".join(cell.strip()[:20] for cell in header.cells[:8] if cell.strip())
    return f"第 {header.line} 行不是表头：没有一列的名字认得，读到的是“{found}”；第一行请保留导出时的列名"


def _decoded(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise CsvError([too_large(len(data))])
    if data.startswith(_WORKBOOKS):
        raise CsvError([f"这是 Excel 工作簿，不是 CSV：{_SAVE_AS}"])
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


def _rows(lines: Sequence[str], start: int, delimiter: str) -> Iterator[Row]:
    """Yield the rows from line index ``start`` on. After a line that cannot be read, the next one is read anew.

    A quote that is never closed would otherwise swallow the rest of the file.
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
                yield Row(begin + 1, tuple(cells))
                begin = end
            return
        except csv.Error as error:
            long = "field limit" in str(error)
            why = f"一个单元格超过 {csv.field_size_limit()} 个字符，多半是引号没有闭合" if long else _QUOTES
            yield Row(begin + 1, (), why)
            start = begin + 1
