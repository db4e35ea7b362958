"""What the change log last wrote into the columns of videos: the value, by which change, and the value before.

A change that was reverted was written all the same, and so was the one that reverted it: the newest of both counts.
One that is under way, or whose outcome is unknown, leaves its columns unsure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, String, func, or_, select, type_coerce

from douban_pipeline.douban.store.states import ChangeState, DecisionAction, IntroState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.changes import decode
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS

_WRITTEN = (ChangeState.APPLIED, ChangeState.REVERTED)
_UNSURE = (ChangeState.PREPARED, ChangeState.CONFLICT)


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The newest write of one column.

    Attributes:
        value: What was written; what was noted, if a lock only noted the value it found.
        noted: Whether it was only noted.
        before: The values before this and earlier writes, of those that were read.
    """

    change_id: int
    action: str
    operator: str
    at: datetime
    value: Any
    noted: bool = False
    before: tuple[Any, ...] = ()


@dataclass(slots=True)
class LastWrites:
    """The newest write of each column of one video, and the columns whose writer is uncertain.

    Attributes:
        under_way: Those of the unsure ones that a run may be writing right now.
    """

    by_column: dict[str, LastWrite] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    under_way: set[str] = field(default_factory=set)


def first_change_since(connection: Connection, tables: OwnTables, since: datetime) -> int | None:
    """Return the first change written from ``since`` on, None for none; changes are numbered as they come."""
    log = tables.log
    written = log.c.state.in_((*_WRITTEN, *_UNSURE))
    query = select(func.min(log.c.change_id)).where(written, log.c.prepared_at >= since)
    return connection.execute(query).scalar()


def new_values_since(
    connection: Connection, tables: OwnTables, vod_ids: Collection[int], first: int
) -> dict[int, LastWrites]:
    """Return the newest writes from the change ``first`` on, without the values before: enough to see a difference."""
    log = tables.log
    query = _written(tables, log.c.new_values).where(log.c.vod_id.in_(vod_ids), log.c.change_id >= first)
    return _newest(connection.execute(query.order_by(log.c.change_id)).mappings())


def locked_texts(connection: Connection, tables: OwnTables, vod_ids: Collection[int]) -> dict[int, LastWrites]:
    """Return what intros and people's locks wrote or noted of the synopses of videos, however long ago.

    These are found by keys of their own, for a video may have been synced a hundred times since. What cannot be found
    so is looked for in the whole history. Enough to see a difference; `full_writes` has the last word.
    """
    log, intro, decision = tables.log, tables.intro, tables.decision
    newest = (
        select(func.max(intro.c.change_id))
        .where(intro.c.vod_id.in_(vod_ids), intro.c.state == IntroState.WRITTEN, intro.c.change_id.is_not(None))
        .group_by(intro.c.vod_id)
    )
    locks = select(log.c.change_id).where(
        log.c.decision_id.in_(
            select(decision.c.decision_id).where(
                decision.c.vod_id.in_(vod_ids), decision.c.action == DecisionAction.lock_intro
            )
        )
    )
    change_ids = [*connection.execute(newest).scalars(), *connection.execute(locks).scalars()]
    query = _written(tables, log.c.new_values).where(log.c.change_id.in_(change_ids))
    found = _newest(connection.execute(query.order_by(log.c.change_id)).mappings())
    missing = [vod_id for vod_id in vod_ids if vod_id not in found]
    if missing:
        texts = or_(*(_writes(tables, column) for column in sorted(SYNOPSIS_COLUMNS)))
        query = _written(tables, log.c.new_values).where(log.c.vod_id.in_(missing), texts)
        found |= _newest(connection.execute(query.order_by(log.c.change_id)).mappings())
    return found


def full_writes(
    connection: Connection, tables: OwnTables, columns: Mapping[int, Collection[str]], first: int | None
) -> dict[int, LastWrites]:
    """Return the newest writes of some columns of videos with all that is known of them.

    Args:
        connection: Database.
        tables: Our tables.
        columns: The columns in question, by video; the id and the synopsis are looked for however long ago.
        first: Of the other columns, the first change that matters.
    """
    log = tables.log
    matters: list[ColumnElement[bool]] = [
        _writes(tables, column) for column in sorted(SYNOPSIS_COLUMNS | {"vod_douban_id"})
    ]
    if first is not None:
        matters.append(log.c.change_id >= first)
    query = _written(tables, log.c.new_values, log.c.old_values).where(log.c.vod_id.in_(list(columns)), or_(*matters))
    found = _newest(connection.execute(query.order_by(log.c.change_id)).mappings(), columns)
    return {vod_id: found.get(vod_id, LastWrites()) for vod_id in columns}


def _written(tables: OwnTables, *values: ColumnElement[Any]) -> Select[Any]:
    log = tables.log
    facts = (log.c.change_id, log.c.vod_id, log.c.action, log.c.operator, log.c.state, log.c.applied_at)
    return select(*facts, *values).where(log.c.state.in_((*_WRITTEN, *_UNSURE)))


def _writes(tables: OwnTables, column: str) -> ColumnElement[bool]:
    return type_coerce(tables.log.c.new_values, String).contains(f'"{column}":')


def _newest(rows: Iterable[Any], columns: Mapping[int, Collection[str]] | None = None) -> dict[int, LastWrites]:
    """Return the newest writes of ``rows``, which come the oldest first."""
    found: dict[int, LastWrites] = {}
    for row in rows:
        last = found.setdefault(row["vod_id"], LastWrites())
        old = decode(row["old_values"]) if "old_values" in row else None
        for column, value in decode(row["new_values"]).items():
            if columns is not None and column not in columns[row["vod_id"]]:
                continue
            if row["state"] in _UNSURE:
                last.unsure.add(column)
                if row["state"] == ChangeState.PREPARED:
                    last.under_way.add(column)
                continue
            last.unsure.discard(column)
            known = last.by_column.get(column)
            before, noted = known.before if known else (), False
            if old is not None and column in old:
                noted = old[column] == value
                before = before if noted else (*before, old[column])
            last.by_column[column] = LastWrite(
                row["change_id"], row["action"], row["operator"], row["applied_at"], value, noted, before
            )
    return found
