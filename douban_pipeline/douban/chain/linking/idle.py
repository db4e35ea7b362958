"""Tasks that turn out to need no match: why, and closing them so that no later run takes them on in vain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, update

from douban_pipeline.core.database import run_transaction
from douban_pipeline.douban.chain.tiers import next_visit_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus, TaskStatus
from douban_pipeline.douban.store.tasks import Task, TaskQueue
from douban_pipeline.douban.store.videos import GONE, note_gone

LINKED = "影片已有确认的关联"


def why_idle(row: Mapping[Any, Any] | None, state: Mapping[Any, Any] | None) -> str:
    """Return why a video needs no match, empty if it does."""
    if row is None or state is None:
        return GONE
    if state["douban_id_locked"]:
        return "豆瓣 ID 已锁定"
    if state["douban_review_status"] == ReviewStatus.IGNORED:
        return "影片已被忽略"
    if state["douban_review_status"] == ReviewStatus.CONFIRMED and state["vod_douban_id"]:
        return LINKED
    return ""


def pass_over(services: Services, queue: TaskQueue, task: Task, row: RowMapping | None, reason: str) -> None:
    """Close ``task`` without a verdict. A video that stayed due would be taken on by every run.

    One that was linked meanwhile stays due: its fields are to be synced. Nothing changes where the lease was lost.
    """
    video = services.tables.video

    def close(connection: Connection) -> None:
        if not queue.finish(connection, task.task_id, TaskStatus.SKIP, reason):
            return
        if row is None:
            note_gone(connection, services.tables, task.vod_id)
        elif reason != LINKED:
            connection.execute(
                update(video)
                .where(video.c.vod_id == task.vod_id, video.c.douban_next_sync_at.is_not(None))
                .values(douban_next_sync_at=next_visit_of(row, services.clock.now()))
            )

    run_transaction(services.engine, close)
