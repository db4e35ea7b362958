"""The files of a list: the page, chunks of its rows beside it, and a CSV file; rows are written as they are read.

A chunk is a script that hands its rows to the page's script, because a page opened from disk may load scripts and
nothing else. Each write puts its chunks into a new folder, named in the page, so that a reader of the previous page
still finds its chunks; older folders are deleted.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.lists.list_page import (
    ColumnKind,
    Figures,
    ListColumn,
    ListCounts,
    ListPage,
    Row,
    Table,
    holds,
    words_of,
)
from douban_pipeline.core.ui.lists.list_table import batches, frame_of, write_csv
from douban_pipeline.core.ui.lists.shown_cells import IN_UI, PageFrame, layout
from douban_pipeline.core.ui.lists.table_page import shown_rows, table_page
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.core.ui.report_files import ReportFolder
from douban_pipeline.core.ui.tmdb_attribution import names_tmdb

PIECE = 2000
"""Rows of a chunk: a few hundred KB."""

FIRST = 50
"""Rows of a page; the first page's are in the HTML."""

MOST_SELECTED = 100
"""Maximum number of rows of a batch link."""

_MOST_CHOICES = 200
"""Labels offered by a filter, most frequent first."""


@dataclass(frozen=True, slots=True)
class WrittenList:
    """A list as it was written.

    Attributes:
        rows: Number of rows.
        figures: What stands around it.
        first: Its first rows for Dagster, or those that `ListPage.top` puts first.
    """

    rows: int
    figures: Figures
    first: Table


@dataclass(slots=True)
class _Labels:
    """The labels of a column with the number that represents each in the chunks, and how often each occurs."""

    codes: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def code(self, word: str) -> int:
        return self.codes.setdefault(word, len(self.codes))

    def choices(self) -> list[tuple[int, int]]:
        """Return the labels that the page offers as a filter, as codes, and how often each occurs."""
        most = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:_MOST_CHOICES]
        return [(self.codes[word], count) for word, count in most]


@dataclass(slots=True)
class _Writing:
    """State while a list is written; its size does not grow with the number of rows, except for the set of labels."""

    page: ListPage
    frame: PageFrame
    folder: Path
    labels: dict[str, _Labels]
    first: list[Row] = field(default_factory=list)
    top: list[Row] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)
    count: int = 0
    pieces: int = 0
    names_tmdb: bool = False

    def piece(self, rows: Sequence[Row], csv: IO[str]) -> None:
        """Write the next chunk, and its rows to the CSV file."""
        if len(self.first) < FIRST:
            self.first += rows[: FIRST - len(self.first)]
        if self.page.top:
            self.top = heapq.nlargest(IN_UI, [*self.top, *rows], key=lambda row: row.get(self.page.top) or 0)
        frame = frame_of(self.page, rows)
        for column in self.page.columns:
            if column.key not in self.filled and any(holds(column, row.get(column.key)) for row in rows):
                self.filled.add(column.key)
        for column in self.page.columns if not self.names_tmdb else ():
            if column.kind is ColumnKind.TEXT:
                self.names_tmdb |= names_tmdb(row.get(column.key) for row in rows)
        for key, labels in self.labels.items():
            for word, times in frame[key].map(words_of).explode().dropna().value_counts(sort=False).items():
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
                codes = [self.labels[column.key].code(word) for word in words_of(cell)]
                return codes[0] if len(codes) == 1 else codes or None
            case ColumnKind.TIME:
                return _moment(cell, self.frame.zone)
            case ColumnKind.NUMBER | ColumnKind.RANK:
                return round(cell, 4) if isinstance(cell, float) else cell
            case ColumnKind.LINK:
                return [cell.text, cell.address] if cell else None
            case ColumnKind.PICTURE:
                return str(cell).removeprefix(self.frame.pictures) if cell else None
            case _:
                return cell or None


def _moment(cell: datetime | None, zone: ZoneInfo) -> str | None:
    return local_time(cell, zone).replace("\u00a0", " ") or None


def write_list(
    reports: ReportFolder,
    page: ListPage,
    rows: Iterable[Row],
    frame: PageFrame,
    now: datetime,
    figures: Callable[[ListCounts], Figures] = lambda counts: Figures(),
) -> WrittenList:
    """Replace the files of a list.

    Args:
        reports: Folder to write to.
        page: Definition of the list.
        rows: Its rows in order; read lazily, a few thousand at a time.
        frame: Settings of the site.
        now: The current time.
        figures: Returns what stands around the list, once its rows are counted.

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
        counts = ListCounts(writing.count, {key: labels.counts for key, labels in writing.labels.items()})
        around = figures(counts)
        html = table_page(page.title, page.about, around, frame, now, rows=_given(writing, pieces.name))
        reports.write(page.file, html)
        for old in before[:-1]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        with contextlib.suppress(UnboundLocalError):
            shutil.rmtree(folder, ignore_errors=True)
        raise reports.problem(pieces, error) from error
    first = Table(
        page.name,
        page.title,
        page.columns,
        writing.top or writing.first,
        total=writing.count,
        video=page.video,
        links=page.links,
    )
    return WrittenList(writing.count, around, first)


def _given(writing: _Writing, pieces: str) -> dict[str, Any]:
    """Return the list for the template and the script."""
    page, frame = writing.page, writing.frame
    columns = [
        {
            "key": column.key,
            "head": column.head,
            "kind": str(column.kind),
            "class": layout(column),
            "by": column.by,
            "empty": column.key not in writing.filled,
            "labels": list(writing.labels[column.key].codes) if column.key in writing.labels else None,
            "choices": writing.labels[column.key].choices() if column.key in writing.labels else None,
        }
        for column in page.columns
    ]
    shown = [each for each in columns if not each["empty"] and each["kind"] not in ("picture", "rank")]
    given = {
        "name": page.name,
        "file": page.file,
        "count": writing.count,
        "piece": PIECE,
        "size": FIRST,
        "most": MOST_SELECTED,
        "files": f"{pieces}/{writing.folder.name}/{{}}.js",
        "ui": frame.ui_url.rstrip("/"),
        "key": page.key,
        "time": page.time,
        "order": page.order,
        "video": page.video,
        "page": frame.video_page,
        "pictures": frame.pictures,
        "columns": columns,
        "links": {key: [link.text, link.address] for key, link in page.links.items()},
        "batch": [[link.text, link.address] for link in page.batch],
    }
    return {
        "list": given,
        "columns": shown,
        "first": shown_rows(page, writing.first, frame),
        "csv_file": page.csv_file,
        "top": next((each for each in shown if each["key"] == page.top), None),
        "names_tmdb": writing.names_tmdb,
    }
