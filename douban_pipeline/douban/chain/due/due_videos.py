"""Selects due videos and queues tasks for them. Every query uses an index, none reads the whole library."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    Update,
    and_,
    bindparam,
    case,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    union_all,
    update,
)

from douban_pipeline.cms.maccms import recycled_condition
from douban_pipeline.core.database import chunks, reading, run_statement, run_transaction
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.shown_status import shown_status
from douban_pipeline.douban.store.states import DecisionState, ReviewStatus, TaskStage, TaskType
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import OPEN, OUT_OF_SCOPE, NewTask
from douban_pipeline.douban.store.videos import LOCKED_VISIT, NO_LONGER_IGNORED, cms_locked, refuse_pending


def in_scope(tables: OwnTables, settings: Settings) -> list[ColumnElement[bool]]:
    """Return the conditions that a video's category is in scope; empty if every category is."""
    type_id = tables.video.c.type_id
    conditions: list[ColumnElement[bool]] = []
    if settings.included_type_ids:
        conditions.append(type_id.in_(settings.included_type_ids))
    if settings.excluded_type_ids:
        conditions.append(type_id.not_in(settings.excluded_type_ids))
    return conditions


def decision_pending(tables: OwnTables) -> ColumnElement[bool]:
    """Return the condition that a person's decision about a video waits."""
    video, decision = tables.video, tables.decision
    return exists().where(decision.c.vod_id == video.c.vod_id, decision.c.state == DecisionState.PENDING)


MOST_COUNTED = 1000
"""How far the videos are counted that a shard has left; beyond that it is enough to know that there are more."""


class DueScope(enum.Enum):
    """Which videos of a shard a run takes on. Members are named as they are typed into the launchpad."""

    due = "due"
    """Those whose next visit has come."""

    unmatched = "unmatched"
    """Also those without a confirmed subject, whenever their next visit is."""

    everything = "everything"
    """All of them: a backfill that re-does the library."""


@dataclass(frozen=True, slots=True)
class DueVideo:
    """A video that was put into the queue."""

    vod_id: int
    shard: int
    task_type: TaskType
    due_since: datetime | None
    status: str
    priority: int


@dataclass(slots=True)
class DueReport:
    """Tasks that a run queued, and the number of due videos left (counted up to `MOST_COUNTED` per shard)."""

    taken: list[DueVideo] = field(default_factory=list)
    left: int = 0
    new_tasks: int = 0


