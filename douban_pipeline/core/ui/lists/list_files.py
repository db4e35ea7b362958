"""The files of a list: the page, chunks of its rows beside it, and a CSV file; rows are written as they are read.

A chunk is a script that hands its rows to the page's script, because a page opened from disk may load scripts and
nothing else. Each write puts its chunks into a new folder, named in the page, so that a reader of the previous page
still finds its chunks; older folders are deleted.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import IO, Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

from douban_pipeline.core.ui.lists.list_page import ColumnKind, ListColumn, ListPage, Row
from douban_pipeline.core.ui.lists.list_table import batches, frame_of, write_csv
from douban_pipeline.core.ui.live_tables import controls_style, page_policy, page_script
from douban_pipeline.core.ui.presentation import local_time, subject_address
from douban_pipeline.core.ui.report_files import ReportFolder
from douban_pipeline.core.ui.templates import render
from douban_pipeline.core.ui.tmdb_attribution import MENTION, attribution_parts

PIECE = 2000
"""Rows of a chunk: a few hundred KB."""

FIRST = 50
"""Rows of a page; the first page's are in the HTML."""

MOST_SELECTED = 100
"""Maximum number of rows of a batch link."""

_MOST_CHOICES = 200
"""Labels offered by a filter, most frequent first."""

_PACKAGE = "douban_pipeline.core.ui.lists"
_CLASSES = {
    ColumnKind.TEXT: "text",
    ColumnKind.LABEL: "text",
    ColumnKind.NUMBER: "number",
    ColumnKind.ID: "number",
    ColumnKind.TIME: "short",
    ColumnKind.SUBJECT: "short",
    ColumnKind.LINKS: "act",
    ColumnKind.PICTURE: "short",
    ColumnKind.RANK: "number",
}


@dataclass(frozen=True, slots=True)
class ListFrame:
    """Settings common to the lists of a site.

    Attributes:
        zone: The site's time zone, in which times are shown.
        ui_url: Address of Dagster's UI, prefixed to addresses that begin with a slash.
        siblings: Title and file of the pages linked from each page.
        video_page: Address of a video's page with ``{id}``, empty for none.
        pictures: Common prefix of picture addresses; rows hold the rest.
        image_sources: Where pictures may be loaded from, as sources of the content security policy.
    """

    zone: ZoneInfo
    ui_url: str
    siblings: Sequence[tuple[str, str]] = ()
    video_page: str = ""
    pictures: str = ""
    image_sources: str = ""


@dataclass(slots=True)
class _Labels:
    """The labels of a column with the number that represents each in the chunks, and how often each occurs."""

    codes: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def code(self, word: str) -> int:
        return self.codes.setdefault(word, len(self.codes))

    def choices(self) -> list[tuple[str, int, int]]:
        most = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_CHOICES]
        return [(word, self.codes[word], count) for word, count in most]


