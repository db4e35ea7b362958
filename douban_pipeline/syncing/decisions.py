"""Carrying out reviewers' decisions, before anything automatic is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, select, update

from douban_pipeline.catalog.change_log import Change, ChangeLog
from douban_pipeline.catalog.database import reading, transactions
from douban_pipeline.catalog.intro_changes import standing_intros
from douban_pipeline.catalog.revert import WITH_ITS_LINK, Selection, revert
from douban_pipeline.catalog.states import (
    ChangeState,
    DecisionAction,
    DecisionState,
    ReviewStatus,
    TaskStage,
    TaskStatus,
    TaskType,
    VerdictState,
)
from douban_pipeline.catalog.tasks import NewTask, TaskQueue
from douban_pipeline.catalog.videos import GONE, state_rows
from douban_pipeline.services import Services

PERSON = "person"
"""Source of an id that a reviewer chose."""

_LINKING = (DecisionAction.confirm_top1, DecisionAction.set_id)


@dataclass(frozen=True, slots=True)
class Carried:
    """A decision that was carried out or refused."""

    decision_id: int
    vod_id: int
    shard: int
    action: str
    douban_id: int
    reviewer: str
    state: DecisionState
    reason: str = ""


def pending_decisions(services: Services, shards: Collection[int]) -> list[RowMapping]:
    """Return the pending decisions about videos of ``shards``, the oldest first."""
    decision = services.tables.decision
    query = (
        select(decision)
        .where(decision.c.state == DecisionState.PENDING, decision.c.shard.in_(shards))
        .order_by(decision.c.decision_id)
    )
    with reading(services.engine) as connection:
        return list(connection.execute(query).mappings())


def let_wait(services: Services, shards: Collection[int], until: datetime) -> int:
    """Let pending decisions about videos of ``shards`` wait (in a dry run); return how many there are."""
    waiting = pending_decisions(services, shards)
    video = services.tables.video
    for transaction in transactions(services.engine):
        with transaction as connection:
            connection.execute(
                update(video)
                .where(video.c.vod_id.in_([decision["vod_id"] for decision in waiting]))
                .values(douban_next_sync_at=until)
            )
    return len(waiting)


def carry_out(services: Services, queue: TaskQueue, change_log: ChangeLog, shards: Collection[int]) -> list[Carried]:
    """Carry out the pending decisions about videos of ``shards`` through the change log.

    A video whose id a person set is queued for its fields to be synced by this run.
    """
    return [_carry_out_one(services, queue, change_log, row) for row in pending_decisions(services, shards)]


def _carry_out_one(services: Services, queue: TaskQueue, change_log: ChangeLog, decision: RowMapping) -> Carried:
    vod_id = decision["vod_id"]
    with reading(services.engine) as connection:
        row = services.cms.rows(connection, [vod_id]).get(vod_id)
        state = state_rows(connection, services.tables, [vod_id]).get(vod_id)
    if row is None or state is None:
        return _settle(services, decision, DecisionState.REFUSED, GONE)
    old, new, wanted = _effect(services, decision, row)
    change = Change(
        vod_id=vod_id,
        action=decision["action"],
        old=old,
        new=new,
        state=wanted,
        operator=decision["reviewer"],
        reason=decision["note"] or "审核决定",
        automatic=False,
        decision_id=decision["decision_id"],
    )
    [outcome] = change_log.write([change])
    if outcome.state is not ChangeState.APPLIED:
        return _settle(services, decision, DecisionState.REFUSED, outcome.reason)
    _requeue(services, queue, change_log.run_id, decision)
    return _settle(services, decision, DecisionState.APPLIED, _withdraw_intros(services, change_log, decision))


def _effect(
    services: Services, decision: RowMapping, row: RowMapping
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return what a decision changes: CMS columns before and after, and our state."""
    now = services.clock.now()
    action = DecisionAction(decision["action"])
    standing = row["vod_douban_id"]
    state: dict[str, Any] = {"douban_next_sync_at": now}
    if decision["lock"] or action is DecisionAction.lock_id:
        state |= {"douban_id_locked": True, "douban_id_lock_time": now}
    target = standing
    if action in _LINKING:
        target = decision["douban_id"]
        state |= _linked(target)
    elif action is DecisionAction.clear_id:
        target = 0
        state |= _unlinked("豆瓣 ID 已由审核员清除")
    elif action is DecisionAction.unlock_id:
        state |= {"douban_id_locked": False, "douban_id_lock_time": None}
    elif action is DecisionAction.rematch:
        status = ReviewStatus.REVIEW if standing else ReviewStatus.NOT_FOUND
        state |= {
            "douban_review_status": status,
            "douban_review_reason": "审核员要求重新匹配",
            "douban_ignore_until": None,
        }
    elif action is DecisionAction.ignore:
        state |= {
            "douban_review_status": ReviewStatus.IGNORED,
            "douban_review_reason": decision["note"] or "审核员选择忽略",
            "douban_ignore_until": None,
            "douban_next_sync_at": None,
        }
    if target == standing:
        return {}, {}, state
    return {"vod_douban_id": standing}, {"vod_douban_id": target}, state


