"""Decisions in files: writes the review queue as CSV to be filled in, and reads such files and workbooks back."""

from __future__ import annotations

import difflib
import errno
import io
import os
import re
import stat
import unicodedata
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.lists.list_table import protected, unprotected
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate
from douban_pipeline.douban.review.worklist.queue import QueueEntry
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.sources.subject_urls import subject_ids
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS, REVIEW_STATUSES, word_for

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_BYTES = 20 * 1024 * 1024
"""Size limit of a file, in bytes; a file with one line for each of 170,000 videos is smaller."""
MOST_UNPACKED = 10 * MOST_BYTES
"""The same of a workbook's content: no workbook that a person filled in is larger."""

SHOWN_CANDIDATES = 5
READING = (
    *("片名", "年份", "类别", "热度", "现有ID", "状态", "原因", "首选"),
    *(f"候选{rank}" for rank in range(2, SHOWN_CANDIDATES + 1)),
    "相似度",
)
"""Columns for information; they are ignored on import."""

_MOST_COLUMNS = 200
_MOST_SHOWN = 50
_SEPARATORS = ",;\t"
_WORKBOOK, _OLD_WORKBOOK, _UTF_16 = b"PK\x03\x04", b"\xd0\xcf\x11\xe0", (b"\xff\xfe", b"\xfe\xff")
_SAVE_AS = "请在 Excel 或 WPS 中另存为“CSV UTF-8（逗号分隔）”"
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_AS_TEXT = re.compile(r'="([^"]*)"')
_LOST = re.compile(r"[+-]?\d+(?:\.\d+)?E[+-]?\d+", re.IGNORECASE)
# At most two decimal places: three digits after a point may be a thousands group. Excel keeps 15 digits.
_WHOLE = re.compile(r"(?=(?:\D*\d){1,15}\D*(?:\.|$))(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.0{0,2})?")
_YES = frozenset(["是", "对", "要", "y", "yes", "t", "true", "on", "1", "1.0", "√", "✓", "✔"])
_NO = frozenset(("", *["否", "不", "不要", "无", "n", "no", "f", "false", "off", "0", "0.0", "×", "✗", "x", "-"]))


class FileError(ProblemsError):
    """The file as a whole cannot be read; ``problems`` holds a sentence for each reason."""


@dataclass(frozen=True, slots=True)
class ParsedDecisions:
    """Decisions of a file.

    Attributes:
        decisions: The decisions, by their row in the sheet.
        refused: Rows that cannot be read, and why.
        undecided: Number of rows without a decision.
        ignored: Unknown columns.
    """

    decisions: Mapping[int, Decision]
    refused: Mapping[int, str]
    undecided: int
    ignored: tuple[str, ...]


# --- cells


def _plain(text: str) -> str:
    """Return a cell normalised for comparison: full-width characters converted, invisible ones removed."""
    found = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).strip()
    match = _AS_TEXT.fullmatch(found)
    return (match[1] if match else found.removeprefix("'")).strip()


def _key_of(text: str) -> str:
    return re.sub(r"[\s_-]", "", _plain(text).casefold())


def _number(text: str) -> int:
    """Return a number as Excel may have saved it (``1234.0``, ``1,234``, ``="1234"``); 0 for an empty cell."""
    cell = _plain(text)
    if _LOST.fullmatch(cell):
        raise ValueError("是科学计数法，Excel 已丢掉末尾的数字：请把这一列设为文本格式，再重新填写")
    if cell and not _WHOLE.fullmatch(cell):
        raise ValueError("不是最多 15 位、不带正负号的整数：请重新填写")
    return int(cell.partition(".")[0].replace(",", "")) if cell else 0


def _subject(text: str) -> int:
    """Return a subject's id, written as a number or as the address of its page; 0 for an empty cell."""
    if "douban" not in text.casefold():
        return _number(text)
    found = subject_ids(_plain(text))
    if len(found) != 1:
        raise ValueError("不是一个豆瓣条目的网址：请写条目的 ID 或它的网址")
    return found[0]


