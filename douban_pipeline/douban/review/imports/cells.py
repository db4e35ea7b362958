"""Reads what people and Excel write: cells, of which ambiguous ones are refused, and workbooks as rows of text."""

from __future__ import annotations

import difflib
import io
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

from douban_pipeline.douban.sources.subject_urls import subject_ids
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS

_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_AS_TEXT = re.compile(r'="([^"]*)"')
_LOST = re.compile(r"[+-]?\d+(?:\.\d+)?E[+-]?\d+", re.IGNORECASE)
# At most two decimal places: three digits after a point may be a thousands group.
_WHOLE = re.compile(r"(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.0{0,2})?")
_MOST_DIGITS = 15
_SHOWN = 40

_YES = frozenset(("是", "对", "要", "y", "yes", "t", "true", "on", "1", "1.0", "√", "✓", "✔"))
_NO = frozenset(("否", "不", "不要", "无", "n", "no", "f", "false", "off", "0", "0.0", "×", "✗", "x", "-"))


class CellError(ValueError):
    """A cell cannot be read; the message says why."""


def plain(text: str) -> str:
    """Return a cell normalised for comparison: full-width characters converted, invisible ones removed."""
    found = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).strip()
    match = _AS_TEXT.fullmatch(found)
    return (match[1] if match else found.removeprefix("'")).strip()


def key_of(text: str) -> str:
    """Return the lookup key of a name: case-folded, without spaces, hyphens and underscores."""
    return re.sub(r"[\s_-]", "", plain(text).casefold())


def whole_number(text: str) -> int:
    """Return a number as Excel may have saved it (``1234.0``, ``1,234``, ``="1234"``); 0 for an empty cell.

    Raises:
        CellError: It is not a whole number, or Excel has lost digits of it.
    """
    cell = plain(text)
    if not cell:
        return 0
    if _LOST.fullmatch(cell):
        raise CellError(f"“{_short(cell)}”是科学计数法，Excel 已丢掉末尾的数字：请把这一列设为文本格式，再重新填写")
    if cell.startswith("#"):
        raise CellError(f"“{_short(cell)}”是 Excel 的错误提示，不是数字：请重新填写")
    if not _WHOLE.fullmatch(cell):
        raise CellError(f"“{_short(cell)}”不是不带正负号的整数")
    digits = cell.partition(".")[0].replace(",", "")
    if len(digits) > _MOST_DIGITS:
        raise CellError(f"“{_short(cell)}”的位数太多，Excel 只保留 {_MOST_DIGITS} 位")
    return int(digits)


def subject_id(text: str) -> int:
    """Return a subject's id, written as a number or as the address of its page; 0 for an empty cell.

    Raises:
        CellError: It is neither, or names several.
    """
    if "douban" not in text.casefold():
        return whole_number(text)
    found = subject_ids(plain(text))
    if len(found) != 1:
        raise CellError(f"“{_short(plain(text))}”不是一个豆瓣条目的网址")
    return found[0]


def yes_or_no(text: str) -> bool:
    """Return the boolean value of a cell (是, 否, true, 1 and similar); an empty cell means no.

    Raises:
        CellError: The cell is neither yes nor no.
    """
    cell = plain(text).casefold()
    if cell not in _YES | _NO | {""}:
        raise CellError(f"“{_short(plain(text))}”应为 是 或 否")
    return cell in _YES


_ACTIONS = {key_of(name): action for action in DecisionAction for name in (action.name, ACTIONS[action])}


def action_named(text: str) -> DecisionAction:
    """Return the action of that name, English or Chinese.

    Raises:
        CellError: There is no such action; the message lists similar ones, or all.
    """
    found = _ACTIONS.get(key_of(text))
    if found is not None:
        return found
    near = difflib.get_close_matches(key_of(text), _ACTIONS, n=3, cutoff=0.5)
    meant = list(dict.fromkeys(_ACTIONS[key] for key in near))
    names = "、".join(f"{ACTIONS[action]}（{action}）" for action in meant or DecisionAction)
    raise CellError(f"没有“{_short(plain(text))}”这种决定；{'是不是' if meant else '可以填'}：{names}")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
