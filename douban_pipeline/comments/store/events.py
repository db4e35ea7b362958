"""Event queue of sections: the request writes a row, a worker applies it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, select, update

from douban_pipeline.comments.store import tables
from douban_pipeline.comments.types import Actor, EventKind, EventState, shard_of
from douban_pipeline.core.database import chunks, insert_missing

UNEXPECTED = "无法处理"
"""Beginning of the refusal of an event that no rule refused: it cannot be applied."""


@dataclass(frozen=True, slots=True)
class EventInput:
    """An event to be queued.

    Attributes:
        request_key: Idempotency key: the same key twice is one event; at most 64 characters.
        comment_id: Comment that it is about; 0 for the section.
    """

    section_id: int
    kind: EventKind
    actor: Actor
    request_key: str
    comment_id: int = 0
    payload: Mapping[str, Any] = field(default_factory=dict)


def append(connection: Connection, given: Sequence[EventInput], now: datetime) -> None:
    """Queue events in this order, in the caller's transaction; events whose request key exists already are skipped."""
    insert_missing(connection, tables.event, [_row(item, now) for item in given], key="request_key")


def _row(item: EventInput, now: datetime) -> dict[str, Any]:
    return {
        "shard": shard_of(item.section_id),
        "section_id": item.section_id,
        "kind": item.kind,
        "comment_id": item.comment_id,
        "actor": item.actor.key,
        "user_id": item.actor.user_id,
        "actor_rank": item.actor.rank,
        "payload": dict(item.payload),
        "request_key": item.request_key,
        "created_at": now,
    }


def waiting_shards(connection: Connection, shards: Iterable[int]) -> list[int]:
    """Return those of ``shards`` that have pending events."""
    query = (
        select(tables.event.c.shard)
        .where(tables.event.c.state == EventState.PENDING, tables.event.c.shard.in_(sorted(shards)))
        .distinct()
    )
    return sorted(connection.execute(query).scalars())


def unfinished(connection: Connection, shards: Iterable[int], most: int = 1000) -> list[RowMapping]:
    """Return events that are applied but may not have been passed to caches, oldest first."""
    query = (
        select(tables.event)
        .where(tables.event.c.state == EventState.APPLIED, tables.event.c.shard.in_(sorted(shards)))
        .order_by(tables.event.c.event_id)
        .limit(most)
    )
    return list(connection.execute(query).mappings())


def outcome_of(connection: Connection, comment_id: int, actor: str) -> tuple[EventState, str] | None:
    """Return what became of the last text that an actor sent for a comment: its state and its refusal.

    None where the actor sent none.
    """
    c = tables.event.c
    texts = (EventKind.PUBLISH, EventKind.EDIT)
    query = select(c.state, c.refusal).where(c.comment_id == comment_id, c.actor == actor, c.kind.in_(texts))
    row = connection.execute(query.order_by(c.event_id.desc()).limit(1)).one_or_none()
    return None if row is None else (EventState(row.state), row.refusal)


def pending_about(connection: Connection, ids: Collection[int]) -> set[int]:
    """Return those of the comments about which an event waits to be applied."""
    found: set[int] = set()
    for part in chunks(sorted(ids)):
        c = tables.event.c
        query = select(c.comment_id).where(c.comment_id.in_(part), c.state == EventState.PENDING)
        found.update(connection.execute(query).scalars())
    return found


def finish(connection: Connection, events: Sequence[int]) -> None:
    """Mark events as passed to caches."""
    for part in chunks(events):
        connection.execute(
            update(tables.event).where(tables.event.c.event_id.in_(part)), {"state": EventState.FINISHED}
        )


def of_requests(connection: Connection, keys: Collection[str]) -> dict[str, Row[Any]]:
    """Return section, comment and payload of each request's event, by request key; unknown keys are missing."""
    columns = ("request_key", "section_id", "comment_id", "payload")
    query = select(*(tables.event.c[name] for name in columns))
    return {
        row.request_key: row
        for part in chunks(sorted(keys))
        for row in connection.execute(query.where(tables.event.c.request_key.in_(part)))
    }


def oldest_pending(connection: Connection) -> datetime | None:
    """Return the creation time of the oldest pending event; None if none is pending."""
    query = (
        select(tables.event.c.created_at)
        .where(tables.event.c.state == EventState.PENDING)
        .order_by(tables.event.c.event_id)
        .limit(1)
    )
    return connection.execute(query).scalar()
