"""How this room shows a report: it is put together once as plain data, and told twice.

In Dagster's UI it is a table of Markdown a chapter; beside it stands a sheet, one HTML file that needs no network and
is read at a desk and on a phone. Outside text is escaped here, for both. Knows nothing of Dagster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui import page
from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.core.ui.presentation import Markdown, escaped, local_time, subject_link, table
from douban_pipeline.douban.links import decide
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import DecisionAction

IN_UI = 50
"""Rows of a chapter in Dagster's UI; the sheet has all of them."""

_SHORT = 8
"""Letters that need no second line."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject, shown as a link to its page; 0 is none."""

    douban_id: int


@dataclass(frozen=True, slots=True)
class Link:
    """A link; an address that begins with a slash is a path of Dagster's UI."""

    text: str
    address: str | Launchpad

    def path(self, location: str) -> str:
        """Return the address; ``location`` is the code location of launchpads."""
        return self.address if isinstance(self.address, str) else self.address.path(location)


@dataclass(frozen=True, slots=True)
class Note:
    """Text that is read second."""

    text: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Several cells in one, a line each."""

    cells: tuple[Cell, ...]


Cell = str | int | float | datetime | Subject | Link | Note | Lines | None


@dataclass(frozen=True, slots=True)
class Card:
    """A number that is looked at first; ``tone`` is ``good``, ``bad`` or nothing."""

    label: str
    value: str
    behind: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One table of a report.

    Attributes:
        key: Its name in Dagster's metadata.
        title: Its heading.
        rows: Cells by head; all rows have the same heads.
        note: What a reader has to know of it.
        total: How many there are of what the rows are, of which ``rows`` may be only the first; told in the heading.
    """

    key: str
    title: str
    rows: Sequence[Mapping[str, Cell]]
    note: str = ""
    total: int | None = None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.rows) if self.total is None else self.total

    @property
    def heads(self) -> list[str]:
        """The heads of the columns that hold anything."""
        first = self.rows[0] if self.rows else {}
        return [head for head in first if any(_holds(row[head]) for row in self.rows)]


def _holds(cell: Cell) -> bool:
    match cell:
        case Lines(cells):
            return any(map(_holds, cells))
        case Subject(douban_id):
            return douban_id > 0
        case _:
            return cell is not None and cell != ""


@dataclass(frozen=True, slots=True)
class Report:
    """A report.

    Attributes:
        name: The asset.
        title: Its heading.
        told: What it is about, in a sentence.
        counts: Numbers for Dagster's metadata, which draws them over time.
        cards: Numbers on top of the sheet.
        chapters: Its tables.
    """

    name: str
    title: str
    told: str
    counts: Mapping[str, int | float]
    cards: Sequence[Card]
    chapters: Sequence[Chapter]

    def __post_init__(self) -> None:
        """Refuse names that would hide one another."""
        names = [*self.counts, *(chapter.key for chapter in self.chapters)]
        if len(set(names)) < len(names):
            raise ValueError(f"{self.name}: a number and a table have one name among {names}")

    @property
    def file(self) -> str:
        """Name of the sheet."""
        return f"{self.name}.html"


def decision(text: str, vod_id: int, action: DecisionAction, **given: Any) -> Link:
    """Return a link to `record_decisions` with one decision; a person adds the name, and what ``given`` leaves open."""
    return Link(text, decide(vod_id, action, dry_run=False, **given))


def markdown(chapter: Chapter, zone: ZoneInfo, location: str) -> str:
    """Return a chapter's first `IN_UI` rows as Dagster's UI shows them."""
    rows = [{head: _marked(row[head], zone, location) for head in chapter.heads} for row in chapter.rows[:IN_UI]]
    text = table(rows, most=IN_UI)
    more = f"\n\n前 {len(rows)} 行，共 {chapter.count} 行。" if chapter.count > len(rows) else ""
    return text + more