def _linked(douban_id: int) -> dict[str, Any]:
    return {
        "vod_douban_id": douban_id,
        "douban_id_source": PERSON,
        "douban_id_confidence": None,
        "douban_review_status": ReviewStatus.CONFIRMED,
        "douban_review_reason": "",
        "douban_ignore_until": None,
        "douban_sync_fail_count": 0,
    }


def _unlinked(reason: str) -> dict[str, Any]:
    return {
        "vod_douban_id": 0,
        "douban_id_source": "",
        "douban_id_confidence": None,
        "douban_review_status": ReviewStatus.NOT_FOUND,
        "douban_review_reason": reason,
    }


def _requeue(services: Services, queue: TaskQueue, run_id: str, decision: RowMapping) -> None:
    """Close what automation had in hand for the video, and queue the sync that a new link asks for.

    A sync that waits for a closed gate is closed too: the video may be ignored now, or linked to another subject.
    """
    task, verdict = services.tables.task, services.tables.verdict
    reason = "审核决定优先"
    for transaction in transactions(services.engine):
        with transaction as connection:
            in_hand = select(task.c.task_id).where(task.c.vod_id == decision["vod_id"], task.c.open_key.is_not(None))
            for task_id in connection.execute(in_hand).scalars().all():
                queue.finish(connection, task_id, TaskStatus.SKIP, reason)
            connection.execute(
                update(verdict)
                .where(verdict.c.vod_id == decision["vod_id"], verdict.c.state == VerdictState.PENDING)
                .values(state=VerdictState.SUPERSEDED, state_reason=reason)
            )
            if decision["action"] in _LINKING:
                work = NewTask(decision["vod_id"], TaskType.SYNC_DOUBAN, TaskStage.SYNC, priority=1000)
                queue.enqueue(connection, [work], run_id=run_id)


def _withdraw_intros(services: Services, change_log: ChangeLog, decision: RowMapping) -> str:
    """Take back the intros that were told from another subject than the one chosen; return why any was left.

    Asked of what stands, not of what this run changed: a run may die between a decision and this.
    """
    if decision["action"] not in (*_LINKING, DecisionAction.clear_id):
        return ""
    with reading(services.engine) as connection:
        intros = standing_intros(connection, services.tables, [decision["vod_id"]])
    wrong = tuple(intro.change_id for intro in intros if intro.douban_id != decision["douban_id"])
    if not wrong:
        return ""
    results = revert(change_log, Selection(wrong), operator=decision["reviewer"], reason=WITH_ITS_LINK, dry_run=False)
    return "；".join(f"简介（变更 {item.change_id}）未撤销：{item.reason}" for item in results if item.skipped)


def _settle(services: Services, decision: RowMapping, state: DecisionState, reason: str) -> Carried:
    table = services.tables.decision
    for transaction in transactions(services.engine):
        with transaction as connection:
            connection.execute(
                update(table)
                .where(table.c.decision_id == decision["decision_id"])
                .values(state=state, state_reason=reason[:500], pending_key=None, settled_at=services.clock.now())
            )
    return Carried(
        decision["decision_id"],
        decision["vod_id"],
        decision["shard"],
        decision["action"],
        decision["douban_id"],
        decision["reviewer"],
        state,
        reason,
    )
