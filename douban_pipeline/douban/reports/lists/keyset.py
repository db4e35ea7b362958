"""Keyset pagination of a list: its tables, its filters, and the keys that follow a given one.

Only keys and sort values are read here, some hundred at a time: memory use does not grow with the list, and no read of
`mac_vod` takes long enough to block the site's writes.
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
"""Number of keys read at once: as many as one statement may name."""

Orderable = Column[Any] | ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The filter of a list; empty fields do not restrict it.

    Attributes:
        categories: Ids of categories; a video is in any of them.
        since: Earliest value of the list's time column.
        until: End of the range of the list's time column, exclusive.
        sources: Any of these values of the list's source column: an id's origin, a model, an operator, a status.
        text: Text in the title or a reason, or the id of a video or a subject.
    """

    categories: Collection[int] = ()
    since: datetime | None = None
    until: datetime | None = None
    sources: Collection[str] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class ListRows:
    """The tables and columns of a list's rows.

    Attributes:
        key: The numeric column that identifies a row.
        table: The table of `key`, joined with everything needed except the CMS's columns.
        joined: The same joined with the CMS's row, for filters and orders that need it.
        cms: The CMS's table.
        conditions: The conditions that select the list's rows.
        sorts: What the list can be ordered by, by name; the first is its default order, the largest first.
        time: The column that "since" and "until" filter.
        source: The expression that "sources" filters, if the list has one.
        texts: Columns in which a text is searched.
        numbers: Columns that are compared with a text of digits only.
        words: Columns of codes, each with the shown text of every code, in which a text is searched.
        failures: Columns of failure messages, which are shown in Chinese.
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
        """Return the filter ``asked`` as conditions."""
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
            # The CMS stores text escaped.
            words = dict.fromkeys((text, escape(text)))
            hits = [column.contains(word, autoescape=True) for column in self.texts for word in words]
            hits += [column == int(text) for column in self.numbers if text.isascii() and text.isdecimal()]
            hits += [column.in_(codes) for column, shown in self.words if (codes := codes_saying(text, shown))]
            said = list(messages_saying(text))
            hits += [column.like(message, escape="\\") for column in self.failures for message in said]
            found.append(or_(false(), *hits))
        return found

    def only(self, conditions: Sequence[ColumnElement[bool]]) -> Select[tuple[int]]:
        """Return the query for the keys of rows that meet ``conditions`` on `table`, in the default order."""
        by = next(iter(self.sorts.values()))
        return select(self.key).select_from(self.table).where(*conditions).order_by(by.desc(), self.key.desc())

    def _moment(self, moment: datetime) -> Any:
        # Only `vod_time` holds unix seconds, as the CMS does.
        return int(moment.timestamp()) if isinstance(self.time.type, BigInteger) else moment


class RowPlace(NamedTuple):
    """The position of a row in an order: its sort value and its key."""

    value: Any
    key: int


def places(
    rows: ListRows,
    connection: Connection,
    asked: ListFilter,
    *,
    sort: str = "",
    ascending: bool = False,
    after: RowPlace | None = None,
    limit: int = STEP,
) -> list[RowPlace]:
    """Return the places of the ``limit`` rows that follow ``after``, among those that pass ``asked``."""
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
    return [RowPlace(value, key) for value, key in connection.execute(query)]


def _uses(element: ColumnElement[Any], table: FromClause) -> bool:
    from sqlalchemy.sql import visitors

    return any(getattr(part, "table", None) is table for part in visitors.iterate(element))


def _behind(by: Orderable, key: Column[Any], after: RowPlace, ascending: bool) -> ColumnElement[bool]:
    """Return the condition that a row comes after ``after``; every supported server sorts NULL as the smallest."""
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
        asked: Its filter.
        sort: Name of its order; empty for the default order.
        ascending: Whether the smallest comes first.
        most: Most keys to yield; None for all.
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