def _marked(cell: Cell, zone: ZoneInfo, location: str) -> Markdown:
    match cell:
        case Lines(cells):
            return Markdown(" · ".join(filter(None, (_marked(each, zone, location) for each in cells))))
        case Link(text):
            return Markdown(f"[{escaped(text)}]({cell.path(location)})")
        case Subject(douban_id):
            return subject_link(douban_id)
        case Note(text):
            return escaped(text)
        case datetime():
            return Markdown(local_time(cell, zone))
        case _:
            return escaped(cell)


def sheet(report: Report, settings: Settings, now: datetime, location: str) -> str:
    """Return a report as a page."""
    cards = "".join(page.card(card.label, card.value, card.behind, card.tone) for card in report.cards)
    chapters = [(chapter.key, _heading(chapter), _chapter(chapter, settings, location)) for chapter in report.chapters]
    told = (
        f"{report.told}{local_time(now, settings.zone)} 生成（{settings.site_timezone}）。"
        "操作链接打开 Dagster 的启动页，已填好内容；核对、填上姓名后点 Launch Run 才会生效。"
    )
    head = f'<div class="cards">{cards}</div>' if cards else ""
    return page.page(report.title, "", told, chapters, head, lang="zh-Hans")


def _heading(chapter: Chapter) -> str:
    return chapter.title if chapter.total is None else f"{chapter.title}（{chapter.total:,}）"


def _chapter(chapter: Chapter, settings: Settings, location: str) -> str:
    note = f'<p class="muted">{page.escape(chapter.note)}</p>' if chapter.note else ""
    if not chapter.rows:
        return f'{note}<p class="empty">没有</p>'
    left = chapter.count - len(chapter.rows)
    more = f'<p class="muted">另有 {left:,} 行未列出。</p>' if left > 0 else ""
    return note + _table(chapter, settings, location) + more


def _table(chapter: Chapter, settings: Settings, location: str) -> str:
    kinds = {head: _kind([row[head] for row in chapter.rows]) for head in chapter.heads}
    heads = [f'<th class="{kind}">{page.escape(head)}</th>' for head, kind in kinds.items()]
    body = []
    for row in chapter.rows:
        cells = (
            f'<td class="{kind}" data-head="{page.escape(head)}">{_whole(row[head], settings, location)}</td>'
            for head, kind in kinds.items()
        )
        body.append(f"<tr>{''.join(cells)}</tr>")
    return page.grid(heads, body, entries=True)


def _whole(cell: Cell, settings: Settings, location: str) -> str:
    text = _html(cell, settings, location)
    return f"<div>{text}</div>" if text else ""


def _kind(cells: Sequence[Cell]) -> str:
    """Return how a column is set, by what is in it."""
    kinds = {type(cell) for cell in cells if cell not in (None, "")}
    if kinds <= {int, float}:
        return "number"
    if kinds <= {datetime, Subject} or all(isinstance(cell, str) and len(cell) <= _SHORT for cell in cells):
        return "short"
    links = kinds <= {Link, Lines} and all(_is_links(cell) for cell in cells if isinstance(cell, Lines))
    return "act" if links else "text"


def _is_links(cell: Lines) -> bool:
    return all(isinstance(each, Link) for each in cell.cells)


def _html(cell: Cell, settings: Settings, location: str) -> str:
    match cell:
        case Lines(cells) if _is_links(cell):
            return "".join(_html(each, settings, location) for each in cells)
        case Lines(cells):
            return "".join(f"<div>{text}</div>" for each in cells if (text := _html(each, settings, location)))
        case Link(text):
            address = cell.path(location)
            whole = f"{settings.ui_url.rstrip('/')}{address}" if address.startswith("/") else address
            return f'<a href="{page.escape(whole)}" rel="noreferrer">{page.escape(text)}</a>'
        case Subject(douban_id):
            return page.subject(douban_id)
        case Note(text):
            return f"<small>{page.escape(text)}</small>"
        case datetime():
            return local_time(cell, settings.zone)
        case float():
            return f"{cell:,.1f}"
        case int():
            return f"{cell:,}"
        case _:
            return page.escape(cell or "")
