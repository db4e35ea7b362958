"""The reader's pages: lists of entries, one entry, the list of sources. They work without JavaScript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from sqlalchemy import Connection, Row

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.live_tables import table_style
from douban_pipeline.core.ui.templates import render
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.reading.content import safe_html
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import entry_lists, source_lists
from douban_pipeline.feeds.store.entry_lists import Cursor, Selection

PAGE = 50
"""Entries of a page, and sources of a page: some screens to scroll, on a phone too."""
NO_FOLDER = "未分组"
ALL = "all"
VIEWS = {"unread": "未读", ALL: "全部"}
_MOST_NAMED = 60
_SCRIPT = "reader.js"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which list a page shows, as its address says.

    Attributes:
        view: A name of `VIEWS`.
        source: Id of a source; empty for all.
        folder: A folder, empty for sources in none; None for all.
        before: Where the page before ended.
    """

    view: str = "unread"
    source: str = ""
    folder: str | None = None
    before: str = ""

    @property
    def selection(self) -> Selection:
        """The entries of the list."""
        return Selection(
            unread=True if self.view == "unread" else None,
            source_id=self.source or None,
            folder=None if self.source else self.folder,
        )

    @property
    def scope(self) -> dict[str, str]:
        """The list without its page, as fields of a form."""
        found = {} if self.view == "unread" else {"view": self.view}
        if self.source:
            found["source"] = self.source
        elif self.folder is not None:
            found["folder"] = self.folder
        return found

    def address(self, root: str = "", path: str = "", **more: str) -> str:
        """Return the address of a page about this list."""
        fields = {**self.scope, **more}
        return f"{root}{path}{f'?{urlencode(fields)}' if fields else ''}" or "./"


@dataclass(frozen=True, slots=True)
class _Link:
    text: str
    address: str
    count: str = ""
    current: bool = False
    key: str = ""


@dataclass(slots=True)
class Frame:
    """What stands beside a page: links to lists, with the numbers of what is unread in them."""

    places: list[_Link]
    folders: list[_Link] = field(default_factory=list)
    named: list[_Link] = field(default_factory=list)


def script() -> str:
    """Return the script of the pages."""
    return resources.files(__package__).joinpath(_SCRIPT).read_text("utf-8")


def entries_page(services: FeedsServices, wanted: Wanted) -> str:
    """Return the page of a list of entries."""
    after = Cursor.parse(wanted.before)
    with reading(services.engine) as connection:
        through = entry_lists.newest_key(connection)
        page = entry_lists.entry_page(connection, wanted.selection, after, PAGE)
        named = entry_lists.titles_of(connection, [*(row.source_id for row in page.rows), wanted.source])
        frame = frame_of(connection, wanted, "", named.get(wanted.source))
    here = replace(wanted, before="")
    empty = "没有未读的条目。" if wanted.view == "unread" else "没有条目。"
    if not (frame.folders or frame.named or named or through):
        empty = "还没有条目：在来源页面添加来源，抓取之后就在这里。"
    return rendered(
        "entries.html.j2",
        frame,
        title=_title(wanted, named.get(wanted.source)),
        root="",
        here=wanted.view,
        rows=[_shown(services, row, named.get(row.source_id), here) for row in page.rows],
        scope=wanted.scope,
        through=through,
        back=here.address(**({"before": wanted.before} if after is not None else {})),
        empty=empty,
        said=f"{len(page.rows)} 条",
        first_address=here.address() if after is not None else "",
        next_address=here.address(before=str(page.next)) if page.next is not None else "",
    )


