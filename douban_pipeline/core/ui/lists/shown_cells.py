"""Cells of tables as people see them: values for the HTML template, and Markdown for Dagster's UI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.lists.list_page import (
    ColumnKind,
    Link,
    ListColumn,
    ListPage,
    Row,
    Table,
    cell_text,
    holds,
    words_of,
)
from douban_pipeline.core.ui.presentation import Markdown, escaped, local_time, panel, subject_address, subject_link

IN_UI = 20
"""Most rows of a table in Dagster's UI, a few kilobytes each because of the links; the page has all of them."""

_BESIDE = (ColumnKind.PICTURE, ColumnKind.RANK)
"""Kinds that are no column of their own: shown in the first one, or not at all."""

_CLASSES = {
    ColumnKind.TEXT: "text",
    ColumnKind.LABEL: "text",
    ColumnKind.NUMBER: "number",
    ColumnKind.ID: "number",
    ColumnKind.TIME: "short",
    ColumnKind.SUBJECT: "short",
    ColumnKind.LINK: "text",
    ColumnKind.LINKS: "act",
    ColumnKind.PICTURE: "short",
    ColumnKind.MARKED: "text wide",
    ColumnKind.RANK: "number",
}


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Settings common to the pages of a site.

    Attributes:
        zone: The site's time zone, in which times are shown.
        ui_url: Address of Dagster's UI, prefixed to addresses that begin with a slash.
        siblings: Title and file of the pages linked from each list.
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

    def full(self, address: str) -> str:
        """Return an address as a page links to it: paths of Dagster's UI with their server."""
        return self.ui_url.rstrip("/") + address if address.startswith("/") else address

    def video_address(self, table: ListPage | Table, row: Row) -> str:
        """Return the address of the page of a row's video, empty for none."""
        vod_id = row.get(table.video) if table.video else None
        return self.video_page.replace("{id}", str(vod_id)) if vod_id else ""


def layout(column: ListColumn) -> str:
    """Return the CSS class of a column's cells."""
    if column.kind is ColumnKind.TEXT and column.width:
        return "short" if column.width == "narrow" else "text wide"
    return _CLASSES[column.kind]


def filled_columns(table: Table) -> list[ListColumn]:
    """Return the columns of a table that show anything, apart from what is shown beside others."""
    return [
        column
        for column in table.columns
        if column.kind not in _BESIDE and any(holds(column, row.get(column.key)) for row in table.rows)
    ]


def shown(column: ListColumn, cell: Any, table: ListPage | Table, frame: PageFrame) -> Any:
    """Return a cell in the form the template expects; None shows nothing."""
    if not holds(column, cell):
        return None
    match column.kind:
        case ColumnKind.SUBJECT:
            return {"text": str(cell), "address": subject_address(cell)}
        case ColumnKind.LINK:
            return {"text": cell.text, "address": frame.full(cell.address)}
        case ColumnKind.LINKS:
            return [{"text": link.text, "address": frame.full(link.address)} for link in _links(cell, table)]
        case ColumnKind.LABEL:
            return words_of(cell)
        case ColumnKind.MARKED:
            return cell
        case ColumnKind.TIME:
            return local_time(cell, frame.zone)
        case ColumnKind.ID | ColumnKind.PICTURE | ColumnKind.RANK:
            return str(cell)
        case ColumnKind.NUMBER:
            return f"{cell:,.2f}".rstrip("0").rstrip(".") if isinstance(cell, float) else f"{cell:,}"
        case _:
            return str(cell).split("\n")


def markdown(table: Table, frame: PageFrame) -> str:
    """Return the first `IN_UI` rows of a table as Markdown for Dagster's UI, in which paths need no server."""
    columns = filled_columns(table)
    rows = table.rows[:IN_UI]
    cells = [{column.head: _marked(column, row.get(column.key), table, frame) for column in columns} for row in rows]
    for row, marked in zip(rows, cells, strict=True):
        address = frame.video_address(table, row)
        if address and columns[0].kind is not ColumnKind.LINK:
            marked[columns[0].head] = Markdown(f"[{marked[columns[0].head]}]({address})")
    total = len(table.rows) if table.total is None else table.total
    more = f"\n\n前 {len(rows)} 行，共 {total} 行。" if total > len(rows) else ""
    return panel(cells, most=IN_UI) + more


def _marked(column: ListColumn, cell: Any, table: Table, frame: PageFrame) -> Markdown:
    if not holds(column, cell):
        return Markdown("")
    match column.kind:
        case ColumnKind.SUBJECT:
            return subject_link(cell)
        case ColumnKind.LINK:
            return _link(cell)
        case ColumnKind.LINKS:
            return Markdown(" · ".join(map(_link, _links(cell, table))))
        case ColumnKind.TIME:
            return Markdown(local_time(cell, frame.zone))
        case ColumnKind.TEXT:
            return Markdown(" · ".join(escaped(line) for line in str(cell).split("\n")))
        case ColumnKind.NUMBER:
            return escaped(shown(column, cell, table, frame))
        case _:
            return escaped(cell_text(cell, frame.zone))


def _link(link: Link) -> Markdown:
    return Markdown(f"[{escaped(link.text)}]({link.address})") if link.address else escaped(link.text)


def _links(cell: Sequence[tuple[Any, ...]], table: ListPage | Table) -> list[Link]:
    """Return the links of a cell with their addresses."""
    links: Mapping[str, Any] = table.links
    return [Link(links[key].text, links[key].filled(*given)) for key, *given in cell]
