"""Rendering of reports: a report is built once as plain data (`ReportPage`) and rendered in two forms.

In Dagster's UI each chapter is a Markdown table. The page is one HTML file that needs no network, for desktop and
phone. External text is escaped here, for both. This module does not depend on Dagster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.core.ui.live_tables import controls_style, page_policy, tables_script
from douban_pipeline.core.ui.presentation import (
    Markdown,
    escaped,
    local_time,
    panel,
    subject_address,
    subject_link,
)
from douban_pipeline.core.ui.templates import Card, render
from douban_pipeline.core.ui.tmdb_attribution import MENTION, attribution_parts
from douban_pipeline.douban.links import decide
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.store.states import DecisionAction

IN_UI = 50
"""Most rows of a chapter in Dagster's UI; the page has all of them."""

_SHORT = 8
"""Number of characters that fit in one line."""


@dataclass(frozen=True, slots=True)
class SubjectCell:
    """A subject, shown as a link to its page; 0 is none."""

    douban_id: int


@dataclass(frozen=True, slots=True)
class VideoCell:
    """A video, shown by its name with its poster and as a link to its page on the site, if these are known."""

    vod_id: int
    name: str


@dataclass(frozen=True, slots=True)
class LinkCell:
    """A link; an address that begins with a slash is a path of Dagster's UI."""

    text: str
    address: str | Launchpad

    def path(self, location: str) -> str:
        """Return the address; ``location`` is the code location of launchpads."""
        return self.address if isinstance(self.address, str) else self.address.path(location)


@dataclass(frozen=True, slots=True)
class NoteCell:
    """Secondary text."""

    text: str


@dataclass(frozen=True, slots=True)
class LinesCell:
    """Several cells in one, each on its own line."""

    cells: tuple[Cell, ...]

    @property
    def is_links(self) -> bool:
        """Whether all cells are links, which are shown side by side."""
        return all(isinstance(each, LinkCell) for each in self.cells)


Cell = str | int | float | datetime | SubjectCell | VideoCell | LinkCell | NoteCell | LinesCell | None


@dataclass(frozen=True, slots=True)
class Chapter:
    """One table of a report.

    Attributes:
        key: Its name in Dagster's metadata.
        title: Its heading.
        rows: Cells by column heading; all rows have the same headings.
        note: Explanation for the reader.
        empty: Text shown if there are no rows.
        total: Total number of rows, of which ``rows`` may be only the first; shown in the heading.
    """

    key: str
    title: str
    rows: Sequence[Mapping[str, Cell]]
    note: str = ""
    total: int | None = None
    empty: str = "没有"

    @property
    def count(self) -> int:
        """Total number of rows."""
        return len(self.rows) if self.total is None else self.total

    @property
    def heads(self) -> list[str]:
        """The headings of the columns that are not empty."""
        first = self.rows[0] if self.rows else {}
        return [head for head in first if any(_holds(row[head]) for row in self.rows)]


def _holds(cell: Cell) -> bool:
    match cell:
        case LinesCell(cells):
            return any(map(_holds, cells))
        case SubjectCell(douban_id):
            return douban_id > 0
        case _:
            return cell is not None and cell != ""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A report.

    Attributes:
        name: Name of the asset.
        title: Its heading.
        about: What it is about, in one sentence.
        counts: Numbers for Dagster's metadata, which Dagster plots over time.
        cards: Numbers at the top of the page.
        chapters: Its tables.
        lead: First line with the overall state, and whether that is ``good`` or ``bad``.
        plots: Plots at the end of the page, as SVG from `core.ui.plots`.
    """

    name: str
    title: str
    about: str
    counts: Mapping[str, int | float]
    cards: Sequence[Card]
    chapters: Sequence[Chapter]
    lead: tuple[str, str] | None = None
    plots: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse duplicate names of metadata."""
        names = [*self.counts, *(chapter.key for chapter in self.chapters)]
        if len(set(names)) < len(names):
            raise ValueError(f"{self.name}: a number and a table have one name among {names}")

    @property
    def file(self) -> str:
        """File name of the page."""
        return f"{self.name}.html"

    @property
    def videos(self) -> set[int]:
        """Ids of the shown videos."""
        cells = (cell for chapter in self.chapters for row in chapter.rows for cell in row.values())
        return {vod_id for cell in cells for vod_id in _videos(cell)}


def _videos(cell: Cell) -> Iterator[int]:
    match cell:
        case VideoCell(vod_id):
            yield vod_id
        case LinesCell(cells):
            for each in cells:
                yield from _videos(each)


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Context in which a report is rendered.

    Attributes:
        zone: The site's time zone, in which times are shown.
        ui_url: Address of Dagster's UI, which is put before the paths of links on the page.
        location: Code location of the launchpads, see `Launchpad.path`.
        site: The video site.
        posters: Addresses of posters by video, empty for none; deleted videos are left out.
    """

    zone: ZoneInfo
    ui_url: str
    location: str
    site: VideoSite = field(default_factory=VideoSite)
    posters: Mapping[int, str] = field(default_factory=dict)

    def video_page(self, vod_id: int) -> str:
        """Return the address of a video's page on the site, empty if it has none."""
        return self.site.address(vod_id) if vod_id in self.posters else ""