@dataclass(slots=True)
class _Writing:
    """State while a list is written; its size does not grow with the number of rows, except for the set of labels."""

    page: ListPage
    frame: ListFrame
    folder: Path
    labels: dict[str, _Labels]
    first: list[Row] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)
    count: int = 0
    pieces: int = 0
    names_tmdb: bool = False

    def piece(self, rows: Sequence[Row], csv: IO[str]) -> None:
        """Write the next chunk, and its rows to the CSV file."""
        if len(self.first) < FIRST:
            self.first += rows[: FIRST - len(self.first)]
        frame = frame_of(self.page, rows)
        for column in self.page.columns:
            nothing = (None, "", (), 0) if column.kind is ColumnKind.SUBJECT else (None, "", ())
            if column.key not in self.filled and not frame[column.key].isin(nothing).all():
                self.filled.add(column.key)
        for column in self.page.columns if not self.names_tmdb else ():
            if column.kind is ColumnKind.TEXT:
                self.names_tmdb |= any(MENTION in str(row.get(column.key) or "") for row in rows)
        for key, labels in self.labels.items():
            for word, times in frame[key].map(_words).explode().dropna().value_counts(sort=False).items():
                labels.code(str(word))
                labels.counts[str(word)] = labels.counts.get(str(word), 0) + int(times)
        encoded = [[self._encoded(column, row.get(column.key)) for column in self.page.columns] for row in rows]
        text = json.dumps(encoded, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # JavaScript also ends lines at these two characters; JSON does not.
        text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        name = json.dumps(self.page.name)
        (self.folder / f"{self.pieces:04d}.js").write_text(
            f"listPiece({name},{self.pieces},{text});\n", encoding="utf-8"
        )
        write_csv(self.page, frame, self.frame.zone, csv, first=not self.pieces)
        self.pieces += 1
        self.count += len(rows)

    def _encoded(self, column: ListColumn, cell: Any) -> Any:
        """Return a cell in the form the script expects."""
        match column.kind:
            case ColumnKind.LABEL:
                codes = [self.labels[column.key].code(word) for word in _words(cell)]
                return codes[0] if len(codes) == 1 else codes or None
            case ColumnKind.TIME:
                return _moment(cell, self.frame.zone)
            case ColumnKind.NUMBER | ColumnKind.RANK:
                return round(cell, 4) if isinstance(cell, float) else cell
            case ColumnKind.PICTURE:
                return str(cell).removeprefix(self.frame.pictures) if cell else None
            case _:
                return cell or None


def _holds(cell: Any) -> bool:
    return cell is not None and cell not in ("", ())


def _words(cell: Any) -> tuple[str, ...]:
    """Return the labels of a cell."""
    if not _holds(cell):
        return ()
    return tuple(cell) if isinstance(cell, tuple | list) else (str(cell),)


def _moment(cell: datetime | None, zone: ZoneInfo) -> str | None:
    return local_time(cell, zone).replace("\u00a0", " ") or None


def write_list(reports: ReportFolder, page: ListPage, rows: Iterable[Row], frame: ListFrame, now: datetime) -> int:
    """Replace the files of a list; return its number of rows.

    Args:
        reports: Folder to write to.
        page: Definition of the list.
        rows: Its rows in order; read lazily, a few thousand at a time.
        frame: Settings of the site.
        now: The current time.

    Raises:
        ReportFileError: The disk is full, or the folder cannot be written.
    """
    pieces = reports.path / f"{page.name}.rows"
    generation = f"{now:%Y%m%dT%H%M%S}-"
    try:
        pieces.mkdir(parents=True, exist_ok=True)
        before = sorted(path for path in pieces.iterdir() if path.is_dir())
        folder = Path(tempfile.mkdtemp(prefix=generation, dir=pieces))
        folder.chmod(0o755)
        labelled = [column.key for column in page.columns if column.kind is ColumnKind.LABEL]
        writing = _Writing(page, frame, folder, {key: _Labels() for key in labelled})
        csv_path = folder / "rows.csv"
        with csv_path.open("w", encoding="utf-8-sig", newline="") as csv:
            for batch in batches(rows, PIECE):
                writing.piece(batch, csv)
            if not writing.count:
                write_csv(page, frame_of(page, []), frame.zone, csv, first=True)
        csv_path.chmod(0o644)
        csv_path.replace(reports.path / page.csv_file)
        reports.write(page.file, _html(writing, now, f"{pieces.name}/{folder.name}/{{}}.js"))
        for old in before[:-1]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        with contextlib.suppress(UnboundLocalError):
            shutil.rmtree(folder, ignore_errors=True)
        raise reports.problem(pieces, error) from error
    return writing.count


def _html(writing: _Writing, now: datetime, files: str) -> str:
    page, frame = writing.page, writing.frame
    made = local_time(now, frame.zone).replace("\u00a0", " ")
    columns = [
        {
            "key": column.key,
            "head": column.head,
            "kind": str(column.kind),
            "class": _class(column),
            "by": column.by,
            "empty": column.key not in writing.filled,
            "labels": list(writing.labels[column.key].codes) if column.key in writing.labels else None,
        }
        for column in page.columns
    ]
    given = {
        "name": page.name,
        "file": page.file,
        "count": writing.count,
        "piece": PIECE,
        "size": FIRST,
        "most": MOST_SELECTED,
        "files": files,
        "ui": frame.ui_url.rstrip("/"),
        "key": page.key,
        "time": page.time,
        "video": page.video,
        "page": frame.video_page,
        "pictures": frame.pictures,
        "columns": columns,
        "links": {key: [link.text, link.address] for key, link in page.links.items()},
        "batch": [[link.text, link.address] for link in page.batch],
    }
    shown = [
        {**each, "choices": writing.labels[key].choices() if (key := each["key"]) in writing.labels else []}
        for each in columns
    ]
    script = page_script(_file("list.js"))
    return render(
        _PACKAGE,
        "list_page.html.j2",
        lang="zh-Hans",
        title=page.title,
        badge=f"{writing.count:,}",
        about=f"{page.about}{made} 生成（{frame.zone.key}）。操作链接打开 Dagster 的启动页，已填好内容；"
        "核对、填上姓名后点 Launch Run 才会生效。",
        chapters=[{"key": "rows", "title": page.title}],
        siblings=[{"title": title, "file": file} for title, file in frame.siblings],
        list=given,
        columns=shown,
        time_head=next((column.head for column in page.columns if column.key == page.time), ""),
        order=page.order,
        first=[
            {column.key: _shown(column, row.get(column.key), page, frame) for column in page.columns}
            for row in writing.first
        ],
        pages=[_page_of(page, frame, row) for row in writing.first],
        csv_file=page.csv_file,
        tmdb=attribution_parts() if writing.names_tmdb else None,
        policy=page_policy(script, images=frame.image_sources, own_files=True),
        style=controls_style() + Markup(_file("list.css")),  # noqa: S704 - a file of ours
        script=script.text,
    )


def _class(column: ListColumn) -> str:
    """Return the CSS class of a column's cells."""
    if column.kind is ColumnKind.TEXT and column.width:
        return "short" if column.width == "narrow" else "text wide"
    return _CLASSES[column.kind]


def _shown(column: ListColumn, cell: Any, page: ListPage, frame: ListFrame) -> Any:
    """Return a cell in the form the template expects; None shows nothing."""
    if cell is None or cell in ("", ()):
        return None
    match column.kind:
        case ColumnKind.SUBJECT:
            return {"text": str(cell), "address": subject_address(cell)} if cell else None
        case ColumnKind.LINKS:
            return [_link(page, frame, key, given) for key, *given in cell]
        case ColumnKind.LABEL:
            return _words(cell)
        case ColumnKind.TIME:
            return local_time(cell, frame.zone)
        case ColumnKind.ID | ColumnKind.PICTURE:
            return str(cell)
        case ColumnKind.NUMBER:
            return f"{cell:,.2f}".rstrip("0").rstrip(".") if isinstance(cell, float) else f"{cell:,}"
        case _:
            return str(cell).split("\n")


def _page_of(page: ListPage, frame: ListFrame, row: Row) -> str:
    """Return the address of the page of a row's video, empty for none."""
    vod_id = row.get(page.video) if page.video else None
    return frame.video_page.replace("{id}", str(vod_id)) if vod_id else ""


def _link(page: ListPage, frame: ListFrame, key: str, given: Sequence[Any]) -> Mapping[str, str]:
    link = page.links[key]
    address = link.filled(*given)
    return {"text": link.text, "address": frame.ui_url.rstrip("/") + address if address.startswith("/") else address}


@cache
def _file(name: str) -> str:
    return resources.files(_PACKAGE).joinpath(name).read_text("utf-8")
