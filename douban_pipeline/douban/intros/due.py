"""Selects the videos that are due for an intro and queues them. Every query uses an index by shard."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import ColumnElement, Connection, exists, func, or_, select

from douban_pipeline.cms.maccms import recycled_condition
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.douban.chain.due.due_videos import decision_pending, in_scope
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus, TaskStage, TaskType
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import OPEN, NewTask

INTERVAL_DAYS = 30
"""Days until a video's intro is attempted again, as the plan has it."""
INTROS_PER_RUN = 10
"""Maximum intros per shard in one run: a run asks the model one after another, and ends within its lease."""


@dataclass(frozen=True, slots=True)
class DueIntro:
    """A video that is due for an intro, and when its fields were last synced."""

    vod_id: int
    shard: int
    synced_at: datetime


class DueIntros:
    """The videos whose intro is due, according to the state table."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.engine = services.engine
        self.tables = services.tables

    def find(self, shard: int, *, limit: int) -> list[DueIntro]:
        """Return up to ``limit`` due videos of a shard, the last synced first, so that this run's come first.

        A video is due if it has a confirmed subject, was synced at least once, its intro is not locked, its category is
        in scope, it is not in the recycle bin, it was not tried for `INTERVAL_DAYS` days, and it has neither
        a pending decision nor an open task for an intro.
        """
        video = self.tables.video
        query = (
            select(video.c.vod_id, video.c.shard, video.c.douban_last_sync_at)
            .where(video.c.shard == shard, *self._due())
            .order_by(video.c.douban_last_sync_at.desc(), video.c.vod_id)
            .limit(limit)
        )
        with reading(self.engine) as connection:
            return [DueIntro(*row) for row in connection.execute(query)]

    def count(self, connection: Connection) -> tuple[int, datetime | None]:
        """Return how many videos of the library are due, and when the first of them was synced."""
        query = select(func.count(), func.min(self.tables.video.c.douban_last_sync_at)).where(*self._due())
        return connection.execute(query).one()._tuple()

    def _due(self) -> list[ColumnElement[bool]]:
        video = self.tables.video
        return [
            video.c.douban_review_status == ReviewStatus.CONFIRMED,
            video.c.vod_douban_id > 0,
            video.c.douban_last_sync_at.is_not(None),
            # Null means that it was deleted from the CMS.
            video.c.douban_next_sync_at.is_not(None),
            video.c.intro_locked.is_(False),
            *in_scope(self.tables, self.services.settings),
            *self._not_tried_lately(),
            ~decision_pending(self.tables),
            ~self._queued(),
            ~recycled_condition(self.services.cms, video.c.vod_id),
        ]

    def take(self, queue: TaskQueue, shards: Collection[int], *, limit: int, run_id: str) -> list[DueIntro]:
        """Queue up to ``limit`` videos per shard and return them; overlapping runs queue none twice."""
        taken: list[DueIntro] = []
        for shard in sorted(shards):
            found = self.find(shard, limit=limit)
            tasks = [_task_for(item) for item in found]
            run_transaction(self.engine, partial(queue.enqueue, tasks=tasks, run_id=run_id))
            taken += found
        return taken

    def drop(self, queue: TaskQueue, shards: Collection[int], reason: str) -> int:
        """Close the open tasks of ``shards`` that no other run works on; return how many."""
        task, now = self.tables.task, self.services.clock.now()
        query = select(task.c.task_id).where(
            task.c.shard.in_(shards),
            task.c.stage == TaskStage.INTRO,
            task.c.status.in_(OPEN),
            queue.leases.available([queue.owner], now),
        )
        with reading(self.engine) as connection:
            task_ids = list(connection.execute(query).scalars())
        return run_transaction(
            self.engine,
            lambda connection: sum(queue.cancel(connection, task_id, reason, unless_held=True) for task_id in task_ids),
        )

    def _not_tried_lately(self) -> list[ColumnElement[bool]]:
        video = self.tables.video
        before = self.services.clock.now() - timedelta(days=INTERVAL_DAYS)
        tried = (video.c.intro_ai_last_at, video.c.intro_ai_last_fail_at)
        return [or_(moment.is_(None), moment <= before) for moment in tried]

    def _queued(self) -> ColumnElement[bool]:
        video, task = self.tables.video, self.tables.task
        return exists().where(
            task.c.vod_id == video.c.vod_id, task.c.task_type == TaskType.AI_INTRO, task.c.status.in_(OPEN)
        )


def _task_for(item: DueIntro) -> NewTask:
    # The queue returns the highest priority first: the video synced last, however long others have waited.
    minutes = int(item.synced_at.timestamp()) // 60
    return NewTask(item.vod_id, TaskType.AI_INTRO, TaskStage.INTRO, priority=minutes)
