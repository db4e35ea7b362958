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
from douban_pipeline.feeds.reading.source_lines import source_line
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import entry_lists, source_lists
from douban_pipeline.feeds.store.entry_lists import Cursor, EntryPage, Selection

PAGE = 50
"""Entries of a page, and sources of a page: some screens to scroll, on a phone too."""
NO_FOLDER = "未分组"
ALL = "all"
VIEWS = {"unread": "未读", ALL: "全部", "starred": "加星"}
STATES = (
    ("", "全部"),
    ("failing", "失败"),
    ("active", "关注中"),
    ("paused", "已暂停"),
    ("gone", "已消失或重复"),
)
_MOST_WORDS = 5
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
class _Frame:
    """What stands beside a page: links to lists, with the numbers of what is unread in them."""

    places: list[_Link]
    folders: list[_Link] = field(default_factory=list)
    named: list[_Link] = field(default_factory=list)


def script() -> str:
    """Return the script of the pages."""
    return resources.files(__package__).joinpath(_SCRIPT).read_text("utf-8")


def entries_page(services: FeedsServices, wanted: Wanted) -> str:
    """Return the page of a list of entries."""
    words = wanted.words.split()[:_MOST_WORDS]
    after = Cursor.parse(wanted.before)
    with reading(services.engine) as connection:
        through = entry_lists.newest_key(connection)
        if words:
            page = entry_lists.search_page(connection, wanted.selection, words, after, PAGE)
        else:
            page = entry_lists.entry_page(connection, wanted.selection, after, PAGE)
        copies = entry_lists.stories(connection, page.rows)
        others = [each.source_id for some in copies.values() for each in some]
        named = entry_lists.titles_of(connection, [*(row.source_id for row in page.rows), *others, wanted.source])
        frame = _frame(connection, wanted, "", named.get(wanted.source))
    here = Wanted(wanted.view, wanted.source, wanted.folder, wanted.words)
    back = here.address(**({"before": wanted.before} if after is not None else {}))
    following = page.next
    return _rendered(
        "entries.html.j2",
        frame,
        title=_title(wanted, named.get(wanted.source)),
        root="",
        here=wanted.view,
        rows=[
            {**_shown(services, row, named.get(row.source_id), here), "also": _also(row, copies, named)}
            for row in _once(page.rows)
        ],
        view=wanted.view,
        scope=wanted.scope,
        words=wanted.words,
        all_address=replace(here, words="").address(),
        through=through,
        back=back,
        empty=_empty(wanted, page, followed=bool(frame.folders or frame.named or named or through)),
        said=_said(services, page),
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
        frame = _frame(connection, wanted, "../", None, lists=False)
    shown = _shown(services, row, named.get(row.source_id), wanted, "../")
    return _rendered(
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


def sources_page(services: FeedsServices, *, words: str, state: str, folder: str | None, after: str) -> str:
    """Return a page of the list of sources.

    Args:
        services: The services.
        words: Words of title or address.
        state: A key of `STATES`.
        folder: A folder, empty for sources in none; None for all.
        after: Id of the last source of the page before; empty for the first page.
    """
    now = services.now()
    with reading(services.engine) as connection:
        last = entry_lists.titles_of(connection, [after]).get(after) if after else None
        rows = source_lists.source_page(
            connection,
            (last.title, after) if last is not None else None,
            PAGE + 1,
            words=words.split()[:_MOST_WORDS],
            state=state,
            folder=folder,
        )
        counts = entry_lists.unread_counts(connection)
        lines = [
            source_line(
                connection,
                services,
                row,
                now,
                address=Wanted(ALL, row.source_id).address("", "./"),
                waiting=counts.get(row.source_id, 0),
            )
            for row in rows[:PAGE]
        ]
        names = source_lists.folders(connection)
        frame = _frame(connection, Wanted(ALL), "", None, lists=False)
    fields = {"q": words, "state": state} | ({"folder": folder} if folder is not None else {})
    kept = {name: value for name, value in fields.items() if value or name == "folder"}
    more = {**kept, "after": rows[PAGE - 1].source_id} if len(rows) > PAGE else {}
    narrowed = words or state or folder is not None
    return _rendered(
        "sources.html.j2",
        frame,
        title="来源",
        root="",
        here="sources",
        lines=lines,
        words=words,
        state=state,
        states=STATES,
        folder=folder,
        folder_names=["", *names] if names else [],
        no_folder=NO_FOLDER,
        empty="没有这样的来源。" if narrowed or after else "还没有关注任何来源：运行 douban-pipeline feeds add。",
        said=f"{len(lines)} 个来源",
        first_address=f"sources?{urlencode(kept)}" if after else "",
        next_address=f"sources?{urlencode(more)}" if more else "",
    )


def _rendered(template: str, frame: _Frame, *, title: str, **values: Any) -> str:
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


def _frame(connection: Connection, wanted: Wanted, root: str, chosen: Row[Any] | None, *, lists: bool = True) -> _Frame:
    counts = entry_lists.unread_counts(connection)
    starred = entry_lists.count_starred(connection)
    numbers = {"unread": sum(counts.values()), "starred": starred}
    places = [
        _Link(text, Wanted(key).address(root), f"{numbers[key]:,}" if numbers.get(key) else "", key=key)
        for key, text in VIEWS.items()
    ]
    places.append(_Link("来源", f"{root}sources", key="sources"))
    if not lists:
        return _Frame(places)
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
    return _Frame(places, folders, named)


def _once(rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    """Return rows without those whose story an earlier one tells."""
    seen: set[str] = set()
    found = []
    for row in rows:
        if row.story_hash not in seen:
            found.append(row)
        if row.story_hash:
            seen.add(row.story_hash)
    return found


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
        return "还没有条目：用 douban-pipeline feeds add 关注来源，抓取之后就在这里。"
    return {"unread": "没有未读的条目。", "starred": "没有加星的条目。"}.get(wanted.view, "没有条目。")


def _said(services: FeedsServices, page: EntryPage) -> str:
    if page.searched_to is not None:
        return f"已搜索到 {wording.moment_text(page.searched_to, services.settings.zone)}，更早的还没有搜索"
    return f"{len(page.rows)} 条"
