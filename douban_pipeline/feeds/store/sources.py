"""Followed sources: adding, changing, and storing what a poll learns. Sources are never deleted, to keep their
history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from douban_pipeline.core.database import chunks
from douban_pipeline.feeds.store.stats import add_stats, write_stats
from douban_pipeline.feeds.store.tables import NEVER_DUE, source, stats
from douban_pipeline.feeds.types import Gap, Source, SourceKind, SourceState, digest


def host_of(url: str) -> str:
    """Return the host of an address, with its port if the address has one."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{(parts.hostname or '').lower()}{port}"


def address_hash(given: Source) -> str:
    """Return a hash that is equal for sources with the same address and account."""
    return digest(given.url + chr(31) + str(given.options.get("mp_id", "")))


def source_of(row: Row[Any]) -> Source:
    """Return the source of a row."""
    return Source(
        source_id=row.source_id,
        kind=SourceKind(row.kind),
        url=row.url,
        title=row.title,
        options=row.options or {},
        manual_cadence=row.manual_cadence,
        state=SourceState(row.state),
        state_reason=row.state_reason,
        etag=row.etag,
        last_modified=row.last_modified,
        body_hash=row.body_hash,
        gap=Gap.from_json(row.gap),
        clock=row.clock if isinstance(row.clock, dict) else {},
        folder=row.folder or "",
        credential=row.credential or "",
        own_gap=row.own_gap or 0,
        own_gap_from=row.own_gap_from or "",
    )


def insert_sources(connection: Connection, added: Sequence[Source], due_at: Mapping[str, int], now: int) -> None:
    """Store new sources, each with the time when it is first due."""
    rows = [
        {
            "source_id": each.source_id,
            "kind": each.kind.value,
            "url": each.url,
            "url_hash": address_hash(each),
            "host": host_of(each.url)[:255],
            "title": each.title[:300],
            "options": dict(each.options),
            "manual_cadence": each.manual_cadence,
            "folder": each.folder[:200] or None,
            "credential": each.credential or None,
            "created_at": now,
            "updated_at": now,
        }
        for each in added
    ]
    if rows:
        connection.execute(insert(source), rows)
        add_stats(connection, [(each.source_id, each.kind.source_type, due_at[each.source_id]) for each in added], now)


_UPDATE = update(source).where(source.c.source_id == bindparam("of"))
"""Built once: a poll that finds something uses it, and building a statement costs more than sending it."""


def update_source(connection: Connection, source_id: str, values: Mapping[str, Any], now: int) -> None:
    """Set columns of a source."""
    connection.execute(_UPDATE, {"of": source_id, **values, "updated_at": now})


def edit_source(connection: Connection, edited: Source, now: int) -> None:
    """Store a person's changes of a source: title, options, cadence, folder and credentials.

    The whole answer is requested next: other options find other entries in an answer that did not change.
    """
    values: dict[str, Any] = {
        "title": edited.title[:300],
        "options": dict(edited.options),
        "manual_cadence": edited.manual_cadence,
    }
    values |= {"folder": edited.folder[:200] or None, "credential": edited.credential or None}
    values |= {"etag": "", "last_modified": ""}
    update_source(connection, edited.source_id, values, now)


def set_state(connection: Connection, source_id: str, state: SourceState, reason: str, now: int) -> None:
    """Set a source's state and due time: now if it becomes active, never if it is not."""
    update_source(connection, source_id, {"state": state.value, "state_reason": reason[:500]}, now)
    due_at = now if state is SourceState.ACTIVE else NEVER_DUE
    write_stats(connection, source_id, {"next_due_at": due_at, "backoff_until": 0, "updated_at": now})


def read_sources(connection: Connection, source_ids: Sequence[str]) -> dict[str, Source]:
    """Return the existing ones of ``source_ids``, except damaged rows."""
    found: dict[str, Source] = {}
    for some in chunks(list(source_ids)):
        rows = connection.execute(select(source).where(source.c.source_id.in_(some)))
        found.update({row.source_id: source_of(row) for row in rows if row.options is not None})
    return found


def damaged_sources(connection: Connection, source_ids: Sequence[str]) -> list[str]:
    """Return those of ``source_ids`` whose rows exist and cannot be read."""
    columns = (source.c.source_id, source.c.options)
    found: list[str] = []
    for some in chunks(list(source_ids)):
        rows = connection.execute(select(*columns).where(source.c.source_id.in_(some)))
        found += [row.source_id for row in rows if row.options is None]
    return found


def at_address(connection: Connection, kind: SourceKind, hashes: Sequence[str]) -> dict[str, Source]:
    """Return the sources of a kind by the hashes of their addresses."""
    found: dict[str, Source] = {}
    for some in chunks(list(hashes)):
        rows = connection.execute(select(source).where(source.c.kind == kind.value, source.c.url_hash.in_(some)))
        found.update({row.url_hash: source_of(row) for row in rows})
    return found


def move_source(connection: Connection, moved: Source, url: str, now: int) -> Source | None:
    """Set the address a source has permanently moved to; if another source has it, return that one and change nothing.

    The id is kept, because it is the key of the source's history.
    """
    target = Source(moved.source_id, moved.kind, url, options=moved.options)
    other = at_address(connection, moved.kind, [address_hash(target)]).get(address_hash(target))
    if other is None:
        values = {"url": url, "url_hash": address_hash(target), "host": host_of(url)[:255]}
        update_source(connection, moved.source_id, values, now)
    return other if other is not None and other.source_id != moved.source_id else None


def find_source(connection: Connection, given: str) -> Source | None:
    """Return the source with the given id, address, title or prefix of an id; None unless there is exactly one."""
    exact = (source.c.source_id == given) | (source.c.title == given) | (source.c.url_hash == digest(given + chr(31)))
    for condition in (exact, source.c.source_id.startswith(given, autoescape=True)):
        rows = connection.execute(select(source).where(condition).limit(2)).all()
        if len(rows) == 1:
            return source_of(rows[0])
    return None


def all_sources(connection: Connection) -> list[Source]:
    """Return every source, by title and id."""
    return [source_of(row) for row in connection.execute(select(source).order_by(source.c.title, source.c.source_id))]


def hosts_of_active(connection: Connection) -> dict[str, str]:
    """Return the host of every polled source, by source id."""
    query = (
        select(source.c.source_id, source.c.host)
        .join_from(source, stats, source.c.source_id == stats.c.source_id)
        .where(source.c.state == SourceState.ACTIVE.value)
        .order_by(source.c.source_id)
    )
    return {row.source_id: row.host for row in connection.execute(query)}


def gaps(connection: Connection, limit: int) -> list[tuple[str, str, str, Gap]]:
    """Return active sources of which something remained unread: id, title or address, host, gap."""
    columns = (source.c.source_id, source.c.title, source.c.url, source.c.host, source.c.gap)
    query = select(*columns).where(source.c.state == SourceState.ACTIVE.value, source.c.gap.is_not(None))
    rows = connection.execute(query.order_by(source.c.source_id).limit(limit))
    found = ((row.source_id, row.title or row.url, row.host, Gap.from_json(row.gap)) for row in rows)
    return [(source_id, title, host, gap) for source_id, title, host, gap in found if gap is not None]
