"""Lists of sources as people and their readers see them: paged and filtered, folders, numbers; and removing sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Row, and_, delete, func, or_, select, update

from douban_pipeline.core.database import chunks, run_transaction
from douban_pipeline.feeds.store.entry_lists import in_folder
from douban_pipeline.feeds.store.tables import entry, newcomer, poll, source, stats
from douban_pipeline.feeds.types import SourceState

_REMOVED_AT_ONCE = 2000
_FAILING = and_(source.c.state == SourceState.ACTIVE.value, stats.c.fail_count > 0)
STATES: dict[str, ColumnElement[bool]] = {
    "failing": _FAILING,
    "active": source.c.state == SourceState.ACTIVE.value,
    "paused": source.c.state == SourceState.PAUSED.value,
    "gone": source.c.state.in_([SourceState.GONE.value, SourceState.DUPLICATE.value]),
}
"""Filters of the list of sources, by the name that an address of the page has."""


def source_page(
    connection: Connection,
    after: tuple[str, str] | None,
    limit: int,
    *,
    words: Sequence[str] = (),
    state: str = "",
    folder: str | None = None,
) -> Sequence[Row[Any]]:
    """Return sources with their statistics, by title and id, after those of ``after``.

    Args:
        connection: A connection.
        after: Title and id of the last source of the page before; None for the first page.
        limit: Sources of a page.
        words: Only sources with each of them in title or address, whatever its case.
        state: A name of `STATES`; empty for every source.
        folder: Only sources of this folder; empty for those in none, None for every source.
    """
    columns = [column for column in stats.c if column.name not in ("source_id", "created_at", "updated_at")]
    query = select(source, *columns).join_from(source, stats, source.c.source_id == stats.c.source_id)
    if after is not None:
        title, source_id = after
        beyond = or_(source.c.title > title, source.c.source_id > source_id)
        query = query.where(source.c.title >= title, beyond)
    if state:
        query = query.where(STATES[state])
    if folder is not None:
        query = query.where(in_folder(folder))
    for word in words:
        found = (
            func.lower(column).contains(word.lower(), autoescape=True) for column in (source.c.title, source.c.url)
        )
        query = query.where(or_(*found))
    return connection.execute(query.order_by(source.c.title, source.c.source_id).limit(limit)).all()


def followed(connection: Connection) -> Sequence[Row[Any]]:
    """Return id, title, address, folder and last publication of every source, by title: what readers list."""
    columns = (source.c.source_id, source.c.title, source.c.url, source.c.folder)
    query = select(*columns, stats.c.last_article_at, stats.c.last_check_at)
    query = query.join_from(source, stats, source.c.source_id == stats.c.source_id)
    return connection.execute(query.order_by(source.c.title, source.c.source_id)).all()


def folders(connection: Connection) -> list[str]:
    """Return the names of all folders, sorted."""
    query = select(source.c.folder).where(source.c.folder.is_not(None), source.c.folder != "").distinct()
    return sorted(connection.execute(query).scalars())


def folders_of(connection: Connection, source_ids: Iterable[str]) -> dict[str, str]:
    """Return the folder of each source, empty for none; unknown sources are left out."""
    found: dict[str, str] = {}
    for some in chunks(sorted(set(source_ids))):
        rows = connection.execute(select(source.c.source_id, source.c.folder).where(source.c.source_id.in_(some)))
        found.update({row.source_id: row.folder or "" for row in rows})
    return found


def rename_folder(connection: Connection, before: str, after: str) -> int:
    """Rename a folder, or with an empty name take its sources out of it; return how many sources were in it."""
    statement = update(source).where(in_folder(before)).values(folder=after or None)
    return connection.execute(statement).rowcount


def remove(engine: Engine, source_id: str) -> None:
    """Delete a source with its statistics, polls and entries.

    Statistics go first, whose row a poll locks to store what it read: a poll under way stores nothing. What is deleted
    after an interruption is found again by nobody, so the source itself goes last.
    """

    def stop(connection: Connection) -> None:
        connection.execute(delete(stats).where(stats.c.source_id == source_id))

    run_transaction(engine, stop)
    for table, key in ((entry, entry.c.entry_id), (poll, poll.c.poll_id), (newcomer, newcomer.c.newcomer_id)):
        while True:

            def some(connection: Connection, table: Any = table, key: Any = key) -> int:
                ids = select(key).where(table.c.source_id == source_id).limit(_REMOVED_AT_ONCE)
                found = connection.execute(ids).scalars().all()
                for part in chunks(found):
                    connection.execute(delete(table).where(key.in_(part)))
                return len(found)

            removed = run_transaction(engine, some)
            if removed < _REMOVED_AT_ONCE:
                break

    def finish(connection: Connection) -> None:
        connection.execute(delete(source).where(source.c.source_id == source_id))

    run_transaction(engine, finish)
