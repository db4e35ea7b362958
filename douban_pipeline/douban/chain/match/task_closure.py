"""Closing a matching task whose verdict writes nothing to the CMS, with what our state keeps of it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, RowMapping, update

from douban_pipeline.core.database import run_transaction
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus, TaskStatus
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import Task
from douban_pipeline.douban.store.videos import LOCKED_VISIT, note_gone
from douban_pipeline.douban.writes.refusals import Reason, Refusal


def close_match(
    services: Services,
    queue: TaskQueue,
    connection: Connection,
    task: Task,
    row: RowMapping,
    status: str,
    explanation: str,
) -> None:
    """Close a task whose verdict writes nothing to the CMS: note it in our state, with the next visit."""
    now = services.clock.now()
    video = services.tables.video
    connection.execute(
        update(video)
        .where(video.c.vod_id == task.vod_id)
        .values(
            douban_review_status=status,
            douban_review_reason=explanation[:500],
            douban_last_sync_at=now,
            douban_next_sync_at=services.settings.tiers.next_visit_of(row, now),
            douban_sync_fail_count=0,
            douban_last_fail_reason="",
        )
    )
    queue.finish(connection, task.task_id, TaskStatus.SUCCESS, explanation)


def close_recheck(
    services: Services,
    queue: TaskQueue,
    connection: Connection,
    task: Task,
    row: RowMapping,
    state: RowMapping,
    status: str,
    explanation: str,
) -> None:
    """Close a recheck: a doubt is noted for a person, one that ended is noted too; the link stays as it is."""
    now = services.clock.now()
    video = services.tables.video
    values: dict[str, Any] = {"douban_sync_fail_count": 0, "douban_last_fail_reason": ""}
    if status != state["douban_review_status"] or status == ReviewStatus.REVIEW:
        values |= {"douban_review_status": status, "douban_review_reason": explanation[:500]}
        # Not every minute what a person has to settle; at once what may be synced again.
        # One that is to be synced was not visited yet; any other was, and a backfill goes on to the next.
        if status == ReviewStatus.CONFIRMED:
            values |= {"douban_next_sync_at": now}
        else:
            visit = services.settings.tiers.next_visit_of(row, now)
            values |= {"douban_last_sync_at": now, "douban_next_sync_at": visit}
    connection.execute(update(video).where(video.c.vod_id == task.vod_id).values(**values))
    note = explanation or "复查：关联仍然成立"
    queue.finish(connection, task.task_id, TaskStatus.SUCCESS, note)


def skip_task(services: Services, queue: TaskQueue, task: Task, row: RowMapping | None, refusal: Refusal) -> None:
    """Close ``task`` without a verdict, and move the video's next visit: every run would take on what stays due.

    A video that is linked by now stays due: its fields are to be synced. Nothing changes where the lease was lost.
    """
    video, now = services.tables.video, services.clock.now()
    locked = refusal.reason is Reason.LOCKED_IN_CMS
    visit = now + LOCKED_VISIT if locked or row is None else services.settings.tiers.next_visit_of(row, now)

    def close(connection: Connection) -> None:
        if not queue.finish(connection, task.task_id, TaskStatus.SKIP, refusal.sentence):
            return
        if row is None or refusal.reason is Reason.RECYCLED:
            note_gone(connection, services.tables, task.vod_id, recycled=row is not None)
        elif refusal.reason is not Reason.LINKED_ALREADY:
            connection.execute(
                update(video)
                .where(video.c.vod_id == task.vod_id, video.c.douban_next_sync_at.is_not(None))
                .values(douban_next_sync_at=visit)
            )

    run_transaction(services.engine, close)
