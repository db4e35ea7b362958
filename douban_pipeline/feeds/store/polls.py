"""Single polls, for plots and checks; counts of cadences over time; and the budget's plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, case, delete, func, insert, select, update

from douban_pipeline.feeds.store.tables import cadence_count, plan, poll
from douban_pipeline.feeds.types import PollOutcome, PollRecord

HOUR = 3600
_ADD = insert(poll)


def add_poll(connection: Connection, done: PollRecord) -> None:
    """Store one poll."""
    connection.execute(
        _ADD,
        {
            "source_id": done.source_id,
            "host": done.host[:255],
            "at": done.at,
            "outcome": done.outcome.value,
            "status": done.status,
            "new": done.new,
            "updated": done.updated,
            "delay": done.delay,
            "duration_ms": done.duration_ms,
            "error": done.error[:500],
        },
    )


def made_between(connection: Connection, start: int, end: int) -> tuple[int, int]:
    """Return the number of polls made from ``start`` to before ``end``, and how many of them failed."""
    failed = func.sum(case((poll.c.outcome == PollOutcome.FAILED.value, 1), else_=0))
    made = poll.c.outcome != PollOutcome.DEFERRED.value
    query = select(func.count(), func.coalesce(failed, 0)).where(poll.c.at >= start, poll.c.at < end, made)
    row = connection.execute(query).one()
    return int(row[0]), int(row[1])


def first_since(connection: Connection, since: int) -> int | None:
    """Return the time of the first poll since a moment; None if there is none."""
    return connection.execute(select(func.min(poll.c.at)).where(poll.c.at >= since)).scalar()


def requests_by_minute(connection: Connection, since: int) -> list[tuple[str, int, int]]:
    """Return the busiest minute of every host since a moment: host, minute, requests."""
    minute = (poll.c.at - poll.c.at % 60).label("minute")
    asked = poll.c.outcome != PollOutcome.DEFERRED.value
    query = select(poll.c.host, minute, func.count().label("requests")).where(poll.c.at >= since, asked)
    counts = query.group_by(poll.c.host, minute).subquery()
    busiest = select(counts.c.host, func.max(counts.c.minute), func.max(counts.c.requests)).group_by(counts.c.host)
    return [(row[0], int(row[1]), int(row[2])) for row in connection.execute(busiest)]


def outcomes_of(connection: Connection, source_id: str, limit: int) -> list[dict[str, Any]]:
    """Return the last polls of a source, newest first."""
    query = select(poll).where(poll.c.source_id == source_id).order_by(poll.c.at.desc(), poll.c.poll_id.desc())
    return [dict(row._mapping) for row in connection.execute(query.limit(limit))]


def count_polls(connection: Connection, before: int) -> int:
    """Return the number of polls before a moment."""
    return connection.execute(select(func.count()).select_from(poll).where(poll.c.at < before)).scalar_one()


def prune_polls(connection: Connection, before: int) -> int:
    """Delete polls before a moment; return how many."""
    connection.execute(delete(cadence_count).where(cadence_count.c.at < before))
    return connection.execute(delete(poll).where(poll.c.at < before)).rowcount


def add_cadences(connection: Connection, at: int, counts: Mapping[str, int]) -> None:
    """Store the number of sources by cadence at a moment; the same second again replaces it."""
    connection.execute(delete(cadence_count).where(cadence_count.c.at == at))
    connection.execute(insert(cadence_count), {"at": at, "counts": dict(counts)})


def write_plan(connection: Connection, name: str, content: Mapping[str, Any], at: int) -> None:
    """Store a plan under a name, replacing the previous one."""
    changed = connection.execute(update(plan).where(plan.c.name == name).values(content=dict(content), at=at))
    if not changed.rowcount:
        connection.execute(insert(plan), {"name": name, "content": dict(content), "at": at})


def read_plan(connection: Connection, name: str) -> dict[str, Any] | None:
    """Return a plan with its time (key ``at``), or None."""
    row = connection.execute(select(plan).where(plan.c.name == name)).first()
    return None if row is None else {**row.content, "at": int(row.at)}
