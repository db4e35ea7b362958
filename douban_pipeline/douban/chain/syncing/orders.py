"""What a decision means for the queue of work: what automation had in hand, and the task that is ordered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select, update

from douban_pipeline.douban.store.decisions import LINKING, Aspect, aspect_of
from douban_pipeline.douban.store.states import (
    DecisionAction,
    TaskStage,
    TaskType,
    VerdictState,
)
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import DECISION, FRESH, NOTE, REVIEWER, NewTask, TaskQueue

PEOPLE_FIRST = "审核决定优先"
"""Why work of automation is closed for a decision."""

_REPLACED = "被更新的决定取代"

SYNC_PRIORITY = 1000
"""More than any visit has that is merely due."""

INTRO_PRIORITY = 2**30
"""More than any intro has that is merely due: theirs is a time in minutes."""

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
    """Return the work that a decision puts an end to: all of it where the link is decided on, or only its own kind.

    Several decisions about one video may stand together, so that one must not undo what another has ordered.
    """
    return _EVERYTHING if aspect_of(action) is Aspect.LINK else _CONCERNS.get(action, frozenset())


def close_in_hand(connection: Connection, tables: OwnTables, queue: TaskQueue, decision: Mapping[Any, Any]) -> None:
    """Close what automation had in hand for a video, as far as a decision concerns it.

    A sync that waits for a closed gate is closed too: the video may be ignored now, or linked to another subject.
    """
    types = concerns(DecisionAction(decision["action"]))
    task, verdict = tables.task, tables.verdict
    in_hand = select(task.c.task_id, task.c.payload).where(
        task.c.vod_id == decision["vod_id"], task.c.open_key.is_not(None), task.c.task_type.in_(types)
    )
    for task_id, payload in connection.execute(in_hand).all():
        reason = _REPLACED if (payload or {}).get(DECISION) else PEOPLE_FIRST
        queue.cancel(connection, task_id, reason)
    if TaskType.MATCH_DOUBAN_ID in types:
        connection.execute(
            update(verdict)
            .where(verdict.c.vod_id == decision["vod_id"], verdict.c.state == VerdictState.PENDING)
            .values(state=VerdictState.SUPERSEDED, state_reason=PEOPLE_FIRST)
        )


def task_of(decision: Mapping[Any, Any]) -> NewTask | None:
    """Return the task that carries a decision out, or the sync that follows a new link; None if there is none."""
    vod_id, action = decision["vod_id"], DecisionAction(decision["action"])
    payload: dict[str, Any] = {DECISION: decision["decision_id"]}
    if action is DecisionAction.redo_intro:
        payload |= {REVIEWER: decision["reviewer"], NOTE: decision["note"]}
        return NewTask(vod_id, TaskType.AI_INTRO, TaskStage.INTRO, INTRO_PRIORITY, payload)
    if action is DecisionAction.sync_now:
        payload[FRESH] = True
    elif action not in LINKING:
        return None
    return NewTask(vod_id, TaskType.SYNC_DOUBAN, TaskStage.SYNC, SYNC_PRIORITY, payload)


def order(connection: Connection, tables: OwnTables, queue: TaskQueue, new: NewTask, *, run_id: str) -> int:
    """Queue a task that a person ordered; return its id.

    Where another run queued one of the kind in this very moment, it becomes the ordered one.
    """
    task = tables.task
    queue.enqueue(connection, [new], run_id=run_id)
    this = task.c.open_key == f"{new.vod_id}:{new.task_type}"
    connection.execute(update(task).where(this).values(payload=dict(new.payload), priority=new.priority))
    return int(connection.execute(select(task.c.task_id).where(this)).scalar_one())
