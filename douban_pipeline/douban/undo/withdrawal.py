"""Decisions that were recorded and not carried out yet: who takes a batch back means them too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import ColumnElement, Connection, RowMapping, select, update

from douban_pipeline.core.database import chunks, run_transaction
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionState, TaskStatus
from douban_pipeline.douban.writes.revert_selection import Selection


def waiting_decisions(services: Services, connection: Connection, selection: Selection) -> list[RowMapping]:
    """Return the decisions of ``selection`` that still wait for a run, or for the task that was queued for them.

    Only where decisions are meant: by their batch, their keys or their reviewer, and by nothing that only a write has.
    """
    of_decisions = selection.batch_id or selection.decision_ids or selection.reviewer
    of_writes = selection.change_ids or selection.run_id or selection.rule_version
    if of_writes or not of_decisions:
        return []
    decision = services.tables.decision
    conditions: list[ColumnElement[bool]] = [decision.c.state.in_([DecisionState.PENDING, DecisionState.QUEUED])]
    if selection.batch_id:
        conditions.append(decision.c.batch_id == selection.batch_id)
    if selection.reviewer:
        conditions.append(decision.c.reviewer == selection.reviewer)
    if selection.since is not None:
        conditions.append(decision.c.created_at >= selection.since)
    if selection.until is not None:
        conditions.append(decision.c.created_at < selection.until)
    rows = connection.execute(select(decision).where(*conditions).order_by(decision.c.decision_id)).mappings().all()
    keys, videos = set(selection.decision_ids), set(selection.vod_ids)
    return [row for row in rows if (not keys or row["decision_id"] in keys) and (not videos or row["vod_id"] in videos)]


def withdraw(
    services: Services, decisions: Sequence[RowMapping], *, operator: str, reason: str, run_id: str
) -> list[RowMapping]:
    """Withdraw decisions that still wait; return those that a run was not quicker to carry out."""
    table, task = services.tables.decision, services.tables.task
    queue = services.queue(run_id)
    why = f"尚未执行即由 {operator} 撤回：{reason}"[:500]

    def withdraw_one(connection: Connection, row: RowMapping) -> bool:
        this = (table.c.decision_id == row["decision_id"], table.c.state == row["state"])
        if row["state"] == DecisionState.QUEUED:
            idle = (task.c.task_id == row["task_id"], task.c.status == TaskStatus.PENDING)
            # Locked until the end: a run that leased the task in between would write all the same.
            if connection.execute(select(task.c.task_id).where(*idle).with_for_update()).first() is None:
                return False
            queue.cancel(connection, row["task_id"], why)
        settled = {"state": DecisionState.REFUSED, "state_reason": why, "pending_key": None}
        done = connection.execute(update(table).where(*this).values(**settled, settled_at=services.clock.now()))
        return bool(done.rowcount) or row["state"] == DecisionState.QUEUED

    def withdraw_some(connection: Connection, rows: Sequence[RowMapping]) -> list[RowMapping]:
        return [row for row in rows if withdraw_one(connection, row)]

    withdrawn: list[RowMapping] = []
    for chunk in chunks(decisions):
        withdrawn += run_transaction(services.engine, partial(withdraw_some, rows=chunk))
    return withdrawn