def entry_page(services: FeedsServices, entry_id: int, wanted: Wanted) -> str | None:
    """Return the page of an entry, with its neighbours in a list; None if there is no such entry."""
    with reading(services.engine) as connection:
        found = entry_lists.read_entries(connection, [entry_id])
        if not found:
            return None
        row = found[0]
        named = entry_lists.titles_of(connection, [row.source_id])
        at = Cursor(row.published_at, row.entry_id)
        newer, older = (entry_lists.neighbour(connection, wanted.selection, at, newer=each) for each in (True, False))
        frame = frame_of(connection, wanted, "../", None, lists=False)
    shown = _shown(services, row, named.get(row.source_id), wanted, "../")
    return rendered(
        "entry.html.j2",
        frame,
        title=row.title or "（无标题）",
        root="../",
        here=wanted.view,
        entry=shown,
        content=Markup(safe_html(row.content, row.summary, row.link)),  # noqa: S704 (made safe by the sanitiser)
        short=not row.content and bool(row.link),
        back=wanted.address("", f"entries/{entry_id}"),
        list_address=wanted.address("../"),
        newer=wanted.address("", str(newer)) if newer is not None else "",
        older=wanted.address("", str(older)) if older is not None else "",
    )


def rendered(template: str, frame: Frame, *, title: str, **values: Any) -> str:
    """Return a page of the reader, from its template."""
    style = Markup(resources.files(__package__).joinpath("reader.css").read_text("utf-8"))  # noqa: S704 - a file of ours
    return render(
        __package__,
        template,
        title=title,
        badge="",
        about="",
        lang="zh-Hans",
        chapters=[],
        style=table_style() + style,
        places=frame.places,
        folders=frame.folders,
        named=frame.named,
        **values,
    )


def frame_of(
    connection: Connection, wanted: Wanted, root: str, chosen: Row[Any] | None, *, lists: bool = True
) -> Frame:
    """Return what stands beside a page: links to lists, and to folders and sources with unread entries.

    Args:
        connection: A connection.
        wanted: The list that the page shows.
        root: The way to ``/feeds/`` from the page's address.
        chosen: The source whose entries are shown; None for none.
        lists: Whether folders and sources stand there.
    """
    counts = entry_lists.unread_counts(connection)
    unread = sum(counts.values())
    places = [
        _Link(text, Wanted(key).address(root), f"{unread:,}" if key == "unread" and unread else "", key=key)
        for key, text in VIEWS.items()
    ]
    places.append(_Link("来源", f"{root}sources", key="sources"))
    if not lists:
        return Frame(places)
    of = source_lists.folders_of(connection, counts)
    in_folders: dict[str, int] = {}
    for source_id, folder in of.items():
        in_folders[folder] = in_folders.get(folder, 0) + counts[source_id]
    names = source_lists.folders(connection)
    current = (chosen.folder or "") if chosen is not None else wanted.folder
    folders = [
        _Link(
            name or NO_FOLDER,
            Wanted(wanted.view, folder=name).address(root),
            f"{in_folders[name]:,}" if name in in_folders else "",
            current == name,
        )
        for name in ([*names, ""] if names else [])
    ]
    shown = [each for each in of if current is None or of[each] == current]
    shown.sort(key=lambda each: -counts[each])
    titles = entry_lists.titles_of(connection, shown[:_MOST_NAMED])
    named = [
        _Link(
            titles[each].title or titles[each].url,
            Wanted(wanted.view, each).address(root),
            f"{counts[each]:,}",
            each == wanted.source,
        )
        for each in shown[:_MOST_NAMED]
        if each in titles
    ]
    return Frame(places, folders, named)


def _title(wanted: Wanted, chosen: Row[Any] | None) -> str:
    if chosen is not None:
        return str(chosen.title or chosen.url)
    if wanted.folder is not None and not wanted.source:
        return wanted.folder or NO_FOLDER
    return "阅读"


def _shown(
    services: FeedsServices, row: Row[Any], of: Row[Any] | None, wanted: Wanted, root: str = ""
) -> Mapping[str, Any]:
    path = "" if root else "entries/"
    return {
        "entry_id": row.entry_id,
        "title": row.title or row.link or "（无标题）",
        "summary": row.summary if row.summary != row.title else "",
        "link": row.link,
        "published": wording.moment_text(row.published_at, services.settings.zone),
        "unread": bool(row.unread),
        "source": (of.title or of.url) if of is not None else "",
        "source_address": Wanted(ALL, row.source_id).address(root or "./"),
        "address": wanted.address("", f"{path}{row.entry_id}"),
    }
