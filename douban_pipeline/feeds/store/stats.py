"""`source_stats`: each source's publishing statistics and due time; the only module that changes them.

Functions take a SQLAlchemy connection and leave the transaction to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite

from douban_pipeline.core.database import chunks
from douban_pipeline.core.leases import Leases
from douban_pipeline.feeds.store import polls
from douban_pipeline.feeds.store.tables import NEVER_DUE, entry, source, stats
from douban_pipeline.feeds.types import SourceState

DAY = 86_400
_OFTEN = 50
"""Polls after which it can be said that a source yields little."""
_BATCH = 500

LEASES = Leases(stats.c.source_id, stats.c.lease_token, stats.c.lease_until)
"""Leases of sources; the owner is a token, unique to each claim."""

_one = stats.c.source_id == bindparam("of")
# Built once: every poll uses them, and building a statement costs more than sending it.
_READ = select(stats).where(_one)
_LOCKED = _READ.with_for_update()
_WRITE = update(stats).where(_one)
_PUBLICATIONS = (
    select(
        entry.c.published_at,
        func.max(entry.c.entry_id).label("entry_id"),
        func.max(entry.c.title).label("title"),
        func.count().label("entries"),
    )
    .where(entry.c.source_id == bindparam("of"))
    .group_by(entry.c.published_at)
    .order_by(entry.c.published_at.desc())
    .limit(bindparam("most"))
)
_MOMENTS = (
    select(entry.c.published_at)
    .where(entry.c.source_id == bindparam("of"))
    .group_by(entry.c.published_at)
    .order_by(entry.c.published_at.desc())
    .limit(bindparam("most"))
)
_NEWEST = select(func.max(entry.c.published_at)).where(entry.c.source_id == bindparam("of"))
_TYPE = select(stats.c.source_type).where(_one)
_MANUAL = select(source.c.manual_cadence).where(source.c.source_id == bindparam("of"))


def read_stats(connection: Connection, source_id: str) -> dict[str, Any] | None:
    """Return the row of a source in `source_stats`, or None."""
    row = connection.execute(_READ, {"of": source_id}).first()
    return None if row is None else dict(row._mapping)


def lock_stats(connection: Connection, source_id: str) -> dict[str, Any] | None:
    """Return the same as `read_stats`, and lock the row until the transaction ends."""
    row = connection.execute(_LOCKED, {"of": source_id}).first()
    return None if row is None else dict(row._mapping)


def type_of(connection: Connection, source_id: str) -> str | None:
    """Return the type of a source; None if it has no statistics."""
    return connection.execute(_TYPE, {"of": source_id}).scalar()


def distinct_publications(connection: Connection, source_id: str, limit: int) -> list[dict[str, Any]]:
    """Return the newest entries of a source, one per second: entries of one push are one publication."""
    found = connection.execute(_PUBLICATIONS, {"of": source_id, "most": limit})
    return [dict(row._mapping) for row in found]


def publication_moments(connection: Connection, source_id: str, limit: int) -> list[int]:
    """Return the newest publication times of a source, each once, the newest first."""
    return list(connection.execute(_MOMENTS, {"of": source_id, "most": limit}).scalars())


def newest_publication(connection: Connection, source_id: str) -> int:
    """Return a source's last publication time; 0 if there is none."""
    return int(connection.execute(_NEWEST, {"of": source_id}).scalar() or 0)


def create_stats(connection: Connection, source_id: str, source_type: str, now: int) -> None:
    """Create the row of a source that has none; one that a concurrent transaction created stays."""
    new = {"source_id": source_id, "source_type": source_type, "frequency_type": "daily", "cadence": "P2"}
    values = {**new, "created_at": now, "updated_at": now}
    if connection.dialect.name in ("mysql", "mariadb"):
        connection.execute(mysql.insert(stats).values(values).prefix_with("IGNORE"))
        return
    own = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(own.insert(stats).values(values).on_conflict_do_nothing(index_elements=["source_id"]))


def write_stats(connection: Connection, source_id: str, values: Mapping[str, Any]) -> None:
    """Set columns of a source's row."""
    connection.execute(_WRITE, {"of": source_id, **values})


def add_stats(connection: Connection, rows: Sequence[tuple[str, str, int]], now: int) -> None:
    """Create the rows of new sources, each with its type and first due time."""
    new = [
        {
            "source_id": source_id,
            "source_type": source_type,
            "next_due_at": due_at,
            "created_at": now,
            "updated_at": now,
            "lease_until": 0,
        }
        for source_id, source_type, due_at in rows
    ]
    if new:
        connection.execute(insert(stats), new)


