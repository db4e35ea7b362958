"""The rows of a list by keyset: where they are, what restricts them, and the keys that follow a given one.

Only keys and what orders them is read here, some hundred at a time: memory stays flat however long a list is, and no
read of `mac_vod` is so long that it keeps the site from writing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Select,
    and_,
    false,
    or_,
    select,
)

from douban_pipeline.cms.values import escape
from douban_pipeline.core.database import reading
from douban_pipeline.core.failure_words import codes_saying, messages_saying

STEP = 500
"""Keys read at once, as many as one statement may name."""

Orderable = Column[Any] | ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What restricts a list; what is empty does not.

    Attributes:
        categories: Ids of categories, any of which a video is in.
        since: The first moment, of the list's own time.
        until: The moment before which.
        sources: Any of these, of the list's own source: whose an id is, a model, an operator, a status.
        text: Is in the title or a reason, or is the id of a video or a subject.
    """

    categories: Collection[int] = ()
    since: datetime | None = None
    until: datetime | None = None
    sources: Collection[str] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class ListRows:
    """Where the rows of a list are.

    Attributes:
        key: The column that tells them apart, a number.
        table: What `key` is of, and everything else but the CMS's columns.
        joined: The same with the CMS's row, for filters and orders that need it.
        cms: The CMS's table.
        conditions: What makes a row one of the list.
        sorts: What it can be ordered by, by name; the first is its own order, the largest first.
        time: The column that "since" looks at.
        source: What "source" looks at, if it has one.
        texts: Columns in which a text is looked for.
        numbers: Columns that a text of digits alone may be.
        words: What is shown for the codes of a column, in which a text is looked for.
        failures: Columns of failures, of which the Chinese is shown.
        category: The column of the category.
    """

    key: Column[Any]
    table: FromClause
    joined: FromClause
    cms: FromClause
    conditions: Sequence[ColumnElement[bool]]
    sorts: Mapping[str, Orderable]
    time: Column[Any]
    category: Column[Any]
    source: Orderable | None = None
    texts: Sequence[Column[Any]] = ()
    numbers: Sequence[Column[Any]] = field(default=())
    words: Sequence[tuple[Column[Any], Mapping[str, str]]] = ()
    failures: Sequence[Column[Any]] = ()

    def restrictions(self, asked: ListFilter) -> list[ColumnElement[bool]]:
        """Return ``asked`` as conditions."""
        found: list[ColumnElement[bool]] = []
        if asked.categories:
            found.append(self.category.in_(asked.categories))
        if asked.since is not None:
            found.append(self.time >= self._moment(asked.since))
        if asked.until is not None:
            found.append(self.time < self._moment(asked.until))
        if asked.sources:
            found.append(self.source.in_(asked.sources) if self.source is not None else false())
        if text := asked.text.strip():
            # The CMS holds text escaped.
            words = dict.fromkeys((text, escape(text)))
            hits = [column.contains(word, autoescape=True) for column in self.texts for word in words]
            hits += [column == int(text) for column in self.numbers if text.isascii() and text.isdecimal()]
            hits += [column.in_(codes) for column, shown in self.words if (codes := codes_saying(text, shown))]
            said = list(messages_saying(text))
            hits += [column.like(message, escape="\\") for column in self.failures for message in said]
            found.append(or_(false(), *hits))
        return found

    def only(self, conditions: Sequence[ColumnElement[bool]]) -> Select[tuple[int]]:
        """Return the query for the keys of rows that meet ``conditions`` on the list's own table, in its order."""
        by = next(iter(self.sorts.values()))
        return select(self.key).select_from(self.table).where(*conditions).order_by(by.desc(), self.key.desc())

    def _moment(self, moment: datetime) -> Any:
        # `vod_time` alone mirrors the CMS's unix seconds.
        return int(moment.timestamp()) if isinstance(self.time.type, BigInteger) else moment


class Place(NamedTuple):
    """Where a row is in an order: what it is ordered by, and its key."""

    value: Any
    key: int


def places(
    rows: ListRows,
    connection: Connection,
    asked: ListFilter,
    *,
    sort: str = "",
    ascending: bool = False,
    after: Place | None = None,
    limit: int = STEP,
) -> list[Place]:
    """Return the places of the ``limit`` rows that follow ``after``, of those that ``asked`` leaves."""
    by = rows.sorts[sort or next(iter(rows.sorts))]
    conditions = [*rows.conditions, *rows.restrictions(asked)]
    if after is not None:
        conditions.append(_behind(by, rows.key, after, ascending))
    needs_cms = any(_uses(each, rows.cms) for each in (by, *conditions))
    order = (by, rows.key) if ascending else (by.desc(), rows.key.desc())
    query = (
        select(by.label("place_value"), rows.key)
        .select_from(rows.joined if needs_cms else rows.table)
        .where(*conditions)
        .order_by(*order)
        .limit(limit)
    )
    return [Place(value, key) for value, key in connection.execute(query)]


def _uses(element: ColumnElement[Any], table: FromClause) -> bool:
    from sqlalchemy.sql import visitors

    return any(getattr(part, "table", None) is table for part in visitors.iterate(element))


def _behind(by: Orderable, key: Column[Any], after: Place, ascending: bool) -> ColumnElement[bool]:
    """Return the condition that a row comes after ``after``; every server here takes NULL for the smallest."""
    same_key = key > after.key if ascending else key < after.key
    if after.value is None:
        tied = and_(by.is_(None), same_key)
        return or_(tied, by.is_not(None)) if ascending else tied
    tied = and_(by == after.value, same_key)
    if ascending:
        return or_(by > after.value, tied)
    return or_(by < after.value, tied, by.is_(None))


def every_key(
    engine: Engine,
    rows: ListRows,
    asked: ListFilter,
    *,
    sort: str = "",
    ascending: bool = False,
    most: int | None = None,
) -> Iterator[list[int]]:
    """Yield the keys of all rows in their order, `STEP` at a time, each read on a connection of its own.

    Args:
        engine: The database.
        rows: The list.
        asked: What restricts it.
        sort: What it is ordered by; its own order without.
        ascending: The smallest first.
        most: Stop after so many.
    """
    after, left = None, most
    while left is None or left > 0:
        limit = STEP if left is None else min(STEP, left)
        with reading(engine) as connection:
            found = places(rows, connection, asked, sort=sort, ascending=ascending, after=after, limit=limit)
        if found:
            yield [place.key for place in found]
        if len(found) < limit:
            return
        after = found[-1]
        left = None if left is None else left - limit
