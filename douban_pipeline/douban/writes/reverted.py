"""Marking changes of the log as taken back, and as standing again once that is taken back too."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Row, select, update

from douban_pipeline.douban.store import decisions
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes import intro_changes
from douban_pipeline.douban.writes.intro_changes import INTRO

_IN_PART = "部分列已撤销"


def mark(connection: Connection, tables: OwnTables, restored: Mapping[int, Collection[str]]) -> None:
    """Mark changes as taken back; what they had themselves taken back stands again, and so on down the line.

    One of which only some columns could be put back stays applied: the others may be taken back later.

    Args:
        connection: A transaction.
        tables: Our tables.
        restored: The columns that were put back, by change.
    """
    if not restored:
        return
    plain = [
        row.change_id
        for row in _rows(connection, tables, restored)
        if _written(row) <= set(restored[row.change_id])
        and row.state == ChangeState.APPLIED
        and row.action != INTRO
        and row.decision_id is None
        and row.reverts_change_id is None
        and not row.state_reason
    ]
    if plain:
        log = tables.log
        connection.execute(update(log).where(log.c.change_id.in_(plain)).values(state=ChangeState.REVERTED))
    for change_id, columns in restored.items():
        if change_id not in plain:
            _mark_one(connection, tables, change_id, set(columns))


def _mark_one(connection: Connection, tables: OwnTables, change_id: int, covered: set[str]) -> None:
    log = tables.log
    undone: int | None = change_id
    state = ChangeState.REVERTED
    while undone is not None:
        this = log.c.change_id == undone
        [row] = _rows(connection, tables, [undone])
        if state is ChangeState.REVERTED and _written(row) - covered:
            connection.execute(update(log).where(this).values(state_reason=_IN_PART))
            return
        note = {"state_reason": ""} if row.state_reason == _IN_PART else {}
        connection.execute(update(log).where(this).values(state=state, **note))
        if row.state == state:
            return
        if row.action == INTRO:
            intro_changes.follow(connection, tables, undone, state)
        if row.decision_id is not None:
            again = state is ChangeState.APPLIED
            decisions.mark_reverted(connection, tables, row.decision_id, row.action, again=again)
        undone, covered = row.reverts_change_id, set(row.new_values)
        state = ChangeState.APPLIED if state is ChangeState.REVERTED else ChangeState.REVERTED


def _rows(connection: Connection, tables: OwnTables, change_ids: Collection[int]) -> list[Row[Any]]:
    log = tables.log
    names = (
        "change_id",
        "action",
        "state",
        "state_reason",
        "decision_id",
        "reverts_change_id",
        "old_values",
        "new_values",
    )
    return list(connection.execute(select(*(log.c[name] for name in names)).where(log.c.change_id.in_(change_ids))))


def _written(row: Row[Any]) -> set[str]:
    """Return the columns that a change wrote; what a lock only noted is none."""
    return {column for column, value in row.new_values.items() if row.old_values.get(column) != value}
