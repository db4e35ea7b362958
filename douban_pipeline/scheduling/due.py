"""What is due, and putting it into the queue. Every look goes by an index, never over the whole library."""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, Engine, Select, and_, case, exists, func, not_, or_, select, update

from douban_pipeline.catalog.database import reading, transactions
from douban_pipeline.catalog.states import DecisionState, ReviewStatus, TaskStage, TaskStatus, TaskType
from douban_pipeline.catalog.tables import OwnTables
from douban_pipeline.catalog.tasks import OPEN, NewTask, TaskQueue
from douban_pipeline.clock import Clock
from douban_pipeline.scheduling.tiers import tier_of
from douban_pipeline.settings import Settings


class Scope(enum.Enum):
    """Which videos of a shard a run takes on. Members are named as they are typed into the launchpad."""

    due = "due"
    """Those whose next visit has come."""

    unmatched = "unmatched"
    """Also those without a confirmed subject, whenever their next visit is."""

    everything = "everything"
    """All of them: a backfill that re-does the library."""


@dataclass(frozen=True, slots=True)
class ShardDue:
    """How many videos of a shard are due, since when the oldest is, and whether a person's decision waits there."""

    shard: int
    count: int
    oldest: datetime
    decided: bool = False


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
    """What a run put into the queue, and how many due videos are left for later runs."""

    taken: list[DueVideo] = field(default_factory=list)
    left: int = 0
    new_tasks: int = 0


def works_on(settings: Settings, type_id: int) -> bool:
    """Return whether videos of a category are worked on; `DueVideos.in_scope` says the same to the database."""
    included = not settings.included_type_ids or type_id in settings.included_type_ids
    return included and type_id not in settings.excluded_type_ids


