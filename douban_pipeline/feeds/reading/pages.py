"""The reader's pages: lists of entries, one entry, the list of sources. They work without JavaScript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from douban_pipeline.feeds.store.entry_lists import Cursor, EntryPage, Selection

PAGE = 50
"""Entries of a page, and sources of a page: some screens to scroll, on a phone too."""
NO_FOLDER = "未分组"
ALL = "all"
VIEWS = {"unread": "未读", ALL: "全部", "starred": "加星"}
MOST_WORDS = 5
_MOST_SKIPPED = 20
"""Pages that are passed over because they hold nothing but copies."""
_MOST_NAMED = 60
_SCRIPT = "reader.js"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which list a page shows, as its address says.

    Attributes:
        view: A name of `VIEWS`.
        source: Id of a source; empty for all.
        folder: A folder, empty for sources in none; None for all.
        words: What is searched for.
        before: Where the page before ended.
    """

    view: str = "unread"
    source: str = ""
    folder: str | None = None
    words: str = ""
    before: str = ""

    @property
    def selection(self) -> Selection:
        """The entries of the list."""
        return Selection(
            unread=True if self.view == "unread" else None,
            starred=True if self.view == "starred" else None,
            source_id=self.source or None,
            folder=None if self.source else self.folder,
        )

    @property
    def scope(self) -> dict[str, str]:
        """The list without search and page, as fields of a form."""
        found = {} if self.view == "unread" else {"view": self.view}
        if self.source:
            found["source"] = self.source
        elif self.folder is not None:
            found["folder"] = self.folder
        return found

    def address(self, root: str = "", path: str = "", **more: str) -> str:
        """Return the address of a page about this list."""
        fields = {**self.scope, **({"q": self.words} if self.words else {}), **more}
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
    words = wanted.words.split()[:MOST_WORDS]
    after = Cursor.parse(wanted.before)
    with reading(services.engine) as connection:
        through = entry_lists.newest_key(connection)
        at = after
        for _ in range(_MOST_SKIPPED):
            if words:
                page = entry_lists.search_page(connection, wanted.selection, words, at, PAGE)
            else:
                page = entry_lists.entry_page(connection, wanted.selection, at, PAGE)
            copies = entry_lists.stories(connection, (row.story_hash for row in page.rows))
            others = [each.source_id for some in copies.values() for each in some]
            named = entry_lists.titles_of(connection, [*(row.source_id for row in page.rows), *others, wanted.source])
            rows = _once(page.rows, copies, named, wanted.selection, words)
            # A page of nothing but copies of earlier stories is passed over.
            if rows or not page.rows or page.next is None:
                break
            at = page.next
        frame = frame_of(connection, wanted, "", named.get(wanted.source))
    here = Wanted(wanted.view, wanted.source, wanted.folder, wanted.words)
    back = here.address(**({"before": wanted.before} if after is not None else {}))
    following = page.next
    return rendered(
        "entries.html.j2",
        frame,
        title=_title(wanted, named.get(wanted.source)),
        root="",
        here=wanted.view,
        rows=[
            {**_shown(services, row, named.get(row.source_id), here), "also": _also(row, copies, named)} for row in rows
        ],
        view=wanted.view,
        scope=wanted.scope,
        words=wanted.words,
        all_address=replace(here, words="").address(),
        through=through,
        back=back,
        empty=_empty(wanted, page, followed=bool(frame.folders or frame.named or named or through)),
        said=_said(services, page, len(rows)),
        first_address=here.address() if after is not None else "",
        next_address=here.address(before=str(following)) if following is not None else "",
        next_text="往前继续搜索" if page.searched_to is not None else "更早的",
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
        newer, older = (
            None if wanted.words else entry_lists.neighbour(connection, wanted.selection, at, newer=each)
            for each in (True, False)
        )
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
    starred = entry_lists.count_starred(connection)
    numbers = {"unread": sum(counts.values()), "starred": starred}
    places = [
        _Link(text, Wanted(key).address(root), f"{numbers[key]:,}" if numbers.get(key) else "", key=key)
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


def _once(
    rows: Sequence[Row[Any]],
    copies: Mapping[str, Sequence[Row[Any]]],
    named: Mapping[str, Row[Any]],
    chosen: Selection,
    words: Sequence[str],
) -> list[Row[Any]]:
    """Return rows without those whose story an earlier entry of the list tells, on this page or on one before it."""

    def listed(each: Row[Any]) -> bool:
        folder = (named[each.source_id].folder or "") if each.source_id in named else ""
        text = f"{each.title}\n{each.summary}".lower()
        return chosen.has(each, folder) and all(word.lower() in text for word in words)

    # The copies are in the order of the list.
    first = {story: next((each.entry_id for each in some if listed(each)), None) for story, some in copies.items()}
    return [row for row in rows if first.get(row.story_hash) in (None, row.entry_id)]


def _also(row: Row[Any], copies: Mapping[str, Sequence[Row[Any]]], named: Mapping[str, Row[Any]]) -> str:
    """Return the other sources that tell the story of a row."""
    ids = dict.fromkeys(each.source_id for each in copies.get(row.story_hash, ()) if each.source_id != row.source_id)
    return "、".join(named[each].title or named[each].url for each in ids if each in named)


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
        "starred": bool(row.starred),
        "source": (of.title or of.url) if of is not None else "",
        "source_address": Wanted(ALL, row.source_id).address(root or "./"),
        "address": wanted.address("", f"{path}{row.entry_id}"),
    }


def _empty(wanted: Wanted, page: EntryPage, *, followed: bool) -> str:
    if wanted.words:
        return "没有找到。" if page.next is None else "这一段里没有找到。"
    if not followed:
        return "还没有条目：在来源页面添加来源，抓取之后就在这里。"
    return {"unread": "没有未读的条目。", "starred": "没有加星的条目。"}.get(wanted.view, "没有条目。")


def _said(services: FeedsServices, page: EntryPage, shown: int) -> str:
    if page.searched_to is not None:
        return f"已搜索到 {wording.moment_text(page.searched_to, services.settings.zone)}，更早的还没有搜索"
    return f"{shown} 条"