def _yes(text: str) -> bool:
    cell = _plain(text).casefold()
    if cell not in _YES | _NO:
        raise ValueError("应为 是 或 否")
    return cell in _YES


_ACTIONS = {_key_of(name): action for action in DecisionAction for name in (action.name, ACTIONS[action])}


def _action(text: str) -> DecisionAction:
    found = _ACTIONS.get(_key_of(text))
    if found is None:
        near = difflib.get_close_matches(_key_of(text), _ACTIONS, n=3, cutoff=0.5)
        meant = list(dict.fromkeys(_ACTIONS[key] for key in near))
        names = "、".join(f"{ACTIONS[action]}（{action}）" for action in meant or DecisionAction)
        raise ValueError(f"不是一种决定；{'是不是' if meant else '可以填'}：{names}")
    return found


def _video(number: int) -> int:
    if not number:
        raise ValueError("是空的：请填写影片的 vod_id")
    return number


_Number = Annotated[int, BeforeValidator(_number)]
_Yes = Annotated[bool, BeforeValidator(_yes)]


class _Row(BaseModel):
    """A row with a decision, its cells as text. The titles are the names of the columns, the first on export."""

    vod_id: Annotated[_Number, AfterValidator(_video)] = Field(title="vod_id/影片ID/影片")
    action: Annotated[DecisionAction, BeforeValidator(_action)] = Field(title="决定")
    douban_id: Annotated[int, BeforeValidator(_subject)] = Field(0, title="豆瓣ID")
    rank: _Number = Field(0, title="候选序号")
    days: _Number = Field(0, title="天数")
    lock: _Yes = Field(False, title="锁定")
    accept_conflicts: _Yes = Field(False, title="接受冲突")
    override_cms_lock: _Yes = Field(False, title="写入CMS锁定")
    note: Annotated[str, AfterValidator(unprotected)] = Field("", title="备注")
    verdict_id: _Number = Field(0, title="verdict_id/判定ID")


_NAMES = {field: str(info.title).split("/") for field, info in _Row.model_fields.items()}
_FILLED = [field for field in _NAMES if field not in ("vod_id", "verdict_id")]
_FIELD_OF = {_key_of(name): field for field, names in _NAMES.items() for name in (field, *names)}
_SHOWN_KEYS = {"", *map(_key_of, READING)}


# --- files


def export_csv(waiting: Iterable[QueueEntry]) -> bytes:
    """Return a CSV file of ``waiting``, one line per video, that Excel opens as UTF-8; no cell is a formula."""
    import pandas  # loaded only by a run that needs it

    header = ["vod_id", *READING, *(_NAMES[name][0] for name in _FILLED), "verdict_id"]
    rows = []
    for entry in waiting:
        shown = [_candidate(each) for each in entry.candidates[:SHOWN_CANDIDATES]]
        facts = [entry.title, entry.year, entry.category, str(entry.hits), str(entry.douban_id or "")]
        facts += [word_for(REVIEW_STATUSES, entry.status), entry.reason]
        facts += [*shown, *[""] * (SHOWN_CANDIDATES - len(shown))]
        similarity = entry.candidates[0].similarity if entry.candidates else None
        facts.append("" if similarity is None else f"{similarity:.2f}")
        rows.append([entry.vod_id, *map(protected, facts), *[""] * len(_FILLED), entry.verdict_id or ""])
    table = pandas.DataFrame(rows, columns=header, dtype=object)
    return table.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def _candidate(candidate: ReviewCandidate) -> str:
    text = f"{candidate.rank}. {candidate.title}（{candidate.year or '?'}）{candidate.douban_id} {candidate.score:.1f}"
    return text + (f" 冲突：{'；'.join(candidate.conflicts.values())}" if candidate.conflicts else "")


