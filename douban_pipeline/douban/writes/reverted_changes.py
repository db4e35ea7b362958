"""Reverted changes in the change log: which are marked so, and the values that people reverted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, or_, select, update

from douban_pipeline.douban.store import decisions
from douban_pipeline.douban.store.states import ChangeState, DecisionAction
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes import intro_changes
from douban_pipeline.douban.writes.changes import decode
from douban_pipeline.douban.writes.intro_changes import INTRO

_IN_PART = "部分列已撤销"


def undone_values(connection: Connection, tables: OwnTables, vod_ids: Sequence[int]) -> dict[int, dict[str, list[Any]]]:
    """Return, by video and column, the values that people reverted: automation must not write them again."""
    log = tables.log
    query = select(log.c.vod_id, log.c.old_values).where(
        log.c.vod_id.in_(vod_ids),
        or_(log.c.reverts_change_id.is_not(None), log.c.action == DecisionAction.clear_id),
        log.c.state == ChangeState.APPLIED,
    )
    undone: dict[int, dict[str, list[Any]]] = {}
    for vod_id, values in connection.execute(query):
        for column, value in decode(values).items():
            undone.setdefault(vod_id, {}).setdefault(column, []).append(value)
    return undone


def mark_reverted(connection: Connection, tables: OwnTables, restored: Mapping[int, Collection[str]]) -> None:
    """Mark changes as reverted; those that they had themselves reverted are applied again, and so on down the line.

    One of which only some columns could be restored stays applied: the others may be reverted later.

    Args:
        connection: A transaction.
        tables: Our tables.
        restored: The columns that were restored, by change.
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
    """Return the columns that a change wrote; none for a lock that only recorded a text."""
    return {column for column, value in row.new_values.items() if row.old_values.get(column) != value}
