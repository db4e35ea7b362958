"""A named list: its page, its rows, and how they are read in full."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import Connection

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.core.ui.lists.list_page import Figures, ListColumn, ListCounts, ListLink, ListPage, Row
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.keyset import ListFilter, ListRows, every_key
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionAction

FIRST, SECOND, THIRD = (900_000_000_000_001, 900_000_000_000_002, 900_000_000_000_003)
"""Placeholders in the config of a link for the values that differ from row to row."""

_MANY = 900_000_000_000_004


TITLES: Mapping[str, str] = {
    "review": "待审核",
    "missing": "无豆瓣 ID",
    "duplicates": "豆瓣 ID 重复",
    "locked": "已锁定豆瓣 ID",
    "intros": "简介锁定与 AI 处理",
    "tasks": "任务",
    "decisions": "决定",
    "log": "变更日志",
}
"""Title of each list by its name, in the order in which pages link to them."""


def file_of(name: str) -> str:
    """Return the file of a list's page."""
    return f"list_{name}.html"


def page_of(name: str, about: str, columns: Sequence[ListColumn], **more: Any) -> ListPage:
    """Return the page of the list ``name``; ``more`` are further fields of `ListPage`."""
    return ListPage(file_of(name).removesuffix(".html"), TITLES[name], about, columns, **more)


def link_of(text: str, launch: Launchpad, location: str) -> ListLink:
    """Return a launchpad as a link for many rows; `FIRST` to `THIRD` in its config become each row's values."""
    path = launch.path(location)
    for place, number in enumerate((FIRST, SECOND, THIRD)):
        path = path.replace(str(number), f"{{{place}}}")
    return ListLink(text, path)


def decide(text: str, location: str, action: DecisionAction, **given: Any) -> ListLink:
    """Return a link that records a decision about a row's video, whose id is `FIRST`."""
    return link_of(text, links.decide(FIRST, action, dry_run=False, **given), location)


def batch_link(text: str, launch: Callable[[list[int]], Launchpad], location: str) -> ListLink:
    """Return a link for the selected rows; ``launch`` gets their ids."""
    opened = launch([_MANY])
    # The list in one line, so that any number of ids fits; before the field's comment, or it would be part of that.
    config = re.sub(rf"(  #[^\n]*)?\n\s*- {_MANY}\b", rf" [{_MANY}]\1", opened.config)
    return ListLink(text, replace(opened, config=config).path(location).replace(str(_MANY), "{ids}"))


def view(*, since: date | None = None, **words: str) -> str:
    """Return the address, on a list's own page, of the rows whose labels say ``words``, by column, since a day."""
    asked = {"since": since.isoformat()} if since else {}
    return "#" + urlencode({**asked, **{f"_{column}": word for column, word in words.items()}})


@dataclass(frozen=True, slots=True)
class NamedList:
    """A list.

    Attributes:
        name: Its name on the command line.
        page: Its page.
        rows: The tables and columns of its rows.
        read: Returns the full rows of the given keys, by key; a row that was deleted since is left out.
        figures: Returns what its page shows around it, once its rows are counted.
        most: Most rows on the page, the newest; None for all. The command line reads all rows.
    """

    name: str
    page: ListPage
    rows: ListRows
    read: Callable[[Connection, Sequence[int]], Mapping[int, Row]]
    figures: Callable[[ListCounts], Figures] = lambda counts: Figures()
    most: int | None = None


def rows_of(
    services: Services,
    wanted: NamedList,
    asked: ListFilter,
    *,
    sort: str = "",
    ascending: bool = False,
    most: int | None = None,
) -> Iterator[Row]:
    """Yield the rows of a list in order, read some hundred at a time."""
    for keys in every_key(services.engine, wanted.rows, asked, sort=sort, ascending=ascending, most=most):
        with reading(services.engine) as connection:
            found = wanted.read(connection, keys)
        yield from (found[key] for key in keys if key in found)
