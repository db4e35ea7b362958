"""Definition of the tables of pages: columns, links, and the form of a row. Independent of any list or system.

The values of cells, by kind of column:

======== =====================================================================================================
text     text, lines separated by newlines; None for nothing
label    one of a few words, or a tuple of them
number   an integer or a float
id       a number that is not an amount
time     a moment, shown in the site's zone
subject  the id of a subject, shown as a link to its page; 0 is none
picture  the address of a small picture, shown beside what names the row
link     a `Link`; without an address it is text
marked   a tuple of `Piece`, a text of which some pieces are marked; in tables alone
links    a tuple of links, each a tuple: the key of one of the table's links, and what is put into its address
======== =====================================================================================================
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.core.ui.templates import Card

Row = Mapping[str, Any]
"""Cells by the key of their column."""


class ColumnKind(enum.StrEnum):
    """How the cells of a column are parsed, shown and sorted."""

    TEXT = "text"
    LABEL = "label"
    NUMBER = "number"
    ID = "id"
    TIME = "time"
    SUBJECT = "subject"
    LINK = "link"
    LINKS = "links"
    PICTURE = "picture"
    MARKED = "marked"


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column of a list.

    Attributes:
        key: Its name in rows.
        head: Its heading.
        kind: Kind of its cells.
        width: ``narrow`` or ``wide`` to override the kind's default.
    """

    key: str
    head: str
    kind: ColumnKind = ColumnKind.TEXT
    width: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A text, and its address, if any: a path of Dagster's UI with a slash, a page below the front page without."""

    text: str
    address: str = ""

    def __str__(self) -> str:
        """Return the text, for the CSV file."""
        return self.text


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a marked text.

    Attributes:
        text: The text.
        mark: What is written before it, such as its number; empty for a piece that is not marked.
        tone: ``bad`` for what is wrong, ``gone`` for what was struck out; empty for neither.
    """

    text: str
    mark: str = ""
    tone: str = ""

    def __str__(self) -> str:
        """Return the text with its mark, for the CSV file and Dagster's UI."""
        return f"［{self.mark}］{self.text}" if self.mark else self.text


@dataclass(frozen=True, slots=True)
class ListLink:
    """A link that many rows have: its text, and its address with ``{0}``, ``{1}`` … for the varying parts."""

    text: str
    address: str

    def filled(self, *given: Any) -> str:
        """Return the address with ``given`` filled in, each percent-encoded."""
        address = self.address
        for place, value in enumerate(given):
            address = address.replace(f"{{{place}}}", quote(str(value), safe=""))
        return address


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose rows are all in its page.

    Attributes:
        key: Its name in the page's address and in Dagster's metadata.
        title: Its heading.
        columns: Its columns.
        rows: Its rows; a missing cell is empty.
        note: What it shows, in a sentence or two.
        empty: Shown if there are no rows.
        total: Number of rows of which ``rows`` are the first, shown in the heading; None if they are all.
        video: The column with the number of a video, to whose page the first column links; empty for none.
        links: Links of rows by key.
    """

    key: str
    title: str
    columns: Sequence[ListColumn]
    rows: Sequence[Row]
    note: str = ""
    empty: str = "没有"
    total: int | None = None
    video: str = ""
    links: Mapping[str, ListLink] = field(default_factory=dict)

    @property
    def left_out(self) -> int:
        """Number of rows that are counted but not listed."""
        return 0 if self.total is None else self.total - len(self.rows)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a page shows around its list.

    Attributes:
        counts: Numbers for Dagster's metadata, which Dagster plots over time.
        cards: Numbers at the top.
        tables: Tables below the list.
    """

    counts: Mapping[str, int | float] = field(default_factory=dict)
    cards: Sequence[Card] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of the form above a list.

    Attributes:
        name: Its name in the page's address.
        label: What stands above it.
        value: What is chosen or typed.
        options: Values and texts that are offered; none for a field that is typed.
        kind: Type of the HTML input of one that is typed.
    """

    name: str
    label: str
    value: str = ""
    options: Sequence[tuple[str, str]] = ()
    kind: str = "search"


@dataclass(frozen=True, slots=True)
class ListView:
    """One page of a list.

    Attributes:
        table: The rows of the page.
        form: The fields by which its rows are chosen and ordered.
        count: How many rows were chosen, as text.
        key: The column whose numbers batch links take.
        batch: Links for the selected rows; their address contains ``{ids}``.
        first: Address of the first page; empty on that one.
        following: Address of the next page; empty on the last.
        csv: Address of the CSV file; empty for none.
    """

    table: Table
    form: Sequence[FormField]
    count: str
    key: str
    batch: Sequence[ListLink] = ()
    first: str = ""
    following: str = ""
    csv: str = ""


def read_columns(columns: Sequence[ListColumn]) -> list[ListColumn]:
    """Return the columns that are read as text, in the CSV file and in Dagster."""
    return [column for column in columns if column.kind not in (ColumnKind.LINKS, ColumnKind.PICTURE)]


def holds(column: ListColumn, cell: Any) -> bool:
    """Return whether a cell shows anything."""
    if column.kind is ColumnKind.SUBJECT:
        return bool(cell)
    return cell is not None and cell not in ("", ())


def words_of(cell: Any) -> tuple[str, ...]:
    """Return the words of a label."""
    if cell is None or cell in ("", ()):
        return ()
    return tuple(cell) if isinstance(cell, tuple | list) else (str(cell),)


def cell_text(cell: Any, zone: ZoneInfo) -> str:
    """Return a cell as one line of text, for the CSV file and Dagster."""
    match cell:
        case None | 0:
            return "" if cell is None else "0"
        case datetime():
            return local_time(cell, zone).replace("\u00a0", " ")
        case float():
            return f"{cell:.2f}".rstrip("0").rstrip(".")
        case (Piece(), *_):
            return "".join(map(str, cell))
        case tuple() | list():
            return "、".join(map(str, cell))
        case _:
            return " ".join(str(cell).split())