_LONGEST_DUE = (stats.c.next_due_at, stats.c.source_id)


def _due(now: int) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that a source is due and not in back-off."""
    return (stats.c.next_due_at <= now, stats.c.backoff_until <= now)


def due_rows(connection: Connection, now: int, source_type: str | None, limit: int) -> list[dict[str, Any]]:
    """Return due sources, longest due first: not in back-off, and not leased."""
    where = [*_due(now), LEASES.free(now)]
    if source_type is not None:
        where.append(stats.c.source_type == source_type)
    query = select(stats).where(*where).order_by(*_LONGEST_DUE).limit(limit)
    return [dict(row._mapping) for row in connection.execute(query)]


def count_due(connection: Connection, now: int, most: int | None = None) -> tuple[int, int | None]:
    """Return the number of due sources, and since when the longest one is due.

    Args:
        connection: A connection.
        now: The current time.
        most: Where to stop counting, so that the time does not grow with the number of sources; None counts all.
    """
    where = (*_due(now), LEASES.free(now))
    due = select(stats.c.next_due_at).where(*where).order_by(stats.c.next_due_at).limit(most).subquery()
    row = connection.execute(select(func.count(), func.min(due.c.next_due_at))).one()
    return int(row[0]), row[1]


def in_back_off(connection: Connection, after: int) -> set[str]:
    """Return the sources that are in back-off until after a moment."""
    return set(connection.execute(select(stats.c.source_id).where(stats.c.backoff_until > after)).scalars())


def next_due(connection: Connection) -> int | None:
    """Return when the next source becomes due; None if there is none."""
    query = select(func.min(stats.c.next_due_at)).where(stats.c.next_due_at < NEVER_DUE)
    return connection.execute(query).scalar()


def claim(
    connection: Connection, now: int, token: str, lease_seconds: int, limit: int, only: Sequence[str] = ()
) -> list[str]:
    """Lease due sources to ``token`` and return their ids, longest due first.

    Args:
        connection: A connection in a transaction.
        now: The current time.
        token: Unique to this claim.
        lease_seconds: Time after which the source of an unfinished poll is due again.
        limit: Maximum number.
        only: Sources to claim whether they are due or not; empty means all that are due.
    """
    until = now + lease_seconds
    if only:
        rows = LEASES.take(connection, token, only, now=now, until=until)
    else:
        rows = LEASES.claim(
            connection, token, now=now, until=until, where=_due(now), order_by=_LONGEST_DUE, limit=limit
        )
    return [row.source_id for row in rows]


def release(connection: Connection, source_ids: Sequence[str], token: str, due_at: int | None = None) -> None:
    """Release leases that still belong to ``token``; the sources are due as before, or at ``due_at``."""
    LEASES.put_back(connection, token, source_ids, {} if due_at is None else {"next_due_at": due_at})


def set_aside(connection: Connection, source_ids: Sequence[str], error: str, kind: str, due_at: int) -> None:
    """Note why sources that cannot be read are not polled until ``due_at``, as often as a person is told of."""
    values = {"last_error": error, "error_kind": kind, "fail_count": 3, "next_due_at": due_at}
    for some in chunks(list(source_ids), _BATCH):
        connection.execute(update(stats).where(stats.c.source_id.in_(some)).values(**values, **LEASES.freed))


def correct_clock(connection: Connection, now: int, lease_seconds: int) -> int:
    """Correct rows written while the clock was ahead of ``now`` by more than any wait, or without a value that every
    row has; return how many. It reads every row, without locks; see `clock_went_back` for when.

    Polls and back-offs are at most a day ahead (a longer `Retry-After` is not honoured), leases at most their length.
    """
    latest = now + DAY + 60
    wanted = (stats.c.next_due_at, stats.c.backoff_until, stats.c.last_check_at, stats.c.last_article_at)
    counters = (stats.c.fail_count, stats.c.check_count, stats.c.hit_count)
    ahead = or_(
        *(column.is_(None) for column in (*wanted, *counters)),
        *(column < 0 for column in counters),
        and_(stats.c.next_due_at > latest + 6 * DAY, stats.c.next_due_at != NEVER_DUE),
        stats.c.backoff_until > latest,
        stats.c.lease_until > now + max(lease_seconds, 3600),
        stats.c.last_check_at > now + 300,
    )
    mend = update(stats).values(
        next_due_at=case((stats.c.next_due_at == NEVER_DUE, NEVER_DUE), else_=now),
        backoff_until=case((stats.c.backoff_until > latest, 0), else_=func.coalesce(stats.c.backoff_until, 0)),
        **LEASES.freed,
        last_check_at=case((stats.c.last_check_at > now, now), else_=func.coalesce(stats.c.last_check_at, 0)),
        last_article_at=func.coalesce(stats.c.last_article_at, 0),
        **{column.name: case((column > 0, column), else_=0) for column in counters},
    )
    ids = list(connection.execute(select(stats.c.source_id).where(ahead)).scalars())
    return sum(
        connection.execute(mend.where(stats.c.source_id.in_(some), ahead)).rowcount for some in chunks(ids, _BATCH)
    )


_CLOCK = "clock"
_CLOCK_BACK = 300
"""Seconds by which clocks of several machines may differ."""


def clock_went_back(connection: Connection, now: int) -> bool:
    """Return whether an earlier run saw a later time than ``now``, or no run noted one; note the time of this one.

    Called before anything is written, so that what a wrong clock wrote is always found; one row is read and written.
    """
    seen = polls.read_plan(connection, _CLOCK)
    back = seen is None or seen["at"] > now + _CLOCK_BACK
    if seen is None or back or seen["at"] < now:
        polls.write_plan(connection, _CLOCK, {}, now)
    return back


def overall(connection: Connection, source_type: str | None, now: int) -> dict[str, Any]:
    """Return figures over all sources, or those of one type."""
    where = [stats.c.source_type == source_type] if source_type is not None else []
    polled = stats.c.next_due_at < NEVER_DUE
    row = connection.execute(
        select(
            func.count().label("total"),
            func.coalesce(func.sum(stats.c.check_count), 0).label("checks"),
            func.coalesce(func.sum(stats.c.hit_count), 0).label("hits"),
            _number_of(polled).label("active"),
            _number_of(and_(polled, stats.c.next_due_at <= now, stats.c.backoff_until <= now)).label("due"),
            _number_of(stats.c.backoff_until > now).label("in_backoff"),
            _number_of(stats.c.fail_count > 0).label("failing"),
        ).where(*where)
    ).one()
    found = {name: int(value) for name, value in row._mapping.items()}
    return {**found, "by_cadence": _groups(connection, stats.c.cadence, where)}


def _number_of(condition: Any) -> Any:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _groups(connection: Connection, column: Any, where: Sequence[Any]) -> dict[str, int]:
    query = select(column, func.count()).where(*where).group_by(column).order_by(column)
    return {str(name): int(count) for name, count in connection.execute(query)}


_WITH_SOURCE = select(
    source, *(column for column in stats.c if column.name not in ("source_id", "created_at", "updated_at"))
)


def most_failing(connection: Connection, limit: int) -> Sequence[Row[Any]]:
    """Return the active sources with the most failures in a row, with their statistics."""
    query = _WITH_SOURCE.join_from(source, stats, source.c.source_id == stats.c.source_id)
    query = query.where(source.c.state == SourceState.ACTIVE.value, stats.c.fail_count > 0)
    return connection.execute(query.order_by(stats.c.fail_count.desc(), stats.c.source_id).limit(limit)).all()


def least_useful(connection: Connection, limit: int) -> Sequence[Row[Any]]:
    """Return the active sources whose polls found least, of those that were polled often and do not fail."""
    query = _WITH_SOURCE.join_from(source, stats, source.c.source_id == stats.c.source_id)
    query = query.where(source.c.state == SourceState.ACTIVE.value, stats.c.fail_count == 0)
    query = query.where(stats.c.check_count >= _OFTEN)
    order = (stats.c.hit_count * 1.0 / stats.c.check_count, stats.c.check_count.desc(), stats.c.source_id)
    return connection.execute(query.order_by(*order).limit(limit)).all()


def manual_cadence(connection: Connection, source_id: str) -> str | None:
    """Return the cadence that a person set for a source, or None if the source was not added by a person."""
    return connection.execute(_MANUAL, {"of": source_id}).scalar()


def with_sources(
    connection: Connection, after: str = "", limit: int = _BATCH, source_ids: Sequence[str] = ()
) -> Sequence[Row[Any]]:
    """Return sources with their statistics, by id: those after the id ``after``, or those named."""
    columns = [column for column in stats.c if column.name not in ("source_id", "created_at", "updated_at")]
    query = select(source, *columns).join_from(source, stats, source.c.source_id == stats.c.source_id)
    query = query.where(source.c.source_id.in_(source_ids)) if source_ids else query.where(source.c.source_id > after)
    return connection.execute(query.order_by(source.c.source_id).limit(limit)).all()
