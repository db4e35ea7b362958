"""What a list is: its columns, its query, its links and batch actions; and its rows, read as a whole or by pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Connection, func, select, text

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.core.ui.lists.list_page import Figures, ListColumn, ListLink, Row
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.keyset import STEP, ListFilter, ListRows, RowPlace, places
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
    "verdicts": "判定",
    "decisions": "决定",
    "log": "变更日志",
}
"""Title of each list by its name, in the order in which pages link to them."""


def list_path(name: str) -> str:
    """Return where the service shows a list, below the front page."""
    return f"lists/{name}"


def csv_file(name: str) -> str:
    """Return the CSV file of a list among the reports."""
    return f"list_{name}.csv"


def link_of(words: str, launch: Launchpad, location: str) -> ListLink:
    """Return a launchpad as a link for many rows; `FIRST` to `THIRD` in its config become each row's values."""
    path = launch.path(location)
    for place, number in enumerate((FIRST, SECOND, THIRD)):
        path = path.replace(str(number), f"{{{place}}}")
    return ListLink(words, path)


def decide(words: str, location: str, action: DecisionAction, **given: Any) -> ListLink:
    """Return a link that records a decision about a row's video, whose id is `FIRST`."""
    return link_of(words, links.decide(FIRST, action, dry_run=False, **given), location)


def batch_link(words: str, launch: Callable[[list[int]], Launchpad], location: str) -> ListLink:
    """Return a link for the selected rows; ``launch`` gets their ids."""
    opened = launch([_MANY])
    # The list in one line, so that any number of ids fits; before the field's comment, or it would be part of that.
    config = re.sub(rf"(  #[^\n]*)?\n\s*- {_MANY}\b", rf" [{_MANY}]\1", opened.config)
    return ListLink(words, replace(opened, config=config).path(location).replace(str(_MANY), "{ids}"))


def view(*, since: date | None = None, **codes: str) -> str:
    """Return the address, on a list's own page, of the rows with these codes, by column, since a day."""
    return "?" + urlencode({**({"since": since.isoformat()} if since else {}), **codes})


@dataclass(frozen=True, slots=True)
class ListSpec:
    """A list.

    Attributes:
        columns: Its columns; the first one identifies the row to people.
        rows: The tables and columns of its rows.
        read: Returns the full rows of the given keys, by key; a row that was deleted since is left out.
        key: The column whose numbers are passed to batch links.
        links: Links of rows by key.
        batch: Links for the selected rows; their address contains ``{ids}``.
        figures: Returns what stands around it.
        most: Most rows of the CSV file, the newest; None for all.
    """

    name: str
    about: str
    columns: Sequence[ListColumn]
    rows: ListRows
    read: Callable[[Connection, Sequence[int]], Mapping[int, Row]]
    key: str = "vod_id"
    links: Mapping[str, ListLink] = field(default_factory=dict)
    batch: Sequence[ListLink] = ()
    figures: Callable[[], Figures] = Figures
    most: int | None = None

    @property
    def title(self) -> str:
        """Its heading."""
        return TITLES[self.name]


@dataclass(frozen=True, slots=True)
class ListOrder:
    """By what a list is sorted, empty for its default order, and whether the smallest comes first."""

    sort: str = ""
    ascending: bool = False


DEFAULT_ORDER = ListOrder()


def page_of_rows(
    services: Services,
    spec: ListSpec,
    asked: ListFilter,
    order: ListOrder = DEFAULT_ORDER,
    *,
    after: RowPlace | None = None,
    size: int = STEP,
) -> tuple[list[Row], RowPlace | None]:
    """Return the rows that follow ``after``, and the place of the last; None for it where no more follow."""
    with reading(services.engine) as connection:
        found = places(spec.rows, connection, asked, order.sort, ascending=order.ascending, after=after, limit=size + 1)
        keys = [place.key for place in found[:size]]
        rows = spec.read(connection, keys)
    return [rows[key] for key in keys if key in rows], found[size - 1] if len(found) > size else None


def batches_of(
    services: Services, spec: ListSpec, asked: ListFilter, order: ListOrder = DEFAULT_ORDER, *, most: int | None = None
) -> Iterator[list[Row]]:
    """Yield the rows of a list in order, `STEP` at a time, each time on a connection of its own."""
    left, after = most, None
    while left is None or left > 0:
        size = STEP if left is None else min(STEP, left)
        rows, after = page_of_rows(services, spec, asked, order, after=after, size=size)
        yield rows
        if after is None:
            return
        left = None if left is None else left - size


def rows_of(
    services: Services, spec: ListSpec, asked: ListFilter, order: ListOrder = DEFAULT_ORDER, *, most: int | None = None
) -> Iterator[Row]:
    """Yield the rows of a list in order."""
    for rows in batches_of(services, spec, asked, order, most=most):
        yield from rows


def counted(services: Services, rows: ListRows, by: ColumnElement[Any]) -> dict[Any, int]:
    """Return how many rows a list has for each value of an expression."""
    joined = rows.source_of(by, *rows.conditions)
    query = select(by.label("list_code"), func.count()).select_from(joined).where(*rows.conditions)
    query = query.group_by(text("list_code"))
    with reading(services.engine) as connection:
        return dict(connection.execute(query).tuples().all())
