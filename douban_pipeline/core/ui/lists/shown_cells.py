"""Cells of tables as people see them: values for the HTML template, and a preview for Dagster's UI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.lists.list_page import (
    ColumnKind,
    ListColumn,
    Row,
    Table,
    cell_text,
    holds,
    read_columns,
    words_of,
)
from douban_pipeline.core.ui.presentation import local_time, panel, subject_address
from douban_pipeline.core.ui.tmdb_attribution import attribution_of

IN_UI = 20
"""Rows of a list that Dagster shows."""

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
}


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Settings common to the pages of a site.

    Attributes:
        zone: The site's time zone, in which times are shown.
        ui_url: Address of Dagster's UI, prefixed to addresses that begin with a slash.
        siblings: Title and address of the pages linked from each list.
        video_page: Address of a video's page with ``{id}``, empty for none.
        image_sources: Where pictures may be loaded from, as sources of the content security policy.
        root: The way from the page to the front page, below which other addresses are.
    """

    zone: ZoneInfo
    ui_url: str
    siblings: Sequence[tuple[str, str]] = ()
    video_page: str = ""
    image_sources: str = ""
    root: str = ""

    def full(self, address: str) -> str:
        """Return an address as a page links to it: paths of Dagster's UI with their server, others from the root."""
        if address.startswith("/"):
            return self.ui_url.rstrip("/") + address
        outside = not address or address.startswith(("#", "?")) or "://" in address
        return address if outside else self.root + address

    def video_address(self, table: Table, row: Row) -> str:
        """Return the address of the page of a row's video, empty for none."""
        vod_id = row.get(table.video) if table.video else None
        return self.video_page.replace("{id}", str(vod_id)) if vod_id else ""


def layout(column: ListColumn) -> str:
    """Return the CSS class of a column's cells."""
    if column.kind is ColumnKind.TEXT and column.width:
        return "short" if column.width == "narrow" else "text wide"
    return _CLASSES[column.kind]


def filled_columns(table: Table) -> list[ListColumn]:
    """Return the columns of a table that show anything; a picture is shown in the first one."""
    return [
        column
        for column in table.columns
        if column.kind is not ColumnKind.PICTURE and any(holds(column, row.get(column.key)) for row in table.rows)
    ]


def shown(column: ListColumn, cell: Any, table: Table, frame: PageFrame) -> Any:
    """Return a cell in the form the template expects; None shows nothing."""
    if not holds(column, cell):
        return None
    match column.kind:
        case ColumnKind.SUBJECT:
            return {"text": str(cell), "address": subject_address(cell)}
        case ColumnKind.LINK:
            return {"text": cell.text, "address": frame.full(cell.address)}
        case ColumnKind.LINKS:
            links = [(table.links[key], given) for key, *given in cell]
            return [{"text": link.text, "address": frame.full(link.filled(*given))} for link, given in links]
        case ColumnKind.LABEL:
            return words_of(cell)
        case ColumnKind.MARKED:
            return cell
        case ColumnKind.TIME:
            return local_time(cell, frame.zone)
        case ColumnKind.ID | ColumnKind.PICTURE:
            return str(cell)
        case ColumnKind.NUMBER:
            return f"{cell:,.2f}".rstrip("0").rstrip(".") if isinstance(cell, float) else f"{cell:,}"
        case _:
            return str(cell).split("\n")


def preview(columns: Sequence[ListColumn], rows: Sequence[Row], zone: ZoneInfo) -> str:
    """Return the first `IN_UI` rows as Markdown for Dagster's UI, with TMDB's credit where its data had a part."""
    read = read_columns(columns)
    text = panel([{each.head: cell_text(row.get(each.key), zone) for each in read} for row in rows[:IN_UI]], most=IN_UI)
    credit = attribution_of(text)
    return f"{text}\n\n{credit}" if credit else text
