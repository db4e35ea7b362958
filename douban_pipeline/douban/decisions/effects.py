"""What applying a decision changes: columns of the CMS row, our state, and the queue of work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select, update

from douban_pipeline.douban.store.decisions import Aspect, Decision, aspect_of
from douban_pipeline.douban.store.states import (
    DecisionAction,
    IdSource,
    ReviewStatus,
    TaskStage,
    TaskType,
    VerdictState,
)
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import (
    DECISION,
    FRESH,
    NOTE,
    ORDERED_INTRO_PRIORITY,
    ORDERED_PRIORITY,
    OVERRIDE_CMS_LOCK,
    REVIEWER,
    NewTask,
)
from douban_pipeline.douban.store.videos import CLEARED_BY_PERSON, REMATCH_ASKED
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS


@dataclass(frozen=True, slots=True)
class Effect:
    """CMS columns before and after, and columns of our state row; all of them empty if nothing changes."""

    old: Mapping[str, Any] = field(default_factory=dict)
    new: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to write: the decision only queues a task."""
        return not (self.new or self.state)


def effect_of(decision: Decision, row: Mapping[Any, Any], state: Mapping[Any, Any], now: datetime) -> Effect:
    """Return what a decision changes of a video as it is.

    Args:
        decision: The decision.
        row: The CMS row.
        state: Our state row.
        now: The present.
    """
    after = _state_after(decision, row, state, now)
    if decision.locks_id:
        after |= {"douban_id_locked": True, "douban_id_lock_time": now}
    if decision.action is DecisionAction.lock_intro:
        # Old and new alike: the log keeps the text that is locked, for whoever finds another in its place.
        text = {column: row[column] for column in sorted(SYNOPSIS_COLUMNS)}
        return Effect(text, text, after)
    target = target_of(decision, row)
    if target == row["vod_douban_id"]:
        return Effect(state=after)
    return Effect({"vod_douban_id": row["vod_douban_id"]}, {"vod_douban_id": target}, after)


def target_of(decision: Decision, row: Mapping[Any, Any]) -> int:
    """Return the id that the video has in the CMS once a decision is applied; ``row`` is its CMS row."""
    if decision.linking:
        return decision.douban_id
    return 0 if decision.action is DecisionAction.clear_id else int(row["vod_douban_id"])


def _state_after(decision: Decision, row: Mapping[Any, Any], state: Mapping[Any, Any], now: datetime) -> dict[str, Any]:
    match decision.action:
        case DecisionAction.clear_id:
            return {
                "vod_douban_id": 0,
                "douban_id_source": "",
                "douban_id_confidence": None,
                "douban_review_status": ReviewStatus.NOT_FOUND,
                "douban_review_reason": CLEARED_BY_PERSON,
                "douban_ignore_until": None,
                "douban_next_sync_at": now,
            }
        case DecisionAction.ignore:
            until = now + timedelta(days=decision.days) if decision.days else None
            return {
                "douban_review_status": ReviewStatus.IGNORED,
                "douban_review_reason": decision.note or "审核员选择忽略",
                "douban_ignore_until": until,
                "douban_next_sync_at": until,
            }
        case DecisionAction.rematch:
            return {
                "douban_review_status": _status_to_rematch(row, state),
                "douban_review_reason": REMATCH_ASKED,
                "douban_ignore_until": None,
                "douban_next_sync_at": now,
            }
        case DecisionAction.unlock_id:
            return {"douban_id_locked": False, "douban_id_lock_time": None, **_visited(state, now)}
        case DecisionAction.lock_intro:
            return {"intro_locked": True, "intro_lock_time": now}
        case DecisionAction.unlock_intro:
            return {"intro_locked": False, "intro_lock_time": None}
        case _ if decision.linking:
            return {
                "vod_douban_id": decision.douban_id,
                "douban_id_source": IdSource.IMPORT if decision.imported else IdSource.PERSON,
                "douban_id_confidence": None,
                "douban_review_status": ReviewStatus.CONFIRMED,
                "douban_review_reason": "",
                "douban_ignore_until": None,
                "douban_sync_fail_count": 0,
                "douban_next_sync_at": now,
            }
    return {}


def _visited(state: Mapping[Any, Any], now: datetime) -> dict[str, Any]:
    """Return a visit now, none for a video that is ignored."""
    return {} if state["douban_review_status"] == ReviewStatus.IGNORED else {"douban_next_sync_at": now}