def parse_decisions(data: bytes, name: str = "") -> ParsedDecisions:
    """Return the decisions of a CSV file or workbook, exported or written by hand.

    Rows without a decision are skipped; a row that cannot be read, or that may mean something else, is refused by
    itself.

    Args:
        data: UTF-8, UTF-16 with a mark or GB18030, separated by commas, semicolons or tabs; or a workbook (xlsx).
        name: The file, for messages.

    Raises:
        FileError: The file as a whole cannot be read, or lacks a column.
    """
    rows = [
        (number, cells)
        for number, cells in enumerate(_table(data).itertuples(index=False, name=None), start=1)
        if any(cell.strip() for cell in cells)
    ]
    if not rows:
        raise FileError(["文件是空的"])
    columns, ignored = _columns(*rows[0])
    width = max(at for at, cell in enumerate(rows[0][1]) if cell.strip()) + 1
    decisions: dict[int, Decision] = {}
    refused: dict[int, str] = {}
    undecided = 0
    for number, cells in rows[1:]:
        values = {field: cells[at] for field, at in columns.items()}
        filled = [_NAMES[name][0] for name in _FILLED[1:-1] if _plain(values.get(name, "")) not in ("", "0", "否")]
        swallowed = any(re.search(r"\n\s*\"?\d+\"?[,;\t]", cell) for cell in cells)
        if swallowed or any(cell.strip() for cell in cells[width:]):
            refused[number] = "引号不成对，或格子比表头多：含逗号、引号或换行的单元格要整个放在引号里，其中的引号写两遍"
        elif _plain(values["action"]):
            where = f"{name} 第 {number} 行".strip()
            try:
                decisions[number] = Decision(**_Row.model_validate(values).model_dump(), where=where)
            except ValidationError as error:
                refused[number] = "；".join(map(_problem, error.errors(include_url=False)))
        elif filled:
            refused[number] = f"填写了{'、'.join(filled)}，但“决定”一格是空的：请填写决定，或清空这些格"
        else:
            undecided += 1
    return ParsedDecisions(decisions, refused, undecided, ignored)


def _problem(error: Mapping[str, Any]) -> str:
    """Return a sentence for a cell that cannot be read: its column, its value and the remedy."""
    value = str(error["input"]).strip()
    why = str(error["msg"]).removeprefix("Value error, ")
    return f"{_NAMES[error['loc'][0]][0]}{f'“{value[:40]}”' if value and value != '0' else ' '}{why}"


