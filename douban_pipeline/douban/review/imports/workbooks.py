"""Reads Excel workbooks (xlsx) as rows of text, as if they had been saved as CSV."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

MOST_UNPACKED = 200 * 1024 * 1024
"""Limit of the uncompressed size of a workbook, in bytes: no workbook that a person filled in is larger."""

MOST_ROWS = 200_000


class WorkbookError(Exception):
    """The workbook cannot be read; the message is a sentence for the person who filled it in."""


def workbook_rows(data: bytes) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the rows of the first sheet with their numbers, each cell as text; formulas as their last result.

    Raises:
        WorkbookError: It is damaged, protected by a password, empty, or far too large.
    """
    # Takes a third of a second to load, so it is loaded only when a workbook is read.
    from openpyxl import load_workbook

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            unpacked = sum(part.file_size for part in packed.infolist())
        if unpacked > MOST_UNPACKED:
            raise WorkbookError(
                f"工作簿解压后有 {unpacked // 2**20} MB，最多 {MOST_UNPACKED // 2**20} MB；请分成几个文件"
            )
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    except WorkbookError:
        raise
    except Exception as error:
        raise WorkbookError(f"工作簿无法读取（{type(error).__name__}），可能已损坏或有密码；请重新保存") from error
    try:
        if not book.worksheets:
            raise WorkbookError("工作簿里没有工作表")
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # some programs write wrong dimensions
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            if number > MOST_ROWS:
                raise WorkbookError(f"工作表多于 {MOST_ROWS:,} 行；请分成几个文件")
            yield number, tuple(map(_text, row))
    finally:
        book.close()


def _text(cell: Any) -> str:
    """Return a cell as text, as the CSV file of the same sheet would contain it."""
    match cell:
        case None:
            return ""
        case bool():
            return "TRUE" if cell else "FALSE"
        case float() if cell.is_integer() and abs(cell) < 10**15:
            return str(int(cell))
        case datetime() | date():
            return cell.isoformat(" ") if isinstance(cell, datetime) else cell.isoformat()
        case _:
            return str(cell)