def _status_to_rematch(row: Mapping[Any, Any], state: Mapping[Any, Any]) -> ReviewStatus:
    """Return the status of a video that is to be matched again; one whose id is locked only stops being ignored."""
    if state["douban_id_locked"] and state["vod_douban_id"]:
        return ReviewStatus.CONFIRMED
    return ReviewStatus.REVIEW if row["vod_douban_id"] else ReviewStatus.NOT_FOUND


PEOPLE_FIRST = "审核决定优先"
"""Why work of automation is closed for a decision."""

REPLACED = "被更新的决定取代"
"""Why a decision was refused that a newer one contradicts."""

_EVERYTHING = frozenset(TaskType)
_CONCERNS: Mapping[DecisionAction, frozenset[TaskType]] = {
    DecisionAction.lock_id: frozenset({TaskType.MATCH_DOUBAN_ID}),
    DecisionAction.lock_intro: frozenset({TaskType.AI_INTRO}),
    # An intro that was ordered before would be locked again.
    DecisionAction.unlock_intro: frozenset({TaskType.AI_INTRO}),
    DecisionAction.sync_now: frozenset({TaskType.SYNC_DOUBAN}),
    DecisionAction.redo_intro: frozenset({TaskType.AI_INTRO}),
}


def concerns(action: DecisionAction) -> frozenset[TaskType]:
    """Return the types of tasks that a decision closes: all where the link is decided on, else only its own kind.

    Several decisions about one video may be applied together, so that one must not undo what another ordered.
    """
    return _EVERYTHING if aspect_of(action) is Aspect.LINK else _CONCERNS.get(action, frozenset())


def close_in_hand(connection: Connection, tables: OwnTables, queue: TaskQueue, decision: Decision) -> None:
    """Close the open tasks and the pending verdict of a video that a decision concerns.

    A sync that waits for a closed gate is closed too: the video may be ignored now, or linked to another subject.
    """
    types = concerns(decision.action)
    task, verdict = tables.task, tables.verdict
    in_hand = select(task.c.task_id, task.c.payload).where(
        task.c.vod_id == decision.vod_id, task.c.open_key.is_not(None), task.c.task_type.in_(types)
    )
    for task_id, payload in connection.execute(in_hand).all():
        reason = REPLACED if (payload or {}).get(DECISION) else PEOPLE_FIRST
        queue.cancel(connection, task_id, reason)
    if TaskType.MATCH_DOUBAN_ID in types:
        connection.execute(
            update(verdict)
            .where(verdict.c.vod_id == decision.vod_id, verdict.c.state == VerdictState.PENDING)
            .values(state=VerdictState.SUPERSEDED, state_reason=PEOPLE_FIRST)
        )


def task_of(decision: Decision) -> NewTask | None:
    """Return the task that applies a decision, or the sync that follows a new link; None if there is none."""
    vod_id, action = decision.vod_id, decision.action
    payload: dict[str, Any] = {DECISION: decision.decision_id}
    if decision.override_cms_lock and not decision.linking:
        payload[OVERRIDE_CMS_LOCK] = True
    if action is DecisionAction.redo_intro:
        payload |= {REVIEWER: decision.reviewer, NOTE: decision.note}
        return NewTask(vod_id, TaskType.AI_INTRO, TaskStage.INTRO, ORDERED_INTRO_PRIORITY, payload)
    if action is DecisionAction.sync_now:
        payload[FRESH] = True
    elif not decision.linking:
        return None
    return NewTask(vod_id, TaskType.SYNC_DOUBAN, TaskStage.SYNC, ORDERED_PRIORITY, payload)


def order(connection: Connection, tables: OwnTables, queue: TaskQueue, new: NewTask, *, run_id: str) -> int:
    """Queue a task that a person ordered; return its id.

    Where another run queued one of the kind in this very moment, it becomes the ordered one.
    """
    task = tables.task
    queue.enqueue(connection, [new], run_id=run_id)
    this = task.c.open_key == f"{new.vod_id}:{new.task_type}"
    connection.execute(update(task).where(this).values(payload=dict(new.payload), priority=new.priority))
    return int(connection.execute(select(task.c.task_id).where(this)).scalar_one())