def decision(text: str, vod_id: int, action: DecisionAction, **given: Any) -> LinkCell:
    """Return a link to `record_decisions` with one decision; a person adds the name and what ``given`` leaves out."""
    return LinkCell(text, decide(vod_id, action, dry_run=False, **given))


def markdown(chapter: Chapter, frame: PageFrame) -> str:
    """Return a chapter's first `IN_UI` rows as Markdown for Dagster's UI."""
    rows = [{head: _marked(row[head], frame) for head in chapter.heads} for row in chapter.rows[:IN_UI]]
    text = panel(rows, most=IN_UI)
    more = f"\n\n前 {len(rows)} 行，共 {chapter.count} 行。" if chapter.count > len(rows) else ""
    return text + more


def _marked(cell: Cell, frame: PageFrame) -> Markdown:
    match cell:
        case LinesCell(cells):
            return Markdown(" · ".join(filter(None, (_marked(each, frame) for each in cells))))
        case LinkCell(text):
            return Markdown(f"[{escaped(text)}]({cell.path(frame.location)})")
        case SubjectCell(douban_id):
            return subject_link(douban_id)
        case VideoCell(vod_id, name):
            address = frame.video_page(vod_id)
            return Markdown(f"[{escaped(name)}]({address})") if address else escaped(name)
        case NoteCell(text):
            return escaped(text)
        case datetime():
            return Markdown(local_time(cell, frame.zone))
        case _:
            return escaped(cell)


def sheet(report: ReportPage, frame: PageFrame, now: datetime, *, renewed_seconds: int = 0) -> str:
    """Return a report as an HTML page.

    If ``renewed_seconds`` is not 0, browsers reload the page at that interval. Its tables cannot be sorted and filtered
    then, since a reload would undo it.
    """
    made = local_time(now, frame.zone).replace("\u00a0", " ")
    about = (
        f"{report.about}{made} 生成（{frame.zone.key}）。"
        "操作链接打开 Dagster 的启动页，已填好内容；核对、填上姓名后点 Launch Run 才会生效。"
    )
    sortable = not renewed_seconds and any(len(chapter.rows) > 1 for chapter in report.chapters)
    scripts = [tables_script()] if sortable else []
    return render(
        __package__,
        "report.html.j2",
        lang="zh-Hans",
        renewed_seconds=renewed_seconds,
        policy=page_policy(*scripts, images=frame.site.image_sources),
        style=controls_style(),
        scripts=[script.text for script in scripts],
        title=report.title,
        badge="",
        tmdb=attribution_parts() if _names_tmdb(report) else None,
        about=about,
        cards=report.cards,
        lead=report.lead,
        chapters=[_section(chapter, frame) for chapter in report.chapters]
        + ([{"key": "plots", "title": "走势"}] if report.plots else []),
        plots=[Markup(svg) for svg in report.plots],  # noqa: S704 (made by core.ui.plots, which escapes)
    )


def _names_tmdb(report: ReportPage) -> bool:
    cells = (cell for chapter in report.chapters for row in chapter.rows for cell in row.values())
    return any(MENTION in str(cell) for cell in cells)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A cell for the template; ``kind`` is ``text``, ``note``, ``link``, ``links``, ``lines`` or ``video``."""

    kind: str
    text: str = ""
    address: str = ""
    picture: str = ""
    parts: Sequence[_Shown] = ()


def _section(chapter: Chapter, frame: PageFrame) -> dict[str, Any]:
    """Return a chapter for the template; empty cells are None."""
    heads = chapter.heads
    return {
        "key": chapter.key,
        "title": chapter.title if chapter.total is None else f"{chapter.title}（{chapter.total:,}）",
        "note": chapter.note,
        "empty": chapter.empty,
        "columns": {head: _kind([row[head] for row in chapter.rows]) for head in heads},
        "rows": [{head: _shown(row[head], frame) for head in heads} for row in chapter.rows],
        "left_out": chapter.count - len(chapter.rows),
    }


def _kind(cells: Sequence[Cell]) -> str:
    """Return the layout class of a column, by its cells."""
    kinds = {type(cell) for cell in cells if cell not in (None, "")}
    if kinds <= {int, float}:
        return "number"
    if kinds <= {datetime, SubjectCell} or all(isinstance(cell, str) and len(cell) <= _SHORT for cell in cells):
        return "short"
    links = kinds <= {LinkCell, LinesCell} and all(cell.is_links for cell in cells if isinstance(cell, LinesCell))
    return "act" if links else "text"


def _shown(cell: Cell, frame: PageFrame) -> _Shown | None:
    match cell:
        case LinesCell(cells):
            parts = [shown for each in cells if (shown := _shown(each, frame))]
            return _Shown("links" if cell.is_links else "lines", parts=parts) if parts else None
        case LinkCell(text):
            address = cell.path(frame.location)
            return _Shown("link", text, frame.ui_url.rstrip("/") + address if address.startswith("/") else address)
        case SubjectCell(douban_id):
            return _Shown("link", str(douban_id), subject_address(douban_id)) if douban_id else None
        case VideoCell(vod_id, name):
            return _Shown("video", name, frame.video_page(vod_id), frame.posters.get(vod_id, ""))
        case NoteCell(text):
            return _Shown("note", text)
        case datetime():
            text = local_time(cell, frame.zone)
        case float():
            text = f"{cell:,.1f}"
        case int():
            text = f"{cell:,}"
        case _:
            text = cell or ""
    return _Shown("text", text) if text else None
