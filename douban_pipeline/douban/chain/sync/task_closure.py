"""Closing tasks of the writing step: our state, the verdict and the queue change in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, update

from douban_pipeline.core.database import run_transaction
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.sync.sync_items import PlannedWrite, SyncItem, SyncResult, sync_result
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import (
    ReviewStatus,
    TaskStatus,
    TaskType,
    VerdictState,
)
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import Task
from douban_pipeline.douban.store.videos import note_gone, refuse_pending

DRY_RUN_VISIT = timedelta(days=1)
"""When a video is looked at again after a dry run: soon after the site owner ends it."""

REVIEW_VISIT = timedelta(minutes=1)
"""When candidates are searched, for a person to choose from, after the current id turned out doubtful."""

REFUSED_VISIT = timedelta(hours=1)
"""When a video is looked at again after its write was refused."""

_NOT_WHILE_LOCKED = "豆瓣 ID 已锁定，按设置不同步其他字段"


@dataclass(slots=True)
class SyncClosing:
    """Closes the tasks of one run; one whose lease was lost is counted and left to the run that has it now.

    Attributes:
        services: Database, sources and settings.
        queue: The run's view of the tasks.
        attempts: The run's calls to the source.
    """

    services: Services
    queue: TaskQueue
    attempts: Attempts

    def leave_locked(self, item: SyncItem) -> SyncResult | None:
        """Close the sync of a video whose id is locked, where the settings leave such videos alone."""
        now = self.services.clock.now()
        return self.leave(item, _NOT_WHILE_LOCKED, self.services.settings.tiers.next_visit_of(item.row, now) - now)

    def leave(self, item: SyncItem, reason: str, visit_in: timedelta) -> SyncResult | None:
        """Close a sync without calling the source, and visit the video again after ``visit_in``."""
        if not self._close(item, TaskStatus.SKIP, VerdictState.REFUSED, reason, visit_in):
            return None
        return sync_result(item, item.state["vod_douban_id"], "skipped", reason=reason)

    def plan_only(self, item: SyncItem, douban_id: int, columns: tuple[str, ...], linked: bool) -> SyncResult | None:
        """Close a task in a dry run; one that a person ordered is requeued instead."""
        reason = "演练模式：未写入"
        if item.ordered:
            # A decision waits until the dry run ends; it is not refused because of it.
            until = self.services.clock.now() + DRY_RUN_VISIT
            ours = run_transaction(
                self.services.engine,
                lambda connection: self.queue.requeue(connection, item.task.task_id, until, reason, failed=False),
            )
            self.attempts.lost += not ours
        else:
            ours = self._close(item, TaskStatus.SKIP, VerdictState.DRY_RUN, reason, DRY_RUN_VISIT)
        return sync_result(item, douban_id, "planned", columns, linked, reason) if ours else None

    def refuse(self, item: SyncItem, reason: str, change_id: int | None = None) -> SyncResult | None:
        """Close a task whose write was refused, and visit the video again: soon, unless the site locked its row."""
        # A row that the site locked stays so: no use asking every hour.
        now = self.services.clock.now()
        visit_in = REFUSED_VISIT
        if item.row["vod_lock"]:
            visit_in = self.services.settings.tiers.next_visit_of(item.row, now) - now
        if not self._close(item, TaskStatus.SKIP, VerdictState.REFUSED, reason, visit_in):
            return None
        douban_id = item.verdict["douban_id"] if item.verdict is not None else item.state["vod_douban_id"]
        return sync_result(item, douban_id, "refused", reason=reason, change_id=change_id)

    def to_review(self, item: SyncItem, reason: str) -> SyncResult | None:
        """Ask a person about the current id, and have candidates searched for that person to choose from."""
        state = {"douban_review_status": ReviewStatus.REVIEW, "douban_review_reason": reason[:500]}
        # A sync that a person ordered counts as refused: none was made.
        status = TaskStatus.SKIP if item.ordered else TaskStatus.SUCCESS
        if not self._close(item, status, VerdictState.REFUSED, reason, REVIEW_VISIT, state):
            return None
        return sync_result(item, item.state["vod_douban_id"], "review", reason=reason)

    def skip(self, task: Task, reason: str, *, gone: bool = False, recycled: bool = False) -> SyncResult | None:
        """Close a task whose video is gone or not to be written.

        ``gone`` notes that the CMS has no such row, ``recycled`` that it is in the recycle bin.
        """

        def close(connection: Connection) -> bool:
            if not self.queue.finish(connection, task.task_id, TaskStatus.SKIP, reason):
                return False
            if gone or recycled:
                note_gone(connection, self.services.tables, task.vod_id, recycled=recycled)
            if task.task_type is TaskType.MATCH_DOUBAN_ID:
                refuse_pending(connection, self.services.tables, task.vod_id, reason)
            return True

        if not run_transaction(self.services.engine, close):
            self.attempts.lost += 1
            return None
        return SyncResult(task.vod_id, task.shard, "", 0, "skipped", reason=reason)

    def finish(self, connection: Connection, applied: Sequence[PlannedWrite]) -> None:
        """Close the tasks of writes that were applied, or that had nothing to write."""
        for write in applied:
            if not write.change.new:
                self._update_state(connection, write.item, write.change.state)
            if write.item.verdict is not None:
                self._mark_verdict(connection, write.item.verdict, VerdictState.APPLIED, "")
            # Where the lease was lost just now, the write is in the log all the same.
            self.queue.finish(connection, write.item.task.task_id, TaskStatus.SUCCESS)

    def _close(
        self,
        item: SyncItem,
        status: TaskStatus,
        verdict_state: VerdictState,
        reason: str,
        visit_in: timedelta,
        state: Mapping[str, Any] | None = None,
    ) -> bool:
        """Close a task that wrote nothing, and look again after ``visit_in``; return whether it was still ours.

        Nothing changes where the lease was lost.
        """
        now = self.services.clock.now()

        def close(connection: Connection) -> bool:
            if not self.queue.finish(connection, item.task.task_id, status, reason):
                return False
            if item.verdict is not None and item.verdict["state"] == VerdictState.PENDING:
                self._mark_verdict(connection, item.verdict, verdict_state, reason)
            if item.state["douban_next_sync_at"] is not None:
                values = {"douban_last_sync_at": now, "douban_next_sync_at": now + visit_in, **(state or {})}
                self._update_state(connection, item, values)
            return True

        ours = run_transaction(self.services.engine, close)
        self.attempts.lost += not ours
        return ours

    def _update_state(self, connection: Connection, item: SyncItem, values: Mapping[str, Any]) -> None:
        """Change our state, unless the link was decided on since it was read."""
        video = self.services.tables.video
        as_seen = [video.c[name] == item.state[name] for name in ("vod_douban_id", "douban_review_status")]
        connection.execute(update(video).where(video.c.vod_id == item.task.vod_id, *as_seen).values(**values))

    def _mark_verdict(self, connection: Connection, verdict: RowMapping, state: VerdictState, reason: str) -> None:
        table = self.services.tables.verdict
        connection.execute(
            update(table)
            .where(table.c.verdict_id == verdict["verdict_id"])
            .values(state=state, state_reason=reason[:500])
        )