class DueVideos:
    """The due videos as the state table knows them."""

    def __init__(self, services: Services) -> None:
        self.engine = services.engine
        self.tables = services.tables
        self.settings = services.settings
        self.clock = services.clock
        self.cms = services.cms

    def take(self, queue: TaskQueue, shards: Collection[int], *, scope: DueScope, limit: int, run_id: str) -> DueReport:
        """Queue up to ``limit`` videos per shard, without duplicates, longest due first.

        A video with a pending decision of a person gets no automatic task: the decision comes first.
        """
        report = DueReport()
        self._wake_ignored(shards)
        self._defer_waiting(shards)
        self._defer_locked(shards)
        self._leave_recycled(shards)
        for shard in sorted(shards):
            videos, left = self._select(shard, scope, limit)
            tasks = [_task_for(video) for video in videos]
            report.new_tasks += run_transaction(self.engine, partial(queue.enqueue, tasks=tasks, run_id=run_id))
            report.taken += videos
            report.left += left
        return report

    def drop_out_of_scope(self, queue: TaskQueue) -> int:
        """Close open tasks of categories that are no longer worked on; return how many."""
        task, video = self.tables.task, self.tables.video
        wanted = in_scope(self.tables, self.settings)
        if not wanted:
            return 0
        query = (
            select(task.c.task_id, task.c.vod_id)
            .join(video, video.c.vod_id == task.c.vod_id)
            .where(task.c.status.in_(OPEN), not_(and_(*wanted)))
        )
        with reading(self.engine) as connection:
            strays = connection.execute(query).tuples().all()

        def close(connection: Connection) -> None:
            for task_id, vod_id in strays:
                queue.cancel(connection, task_id, OUT_OF_SCOPE)
                refuse_pending(connection, self.tables, vod_id, OUT_OF_SCOPE)

        run_transaction(self.engine, close)
        return len(strays)

    def _select(self, shard: int, scope: DueScope, limit: int) -> tuple[list[DueVideo], int]:
        now = self.clock.now()
        with reading(self.engine) as connection:
            rows = connection.execute(self.selection(connection, shard, scope, limit, now)).mappings().all()
            total = connection.execute(self.amount(shard, scope, now)).scalar_one()
        videos = [
            DueVideo(
                row["vod_id"],
                shard,
                _task_type(row),
                row["douban_next_sync_at"],
                shown_status(row),
                self.settings.tiers.tier(row["vod_time"], None, now).priority,
            )
            for row in rows
        ]
        return videos, max(total - len(videos), 0)

    def selection(
        self, connection: Connection, shard: int, scope: DueScope, limit: int, now: datetime
    ) -> Select[Any] | CompoundSelect[Any]:
        """Return the query for the next ``limit`` videos of a shard."""
        video = self.tables.video
        # Who waits longest comes first; a backfill goes round, so that each of its runs takes the next ones.
        order = video.c.douban_next_sync_at if scope is DueScope.due else video.c.douban_last_sync_at
        base = (
            select(video)
            .where(
                video.c.shard == shard,
                *self._wanted(scope, now),
                video.c.douban_review_status != ReviewStatus.IGNORED,
                ~decision_pending(self.tables),
                ~self._locked(by_key=True),
                ~recycled_condition(self.cms, video.c.vod_id),
                # A backfill does not try earlier what is to be tried again after a failure.
                ~exists().where(*self._waits(now)),
            )
            .order_by(order, video.c.vod_id)
            .limit(limit)
        )
        if scope is not DueScope.due or not in_scope(self.tables, self.settings):
            return base.where(*in_scope(self.tables, self.settings))
        # Those of other categories stay due for ever, before all others: each category is asked apart, by its index.
        present = select(video.c.type_id).where(video.c.shard == shard).distinct()
        wanted = [type_id for type_id in connection.execute(present).scalars() if self.settings.works_on(type_id)]
        if not wanted:
            return base.where(false())
        parts = [select(base.where(video.c.type_id == type_id).subquery()) for type_id in wanted]
        together = union_all(*parts).subquery()
        return select(together).order_by(together.c.douban_next_sync_at, together.c.vod_id).limit(limit)

    def amount(self, shard: int, scope: DueScope, now: datetime) -> Select[tuple[int]]:
        """Return the query for how many videos of a shard are to be visited, counted up to `MOST_COUNTED`.

        Those that wait for something are among them, and, but for what is due, ignored ones: their state is not looked
        up row by row for a number that only shows how much there is.
        """
        video = self.tables.video
        wanted = (video.c.shard == shard, *self._wanted(scope, now), *in_scope(self.tables, self.settings))
        return select(func.count()).select_from(select(video.c.vod_id).where(*wanted).limit(MOST_COUNTED).subquery())

    def _wanted(self, scope: DueScope, now: datetime) -> Sequence[ColumnElement[bool]]:
        video = self.tables.video
        due = video.c.douban_next_sync_at <= now
        live = video.c.douban_next_sync_at.is_not(None)
        if scope is DueScope.due:
            return [due]
        if scope is DueScope.unmatched:
            return [live, or_(due, video.c.douban_review_status != ReviewStatus.CONFIRMED)]
        return [live]

    def _wake_ignored(self, shards: Collection[int]) -> None:
        """End the time of being ignored where it is over, and move the visits of the others to its end."""
        video, now = self.tables.video, self.clock.now()
        query = select(video.c.vod_id).where(
            video.c.douban_review_status == ReviewStatus.IGNORED,
            video.c.douban_next_sync_at <= now,
            video.c.shard.in_(shards),
        )
        with reading(self.engine) as connection:
            ignored = list(connection.execute(query).scalars())
        awake = case((video.c.vod_douban_id > 0, ReviewStatus.CONFIRMED), else_=ReviewStatus.NOT_FOUND)
        for vod_ids in chunks(ignored):
            these = (video.c.vod_id.in_(vod_ids), video.c.douban_review_status == ReviewStatus.IGNORED)
            wake = (
                update(video)
                .where(*these, video.c.douban_ignore_until <= now)
                .values(douban_review_status=awake, douban_review_reason=NO_LONGER_IGNORED, douban_ignore_until=None)
            )
            defer = (
                update(video)
                .where(*these, ~decision_pending(self.tables))
                .values(douban_next_sync_at=video.c.douban_ignore_until)
            )
            run_transaction(self.engine, partial(_execute_all, statements=(wake, defer)))

    def _defer_waiting(self, shards: Collection[int]) -> None:
        """Move videos that came due while their task waits to that task's time: until then no run can help them."""
        video, task, now = self.tables.video, self.tables.task, self.clock.now()
        # From the tasks, of which few wait, not from the due videos, which may be a backlog.
        query = (
            select(task.c.vod_id, func.max(task.c.run_after).label("until"))
            .join(video, video.c.vod_id == task.c.vod_id)
            .where(
                task.c.shard.in_(shards),
                task.c.status.in_(OPEN),
                *self._waits(now),
                video.c.douban_next_sync_at <= now,
            )
            .group_by(task.c.vod_id)
        )
        with reading(self.engine) as connection:
            waiting = [{"key": vod_id, "until": until} for vod_id, until in connection.execute(query)]
        defer = (
            update(video)
            .where(video.c.vod_id == bindparam("key"), video.c.douban_next_sync_at <= now)
            .values(douban_next_sync_at=bindparam("until"))
        )
        for rows in chunks(waiting):
            run_statement(self.engine, defer, rows)

    def _defer_locked(self, shards: Collection[int]) -> None:
        """Look again in a day at due videos whose row is locked; one that the CMS saves is taken in at once."""
        video, now = self.tables.video, self.clock.now()
        query = select(video.c.vod_id).where(
            video.c.shard.in_(shards),
            video.c.douban_next_sync_at <= now,
            self._locked(),
            ~decision_pending(self.tables),
        )
        with reading(self.engine) as connection:
            locked = list(connection.execute(query).scalars())
        for vod_ids in chunks(locked):
            later = update(video).where(video.c.vod_id.in_(vod_ids), video.c.douban_next_sync_at <= now)
            run_statement(self.engine, later.values(douban_next_sync_at=now + LOCKED_VISIT))

    def _leave_recycled(self, shards: Collection[int]) -> None:
        """Take due videos off the schedule that are in the recycle bin, until the sweep sees them out of it."""
        if not self.cms.has_recycle_bin:
            return
        video, now = self.tables.video, self.clock.now()
        due = (video.c.shard.in_(shards), video.c.douban_next_sync_at <= now)
        query = select(video.c.vod_id).where(*due, recycled_condition(self.cms, video.c.vod_id))
        with reading(self.engine) as connection:
            recycled = list(connection.execute(query).scalars())
        for vod_ids in chunks(recycled):
            off = update(video).where(video.c.vod_id.in_(vod_ids), video.c.douban_next_sync_at <= now)
            run_statement(self.engine, off.values(douban_next_sync_at=None))

    def _locked(self, *, by_key: bool = False) -> ColumnElement[bool]:
        if not self.settings.respect_vod_lock:
            return false()
        return cms_locked(self.tables, self.settings.table_prefix, by_key=by_key)

    def _waits(self, now: datetime) -> tuple[ColumnElement[bool], ...]:
        """Return the conditions that a task keeps a video waiting; an intro to be written delays nothing else."""
        video, task = self.tables.video, self.tables.task
        return (
            task.c.vod_id == video.c.vod_id,
            task.c.open_key.is_not(None),
            task.c.run_after > now,
            task.c.task_type != TaskType.AI_INTRO,
        )


def _execute_all(connection: Connection, statements: Sequence[Update]) -> None:
    for statement in statements:
        connection.execute(statement)


def _task_type(state: Mapping[Any, Any]) -> TaskType:
    """Return the type of the due task; a doubtful link that is locked is only judged again."""
    if state["vod_douban_id"] > 0 and state["douban_review_status"] == ReviewStatus.CONFIRMED:
        return TaskType.SYNC_DOUBAN
    locked = state["douban_id_locked"] and state["vod_douban_id"] > 0
    return TaskType.RECHECK if locked else TaskType.MATCH_DOUBAN_ID


def _task_for(video: DueVideo) -> NewTask:
    stage = TaskStage.SYNC if video.task_type is TaskType.SYNC_DOUBAN else TaskStage.SEARCH
    return NewTask(video.vod_id, video.task_type, stage, video.priority)