class DueVideos:
    """The due videos as the state table knows them."""

    def __init__(self, engine: Engine, tables: OwnTables, settings: Settings, clock: Clock) -> None:
        self.engine = engine
        self.tables = tables
        self.settings = settings
        self.clock = clock

    def in_scope(self) -> list[ColumnElement[bool]]:
        """Return the conditions that a video's category is to be worked on."""
        type_id = self.tables.video.c.type_id
        conditions: list[ColumnElement[bool]] = []
        if self.settings.included_type_ids:
            conditions.append(type_id.in_(self.settings.included_type_ids))
        if self.settings.excluded_type_ids:
            conditions.append(type_id.not_in(self.settings.excluded_type_ids))
        return conditions

    def overview(self) -> list[ShardDue]:
        """Return the shards with work, a person's decisions first, then who waits longest; three indexed queries.

        A decision that waits for a source counts from its time on; so does a task that a decision queued.
        """
        video = self.tables.video
        query = (
            select(video.c.shard, func.count(), func.min(video.c.douban_next_sync_at))
            .where(video.c.douban_next_sync_at <= self.clock.now(), *self.in_scope())
            .group_by(video.c.shard)
        )
        with reading(self.engine) as connection:
            found = {shard: ShardDue(shard, count, oldest) for shard, count, oldest in connection.execute(query)}
            # In a dry run decisions wait: nothing is written.
            for decided in () if self.settings.dry_run else self._decided():
                for shard, since in connection.execute(decided):
                    due = found.get(shard, ShardDue(shard, 0, since))
                    found[shard] = ShardDue(shard, due.count, min(due.oldest, since), decided=True)
        return sorted(found.values(), key=lambda due: (not due.decided, due.oldest, due.shard))

    def _decided(self) -> tuple[Select[tuple[int, datetime]], ...]:
        """Return the queries for shards with decisions to carry out, and with tasks that carry one out."""
        decision, task, now = self.tables.decision, self.tables.task, self.clock.now()
        decided = select(decision.c.shard, func.min(decision.c.created_at)).group_by(decision.c.shard)
        pending = decided.where(
            decision.c.state == DecisionState.PENDING, or_(decision.c.run_after.is_(None), decision.c.run_after <= now)
        )
        ordered = decided.join(task, task.c.task_id == decision.c.task_id).where(
            decision.c.state == DecisionState.QUEUED,
            task.c.status.in_(OPEN),
            task.c.run_after <= now,
            or_(task.c.lease_until.is_(None), task.c.lease_until < now),
        )
        return pending, ordered

    def take(self, queue: TaskQueue, shards: Collection[int], *, scope: Scope, limit: int, run_id: str) -> DueReport:
        """Put up to ``limit`` videos a shard into the queue, without duplicates, who waits longest first.

        A video with a pending decision of a person gets no automatic task: the decision comes first.
        """
        report = DueReport()
        self._wake_ignored(shards)
        self._let_waiting_rest(shards)
        for shard in sorted(shards):
            videos, left = self._select(shard, scope, limit)
            for transaction in transactions(self.engine):
                with transaction as connection:
                    report.new_tasks += queue.enqueue(connection, [_task_for(video) for video in videos], run_id=run_id)
            report.taken += videos
            report.left += left
        return report

    def drop_out_of_scope(self, queue: TaskQueue) -> int:
        """Close open tasks of categories that are no longer worked on; return how many."""
        task, video = self.tables.task, self.tables.video
        in_scope = self.in_scope()
        if not in_scope:
            return 0
        query = (
            select(task.c.task_id)
            .join(video, video.c.vod_id == task.c.vod_id)
            .where(task.c.status.in_(OPEN), not_(and_(*in_scope)))
        )
        with reading(self.engine) as connection:
            task_ids = list(connection.execute(query).scalars())
        for transaction in transactions(self.engine):
            with transaction as connection:
                for task_id in task_ids:
                    queue.finish(connection, task_id, TaskStatus.SKIP, "分类不在处理范围内")
        return len(task_ids)

    def _select(self, shard: int, scope: Scope, limit: int) -> tuple[list[DueVideo], int]:
        video, now = self.tables.video, self.clock.now()
        conditions = [video.c.shard == shard, *self._wanted(scope, now), *self.in_scope()]
        conditions.append(video.c.douban_review_status != ReviewStatus.IGNORED)
        # What waits out a failure is not overtaken by a backfill.
        waiting = exists().where(*self._waits(now))
        # Who waits longest comes first; a backfill goes round, so that each of its runs takes the next ones.
        order = video.c.douban_next_sync_at if scope is Scope.due else video.c.douban_last_sync_at
        query = (
            select(video)
            .where(*conditions, ~self.decision_pending(), ~waiting)
            .order_by(order, video.c.vod_id)
            .limit(limit)
        )
        count = select(func.count()).select_from(video).where(*conditions)
        with reading(self.engine) as connection:
            rows = connection.execute(query).mappings().all()
            total = connection.execute(count).scalar_one()
        videos = [
            DueVideo(
                row["vod_id"],
                shard,
                _task_type(row["vod_douban_id"], row["douban_review_status"]),
                row["douban_next_sync_at"],
                row["douban_review_status"],
                tier_of(row["vod_time"], None, now).priority,
            )
            for row in rows
        ]
        return videos, total - len(videos)

    def _wanted(self, scope: Scope, now: datetime) -> Sequence[ColumnElement[bool]]:
        video = self.tables.video
        due = video.c.douban_next_sync_at <= now
        live = video.c.douban_next_sync_at.is_not(None)
        if scope is Scope.due:
            return [due]
        if scope is Scope.unmatched:
            return [live, or_(due, video.c.douban_review_status != ReviewStatus.CONFIRMED)]
        return [live]

    def _wake_ignored(self, shards: Collection[int]) -> None:
        """Return videos to work whose time of being ignored is over; let the others rest."""
        video, now = self.tables.video, self.clock.now()
        ignored = (
            video.c.shard.in_(shards),
            video.c.douban_next_sync_at <= now,
            video.c.douban_review_status == ReviewStatus.IGNORED,
        )
        awake = case((video.c.vod_douban_id > 0, ReviewStatus.CONFIRMED), else_=ReviewStatus.NOT_FOUND)
        for transaction in transactions(self.engine):
            with transaction as connection:
                connection.execute(
                    update(video)
                    .where(*ignored, video.c.douban_ignore_until <= now)
                    .values(douban_review_status=awake, douban_review_reason="忽略期已过", douban_ignore_until=None)
                )
                connection.execute(
                    update(video)
                    .where(*ignored, ~self.decision_pending())
                    .values(douban_next_sync_at=video.c.douban_ignore_until)
                )

    def _let_waiting_rest(self, shards: Collection[int]) -> None:
        """Move videos that came due while their task waits to that task's time, or the sensor would ask in vain."""
        video, task, now = self.tables.video, self.tables.task, self.clock.now()
        waits = self._waits(now)
        until = select(func.max(task.c.run_after)).where(*waits).scalar_subquery()
        for transaction in transactions(self.engine):
            with transaction as connection:
                connection.execute(
                    update(video)
                    .where(video.c.shard.in_(shards), video.c.douban_next_sync_at <= now, exists().where(*waits))
                    .values(douban_next_sync_at=until)
                )

    def _waits(self, now: datetime) -> tuple[ColumnElement[bool], ...]:
        """Return the conditions that a task keeps a video waiting; an intro to be written delays nothing else."""
        video, task = self.tables.video, self.tables.task
        return (
            task.c.vod_id == video.c.vod_id,
            task.c.open_key.is_not(None),
            task.c.run_after > now,
            task.c.task_type != TaskType.AI_INTRO,
        )

    def decision_pending(self) -> ColumnElement[bool]:
        """Return the condition that a person's decision about a video waits."""
        video, decision = self.tables.video, self.tables.decision
        return exists().where(and_(decision.c.vod_id == video.c.vod_id, decision.c.state == DecisionState.PENDING))


def _task_type(douban_id: int, status: str) -> TaskType:
    linked = douban_id > 0 and status == ReviewStatus.CONFIRMED
    return TaskType.SYNC_DOUBAN if linked else TaskType.MATCH_DOUBAN_ID


def _task_for(video: DueVideo) -> NewTask:
    stage = TaskStage.SYNC if video.task_type is TaskType.SYNC_DOUBAN else TaskStage.SEARCH
    return NewTask(video.vod_id, video.task_type, stage, video.priority)
