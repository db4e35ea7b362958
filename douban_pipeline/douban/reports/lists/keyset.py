"""Keyset pagination of a list: its tables, its filters, and the keys that follow a given one.

Only keys and sort values are read here, some hundred at a time: memory use does not grow with the list, and no read of
`mac_vod` takes long enough to block the site's writes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    false,
    func,
    or_,
    select,
)

from douban_pipeline.cms.values import escape
from douban_pipeline.core.failure_words import codes_saying, messages_saying

STEP = 500
"""Number of keys read at once: as many as one statement may name."""

MOST_COUNTED = 10_000
"""How far the rows of a page's list are counted; beyond that it is enough to know that there are more."""

Orderable = Column[Any] | ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The filter of a list; empty fields do not restrict it.

    Attributes:
        categories: Ids of categories; a video is in any of them.
        since: Earliest value of the list's time column.
        until: End of the range of the list's time column, exclusive.
        chosen: The codes of the list's choices, by name; a row has any of them.
        text: Text in the title or a reason, or the id of a video or a subject.
    """

    categories: Collection[int] = ()
    since: datetime | None = None
    until: datetime | None = None
    chosen: Mapping[str, Collection[str]] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something by which rows are chosen: an expression, and the text of each code that it may have."""

    by: Orderable
    words: Mapping[str, str]


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
        choices: What rows are chosen by, by the name of the column that shows it.
        texts: Columns in which a text is searched.
        numbers: Columns that are compared with a text of digits only.
        words: Columns of codes, each with the shown text of every code, in which a text is searched.
        failures: Columns of failure messages, which are shown in Chinese.
    """

    key: Column[Any]
    table: FromClause
    joined: FromClause
    cms: FromClause
    conditions: Sequence[ColumnElement[bool]]
    sorts: Mapping[str, Orderable]
    time: Column[Any]
    category: Column[Any]
    choices: Mapping[str, Choice] = field(default_factory=dict)
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
        for name, wanted in asked.chosen.items():
            found.append(self.choices[name].by.in_(wanted))
        if text := asked.text.strip():
            # The CMS stores text escaped.
            words = dict.fromkeys((text, escape(text)))
            hits = [column.contains(word, autoescape=True) for column in self.texts for word in words]
            is_number = text.isascii() and text.isdecimal() and len(text) < 19
            hits += [column == int(text) for column in self.numbers if is_number]
            hits += [column.in_(codes) for column, shown in self.words if (codes := codes_saying(text, shown))]
            said = list(messages_saying(text))
            hits += [column.like(message, escape="\\") for column in self.failures for message in said]
            found.append(or_(false(), *hits))
        return found

    def only(self, conditions: Sequence[ColumnElement[bool]]) -> Select[tuple[int]]:
        """Return the query for the keys of rows that meet ``conditions`` on `table`, in the default order."""
        by = next(iter(self.sorts.values()))
        return select(self.key).select_from(self.table).where(*conditions).order_by(by.desc(), self.key.desc())

    def source_of(self, *used: ColumnElement[Any]) -> FromClause:
        """Return the tables that hold what is used."""
        return self.joined if any(_uses(each, self.cms) for each in used) else self.table

    def count(self, connection: Connection, asked: ListFilter) -> int:
        """Return how many rows pass ``asked``, as far as `MOST_COUNTED`, and one more if there are more."""
        conditions = [*self.conditions, *self.restrictions(asked)]
        rows = select(self.key).select_from(self.source_of(*conditions)).where(*conditions).limit(MOST_COUNTED + 1)
        return int(connection.execute(select(func.count()).select_from(rows.subquery())).scalar_one())

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
    sort: str = "",
    *,
    ascending: bool = False,
    after: RowPlace | None = None,
    limit: int = STEP,
) -> list[RowPlace]:
    """Return the places of the ``limit`` rows that follow ``after``, among those that pass ``asked``."""
    by = rows.sorts[sort or next(iter(rows.sorts))]
    conditions = [*rows.conditions, *rows.restrictions(asked)]
    if after is not None:
        conditions.append(_behind(by, rows.key, after, ascending))
    order = (by, rows.key) if ascending else (by.desc(), rows.key.desc())
    query = (
        select(by.label("place_value"), rows.key)
        .select_from(rows.source_of(by, *conditions))
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
