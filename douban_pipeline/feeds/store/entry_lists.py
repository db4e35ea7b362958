"""Lists of entries as people read them: newest first, unread, starred, of a source, of a folder; and marks.

Lists are paged by keyset: a page begins after the last entry of the one before, and an index holds each order, so that
the thousandth page of a million entries costs what the first does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    false,
    func,
    or_,
    select,
    union_all,
    update,
)

from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.feeds.store.tables import entry, source

MARKED_AT_ONCE = 2000
"""Entries that one transaction marks: marking a hundred thousand as read stops no poll for long."""

_WEEK = 7 * 86_400
_SEEKS = 100
"""Longest page that is merged from the pages of a folder's sources, each found by index."""

_LISTED = (
    *(entry.c.entry_id, entry.c.source_id, entry.c.title, entry.c.summary, entry.c.link, entry.c.published_at),
    *(entry.c.found_at, entry.c.unread, entry.c.starred),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which entries a list has.

    Attributes:
        unread: True for unread ones, False for read ones, None for both.
        starred: True for starred ones, None for all.
        source_id: Of this source; None for every source.
        folder: Of the sources in this folder, empty for those in none; None for every source.
        found_from: Found at this moment or later; None for no limit.
        found_to: Found before this moment; None for no limit.
    """

    unread: bool | None = None
    starred: bool | None = None
    source_id: str | None = None
    folder: str | None = None
    found_from: int | None = None
    found_to: int | None = None

    def conditions(self, *, with_folder: bool = True) -> list[ColumnElement[bool]]:
        """Return them as conditions on `feed_entry`."""
        where: list[ColumnElement[bool]] = []
        if self.unread:
            where.append(entry.c.unread == 1)
        elif self.unread is not None:
            # Most entries are read: a sum, which no index is chosen for (MariaDB took 4 s for a page of a million).
            where.append(entry.c.unread + 0 == 0)
        if self.starred is not None:
            where.append(entry.c.starred == int(self.starred))
        if self.source_id is not None:
            where.append(entry.c.source_id == self.source_id)
        if self.folder is not None and with_folder:
            where.append(entry.c.source_id.in_(select(source.c.source_id).where(in_folder(self.folder))))
        if self.found_from is not None:
            where.append(entry.c.found_at >= self.found_from)
        if self.found_to is not None:
            where.append(entry.c.found_at < self.found_to)
        return where


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended: the publication time and key of its last entry."""

    published_at: int
    entry_id: int

    def __str__(self) -> str:
        """Return it as addresses and clients hold it."""
        return f"{self.published_at}-{self.entry_id}"

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """Return the cursor of a text; None if it is none."""
        first, _, second = text.partition("-")
        if not (first.isascii() and first.isdigit() and second.isascii() and second.isdigit()) or len(text) > 38:
            return None
        return cls(int(first), int(second))


@dataclass(frozen=True, slots=True)
class EntryPage:
    """A page of entries.

    Attributes:
        rows: The entries, without content.
        next: Where the next page begins; None if this is the last one.
    """

    rows: Sequence[Row[Any]]
    next: Cursor | None = None


def in_folder(folder: str) -> ColumnElement[bool]:
    """Return the condition that a source is in a folder; an empty name is none."""
    return source.c.folder == folder if folder else or_(source.c.folder.is_(None), source.c.folder == "")


def entry_page(
    connection: Connection, chosen: Selection, after: Cursor | None, limit: int, *, oldest_first: bool = False
) -> EntryPage:
    """Return a page of a list, by publication time, or by finding where it is limited by that.

    Args:
        connection: A connection.
        chosen: The list.
        after: Where the page before ended; None for the first page.
        limit: Entries of a page.
        oldest_first: Whether the oldest entries come first.
    """
    most = limit + 1
    if chosen.found_from is not None:
        query = _by_key(connection, chosen, after, oldest_first=oldest_first)
    elif chosen.folder is not None and most <= _SEEKS and not oldest_first and not chosen.starred:
        query = _of_folder(connection, chosen, after, most)
    else:
        query = _ordered(select(*_LISTED).where(*chosen.conditions(), *_beyond(after, oldest_first)), oldest_first)
    return _paged(connection.execute(query.limit(most)).all(), limit)


def _paged(rows: Sequence[Row[Any]], limit: int) -> EntryPage:
    shown = rows[:limit]
    last = Cursor(shown[-1].published_at, shown[-1].entry_id) if len(rows) > limit else None
    return EntryPage(shown, last)


def _ordered(query: Select[Any], oldest_first: bool = False) -> Select[Any]:
    order = (entry.c.published_at, entry.c.entry_id)
    return query.order_by(*order) if oldest_first else query.order_by(*(column.desc() for column in order))


def _beyond(after: Cursor | None, oldest_first: bool = False) -> list[ColumnElement[bool]]:
    """Return the conditions that an entry comes after a cursor.

    The first one is implied by the second, and is what an index is searched by: not every server reads pairs of columns
    that way.
    """
    if after is None:
        return []
    at, key = entry.c.published_at, entry.c.entry_id
    if oldest_first:
        return [at >= after.published_at, or_(at > after.published_at, key > after.entry_id)]
    return [at <= after.published_at, or_(at < after.published_at, key < after.entry_id)]


def _by_key(connection: Connection, chosen: Selection, after: Cursor | None, *, oldest_first: bool) -> Select[Any]:
    """Return the list in the order of finding, which is that of keys, from the first one found in time."""
    first = connection.execute(
        select(entry.c.entry_id).where(entry.c.found_at >= chosen.found_from).order_by(entry.c.found_at).limit(1)
    ).scalar()
    if first is None:
        return select(*_LISTED).where(false())
    key = entry.c.entry_id
    where = [*chosen.conditions(), key >= first]
    if after is not None:
        where.append(key > after.entry_id if oldest_first else key < after.entry_id)
    return select(*_LISTED).where(*where).order_by(key if oldest_first else key.desc())


def _of_folder(connection: Connection, chosen: Selection, after: Cursor | None, most: int) -> Select[Any]:
    """Return a page of a folder, merged from pages of its sources.

    Each source's newest entry is found by index; the page can only hold entries of the ``most`` sources whose newest
    ones are the newest.
    """
    where = [*chosen.conditions(with_folder=False), *_beyond(after)]
    newest = (
        select(func.max(entry.c.published_at))
        .where(*where, entry.c.source_id == source.c.source_id)
        .scalar_subquery()
        .label("newest")
    )
    inner = select(source.c.source_id, newest).where(in_folder(chosen.folder or "")).subquery()
    query = select(inner.c.source_id).where(inner.c.newest.is_not(None)).order_by(inner.c.newest.desc())
    ids = connection.execute(query.limit(most)).scalars().all()
    if not ids:
        return select(*_LISTED).where(false())
    pages = [
        select(_ordered(select(*_LISTED).where(*where, entry.c.source_id == each)).limit(most).subquery())
        for each in ids
    ]
    merged = union_all(*pages).subquery()
    return select(merged).order_by(merged.c.published_at.desc(), merged.c.entry_id.desc())


def read_entries(connection: Connection, entry_ids: Sequence[int]) -> list[Row[Any]]:
    """Return entries with their content, in ascending order of their keys; unknown keys are left out."""
    found: list[Row[Any]] = []
    for some in chunks(sorted(set(entry_ids))):
        query = select(*_LISTED, entry.c.content, entry.c.dated).where(entry.c.entry_id.in_(some))
        found += connection.execute(query.order_by(entry.c.entry_id))
    return found


def neighbour(connection: Connection, chosen: Selection, at: Cursor, *, newer: bool) -> int | None:
    """Return the key of the entry that stands beside another one in a list."""
    page = entry_page(connection, chosen, at, 1, oldest_first=newer)
    return page.rows[0].entry_id if page.rows else None


def newest_key(connection: Connection) -> int:
    """Return the key of the entry that was found last; 0 without any."""
    return int(connection.execute(select(func.max(entry.c.entry_id))).scalar() or 0)


def unread_counts(connection: Connection) -> dict[str, int]:
    """Return the number of unread entries of every source that has any."""
    query = select(entry.c.source_id, func.count()).where(entry.c.unread == 1).group_by(entry.c.source_id)
    return {row[0]: int(row[1]) for row in connection.execute(query)}


def newest_unread(connection: Connection, source_ids: Sequence[str]) -> dict[str, int]:
    """Return when the newest unread entry of sources was published, for those that have one."""
    found: dict[str, int] = {}
    for some in chunks(list(source_ids)):
        query = select(entry.c.source_id, func.max(entry.c.published_at)).where(
            entry.c.unread == 1, entry.c.source_id.in_(some)
        )
        found.update({row[0]: int(row[1]) for row in connection.execute(query.group_by(entry.c.source_id))})
    return found


def mark(
    connection: Connection, entry_ids: Sequence[int], *, unread: bool | None = None, starred: bool | None = None
) -> int:
    """Set marks of entries; return how many changed. A mark that is None stays as it is.

    Each mark is set by itself, so that of two devices that mark at once neither undoes what the other did.
    """
    changed = 0
    for name, value in (("unread", unread), ("starred", starred)):
        if value is None:
            continue
        column = entry.c[name]
        for some in chunks(sorted(set(entry_ids))):
            statement = update(entry).where(entry.c.entry_id.in_(some), column != int(value))
            changed += connection.execute(statement.values({name: int(value)})).rowcount
    return changed


def mark_all_read(engine: Engine, chosen: Selection, *, through: int | None = None, found_to: int | None = None) -> int:
    """Mark the unread entries of a list as read, in transactions of `MARKED_AT_ONCE`; return how many.

    Args:
        engine: The database.
        chosen: The list.
        through: The last key that whoever marks has seen; later ones stay unread. None for no limit.
        found_to: The moment until which they were found, inclusive; None for no limit.
    """
    where = [*chosen.conditions(), entry.c.unread == 1]
    if through is not None:
        where.append(entry.c.entry_id <= through)
    if found_to is not None:
        where.append(entry.c.found_at <= found_to)
    changed = 0
    while True:
        with reading(engine) as connection:
            ids = connection.execute(select(entry.c.entry_id).where(*where).limit(MARKED_AT_ONCE)).scalars().all()
        if not ids:
            return changed

        def work(connection: Connection, some: Sequence[int] = ids) -> int:
            return mark(connection, some, unread=False)

        changed += run_transaction(engine, work)


def forget_content(engine: Engine, before: int) -> int:
    """Delete the content of entries found in the week before a moment that were read and are not starred; return how
    many. Summary and marks stay.

    Only of that week, so that a nightly call need not look through all that is older.
    """
    where = (entry.c.found_at < before, entry.c.found_at >= before - _WEEK, entry.c.content.is_not(None))
    query = select(entry.c.entry_id).where(*where, entry.c.unread == 0, entry.c.starred == 0).limit(MARKED_AT_ONCE)
    changed = 0
    while True:

        def work(connection: Connection) -> int:
            ids = connection.execute(query).scalars().all()
            for some in chunks(ids):
                still = (entry.c.entry_id.in_(some), entry.c.unread == 0, entry.c.starred == 0)
                connection.execute(update(entry).where(*still).values(content=None))
            return len(ids)

        found = run_transaction(engine, work)
        changed += found
        if found < MARKED_AT_ONCE:
            return changed


def titles_of(connection: Connection, source_ids: Sequence[str]) -> Mapping[str, Row[Any]]:
    """Return title, address and folder of sources, by id."""
    found: dict[str, Row[Any]] = {}
    columns = (source.c.source_id, source.c.title, source.c.url, source.c.folder)
    for some in chunks(sorted(set(source_ids))):
        rows = connection.execute(select(*columns).where(source.c.source_id.in_(some)))
        found.update({row.source_id: row for row in rows})
    return found
