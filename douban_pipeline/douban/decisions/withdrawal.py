"""Reverting what decisions wrote, and withdrawing decisions that still wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, Connection, RowMapping, select, update

from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionState, TaskStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.revert import ChangeSelection, RevertedChange, revert


@dataclass(frozen=True, slots=True)
class RevertedSelection:
    """What was reverted and withdrawn, or would be in a dry run.

    Attributes:
        changes: The selected changes, the newest first.
        decisions: The decisions that still waited.
    """

    changes: Sequence[RevertedChange]
    decisions: Sequence[RowMapping]


def revert_and_withdraw(
    services: Services,
    change_log: ChangeLog,
    selection: ChangeSelection,
    *,
    operator: str,
    reason: str,
    dry_run: bool,
    override_cms_lock: bool = False,
    most: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RevertedSelection:
    """Revert the changes of a selection, then withdraw the decisions of it that still wait.

    Args:
        services: Database and time.
        change_log: The log to write through; its run and batch name what is written.
        selection: Which changes and decisions.
        operator: Who reverts them.
        reason: Why, in a sentence.
        dry_run: Return what would happen, and write nothing.
        override_cms_lock: Also write to rows that the site locked.
        most: Maximum number of selected changes.
        progress: Called with the number of completed changes and of all selected ones.

    Raises:
        TooManyError: More than ``most`` changes are selected; nothing was reverted.
    """
    # What a killed run left half way is settled first, or this would take it for somebody else's doing.
    change_log.reconcile()
    changes = revert(
        change_log,
        selection,
        operator=operator,
        reason=reason,
        dry_run=dry_run,
        override_cms_lock=override_cms_lock,
        most=most,
        progress=progress,
    )
    with reading(services.engine) as connection:
        waiting = waiting_decisions(services.tables, connection, selection)
    if not dry_run:
        waiting = _withdraw(services, waiting, operator=operator, reason=reason, run_id=change_log.run_id)
    return RevertedSelection(changes, waiting)


def waiting_decisions(tables: OwnTables, connection: Connection, selection: ChangeSelection) -> list[RowMapping]:
    """Return the decisions of ``selection`` that still wait for a run, or for the task that was queued for them.

    Only where decisions are meant: by their batch, their keys or their reviewer, and by nothing that only a write has.
    """
    of_decisions = selection.batch_id or selection.decision_ids or selection.reviewer
    of_intros = selection.intro_reader or selection.intro_prompt or selection.intro_model
    of_writes = selection.change_ids or selection.run_id or selection.rule_version or of_intros
    if of_writes or not of_decisions:
        return []
    decision = tables.decision
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


def _withdraw(
    services: Services, decisions: Sequence[RowMapping], *, operator: str, reason: str, run_id: str
) -> list[RowMapping]:
    """Withdraw decisions that still wait; return those that no run applied first."""
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
