"""A list by its name: what it shows, where its rows are, and how they are read in full."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.core.ui.lists.list_page import ListLink, ListPage, Row
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.keyset import ListFilter, ListRows, every_key
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionAction

FIRST, SECOND, THIRD = (900_000_000_000_001, 900_000_000_000_002, 900_000_000_000_003)
"""Numbers that stand for what differs from row to row in the config of a link."""

_MANY = 900_000_000_000_004


def link_of(text: str, launch: Launchpad, location: str) -> ListLink:
    """Return a launchpad as a link of many rows, `FIRST` to `THIRD` in its config as what differs."""
    path = launch.path(location)
    for place, number in enumerate((FIRST, SECOND, THIRD)):
        path = path.replace(str(number), f"{{{place}}}")
    return ListLink(text, path)


def decide(text: str, location: str, action: DecisionAction, **given: Any) -> ListLink:
    """Return a link that decides about a row's video, `FIRST` of its link."""
    return link_of(text, links.decide(FIRST, action, dry_run=False, **given), location)


def batch_link(text: str, launch: Callable[[list[int]], Launchpad], location: str) -> ListLink:
    """Return a link about the rows that are selected; ``launch`` gets their ids."""
    opened = launch([_MANY])
    # A list in one line, in which any number of ids may stand.
    config = re.sub(rf"\n\s*- {_MANY}\b", f" [{_MANY}]", opened.config)
    return ListLink(text, replace(opened, config=config).path(location).replace(str(_MANY), "{ids}"))


@dataclass(frozen=True, slots=True)
class NamedList:
    """A list.

    Attributes:
        name: As it is called on the command line.
        page: What it shows.
        rows: Where its rows are.
        read: Returns the rows of some keys in full, by key; one that was deleted since is left out.
        most: The page holds at most so many rows, the newest; None for all. The command line reads all of them.
    """

    name: str
    page: ListPage
    rows: ListRows
    read: Callable[[Connection, Sequence[int]], Mapping[int, Row]]
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
    """Yield the rows of a list in their order, read some hundred at a time."""
    for keys in every_key(services.engine, wanted.rows, asked, sort=sort, ascending=ascending, most=most):
        with reading(services.engine) as connection:
            found = wanted.read(connection, keys)
        yield from (found[key] for key in keys if key in found)