def _columns(line: int, header: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the position of every field, and the unknown columns."""
    columns: dict[str, int] = {}
    strange: list[str] = []
    problems: list[str] = []
    for at, cell in enumerate(header):
        field = _FIELD_OF.get(_key_of(cell))
        if field in columns:
            problems.append(f"“{_NAMES[field][0]}”一列有两个：第 {columns[field] + 1} 列和第 {at + 1} 列，请删去一列")
        elif field:
            columns[field] = at
        elif _key_of(cell) not in _SHOWN_KEYS:
            strange.append(_plain(cell)[:20])
    if not columns:
        found = "，".join(cell.strip()[:20] for cell in header[:8] if cell.strip())
        raise FileError([f"第 {line} 行不是表头：没有一列的名字认得，读到的是“{found}”；第一行请保留导出时的列名"])
    # Values in a misspelt column must not be lost. A column with an unrelated name is ignored.
    missing = {key: _NAMES[field][0] for key, field in _FIELD_OF.items() if field not in columns}
    problems += [
        f"没有“{name}”这一列；若是“{missing[near]}”请改名，否则请删去"
        for name in strange
        for near in difflib.get_close_matches(_key_of(name), missing, n=1, cutoff=0.5)
    ]
    problems += [f"缺少“{_NAMES[field][0]}”一列" for field in ("vod_id", "action") if field not in columns]
    if problems:
        raise FileError([f"第 {line} 行（表头）：{problem}" for problem in problems])
    return columns, tuple(strange)


def _table(data: bytes) -> DataFrame:
    """Return all rows of a file, the cells as text."""
    import pandas  # loaded only by a run that needs it

    if len(data) > MOST_BYTES:
        raise FileError([_too_large(len(data), MOST_BYTES)])
    if data.startswith(_OLD_WORKBOOK):
        raise FileError([f"这是 Excel 97–2003 的工作簿（xls）或有密码的工作簿：请另存为 xlsx，或{_SAVE_AS[1:]}"])
    try:
        if data.startswith(_WORKBOOK):
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                unpacked = sum(part.file_size for part in packed.infolist())
            if unpacked > MOST_UNPACKED:
                raise FileError([_too_large(unpacked, MOST_UNPACKED)])
            return pandas.read_excel(io.BytesIO(data), header=None, dtype=str, na_filter=False)
        text = _decoded(data)
        head = next((line for line in text.splitlines() if line.strip()), "")
        return pandas.read_csv(
            io.StringIO(text),
            sep=max(_SEPARATORS, key=head.count),
            header=None,
            names=range(_MOST_COLUMNS),
            index_col=False,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
        ).fillna("")
    except FileError:
        raise
    except Exception as error:
        if data.startswith(_WORKBOOK):
            problem = f"工作簿无法读取（{type(error).__name__}），可能已损坏或有密码；请重新保存"
        else:
            at = re.search(r"(row|line) (\d+)", str(error))  # pandas counts rows from 0
            place = f"从第 {int(at[2]) + (at[1] == 'row')} 行起" if at else ""
            problem = f"{place}无法分成单元格，多半是引号没有闭合：请补上引号，或{_SAVE_AS[1:]}"
        raise FileError([problem]) from error


def _decoded(data: bytes) -> str:
    for encoding in ("utf-16",) if data.startswith(_UTF_16) else ("utf-8-sig", "gb18030"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text.replace("\r\n", "\n").replace("\r", "\n")
    raise FileError([f"编码无法识别（不是 UTF-8、UTF-16 或 GB18030 的纯文本）：{_SAVE_AS}"])


# --- the inbox


def inbox_of(settings: Settings) -> Path:
    """Return the folder of the inbox, which may not exist yet; it is not in the report folder, which may be served."""
    return settings.home.absolute() / "inbox"


def read_inbox_file(settings: Settings, name: str) -> bytes:
    """Return the content of a file of the inbox.

    A name that leads out of the folder, by separators or as a link, is refused. Otherwise anyone who may launch a job
    could read any file of this machine.

    Raises:
        FileError: The file does not exist, is not a regular file, or is too large; the problem names those there are.
    """
    folder = inbox_of(settings)
    try:
        # Created so that people find it.
        folder.mkdir(parents=True, exist_ok=True)
        if not name or name.startswith(".") or any(sign in name for sign in "/\\\0"):
            problem = f"file 只能是收件夹里的文件名，不带路径，也不以点开头，现为 {name[:100]!r}"
        else:
            # O_NONBLOCK: opening a pipe does not wait for its other end.
            opened = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                found = os.fstat(opened)
                regular = stat.S_ISREG(found.st_mode)
                if regular and found.st_size <= MOST_BYTES:
                    with os.fdopen(opened, "rb", closefd=False) as file:
                        return file.read(MOST_BYTES + 1)
            finally:
                os.close(opened)
            problem = f"{name!r}：{_too_large(found.st_size, MOST_BYTES) if regular else '不是普通文件'}"
    except FileNotFoundError:
        problem = f"收件夹 {folder} 里没有文件 {name!r}"
    except OSError as error:
        # O_NOFOLLOW reports a link as ELOOP.
        linked = error.errno == errno.ELOOP
        problem = f"{name!r} 是链接，请放入文件本身" if linked else f"无法读取 {name!r}：{error.strerror}"
    there = sorted(path.name for path in folder.glob("[!.]*") if path.is_file() and not path.is_symlink())
    raise FileError([f"{problem}；收件夹里现有：{'、'.join(map(repr, there[:_MOST_SHOWN])) or '（空）'}"])


def _too_large(size: int, most: int) -> str:
    return f"文件太大：{size / 2**20:.1f} MB，最多 {most // 2**20} MB；请分成几个文件"
