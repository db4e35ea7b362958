"""What is due, and putting it into the queue. Every query uses an index, none reads the whole library."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Engine,
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

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import chunks, reading, run_statement, run_transaction
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import DecisionState, ReviewStatus, TaskStage, TaskType
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import OPEN, ORDERED_PRIORITY, NewTask, TaskQueue
from douban_pipeline.douban.store.videos import cms_locked, refuse_pending

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""Before every visit; a condition that a visit is later leaves out videos without one."""


MOST_COUNTED = 1000
"""How far the videos are counted that a shard has left; beyond that it is enough to know that there are more."""


LOCKED_VISIT = timedelta(days=1)
"""How long a video that the CMS locks is left alone before anybody looks whether it is still locked."""

_OUT_OF_SCOPE = "分类不在处理范围内"


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
    """A shard with work.

    Attributes:
        shard: Which.
        lately: Videos that came due within the last `max_due_wait_minutes`; whoever has waited longer is worth a run
            whatever their number, so they are never counted.
        oldest: Since when the longest waiting is due.
        decided: Whether a person's decision waits.
    """

    shard: int
    lately: int
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
    """What a run put into the queue, and how many are left for later (of a shard up to `MOST_COUNTED`)."""

    taken: list[DueVideo] = field(default_factory=list)
    left: int = 0
    new_tasks: int = 0


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
        """Return the shards with work, a person's decisions first, then who waits longest; five indexed queries.

        What they read does not grow with the library or with a backlog: the first due video of each shard and
        category, and what came due lately. A decision that waits for a source counts from its time on; so does a task
        that a decision queued.
        """
        now = self.clock.now()
        with reading(self.engine) as connection:
            oldest: dict[int, datetime] = {}
            for shard, type_id, since in connection.execute(self.first_due(now)):
                if self.settings.works_on(type_id):
                    oldest[shard] = min(since, oldest.get(shard, since))
            lately = dict(connection.execute(self.came_due_lately(now)).tuples().all()) if oldest else {}
            found = {shard: ShardDue(shard, lately.get(shard, 0), since) for shard, since in oldest.items()}
            # In a dry run decisions wait: nothing is written.
            for decided in () if self.settings.dry_run else self._decided():
                for shard, since in connection.execute(decided):
                    due = found.get(shard, ShardDue(shard, 0, since))
                    found[shard] = ShardDue(shard, due.lately, min(due.oldest, since), decided=True)
        return sorted(found.values(), key=lambda due: (not due.decided, due.oldest, due.shard))

    def first_due(self, now: datetime) -> Select[tuple[int, int, datetime]]:
        """Return the query for the first due visit of each shard and category: as many steps in the index as those."""
        video = self.tables.video
        visit = video.c.douban_next_sync_at
        return (
            select(video.c.shard, video.c.type_id, func.min(visit))
            .where(visit > _LONG_AGO, visit <= now)
            .group_by(video.c.shard, video.c.type_id)
        )

    def came_due_lately(self, now: datetime) -> Select[tuple[int, int]]:
        """Return the query for how many videos of each shard came due within `max_due_wait_minutes`."""
        video = self.tables.video
        visit = video.c.douban_next_sync_at
        since = now - timedelta(minutes=self.settings.max_due_wait_minutes)
        query = select(video.c.shard, func.count()).where(visit > since, visit <= now, *self.in_scope())
        return query.group_by(video.c.shard)

    def _decided(self) -> tuple[Select[tuple[int, datetime]], ...]:
        """Return the queries for shards with decisions to apply, tasks that apply one, and ordered rechecks."""
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
        rechecks = (
            select(task.c.shard, func.min(task.c.run_after))
            .where(
                task.c.status.in_(OPEN),
                task.c.run_after <= now,
                task.c.priority >= ORDERED_PRIORITY,
                task.c.task_type == TaskType.RECHECK,
                or_(task.c.lease_until.is_(None), task.c.lease_until < now),
            )
            .group_by(task.c.shard)
        )
        return pending, ordered, rechecks

    def take(self, queue: TaskQueue, shards: Collection[int], *, scope: Scope, limit: int, run_id: str) -> DueReport:
        """Put up to ``limit`` videos a shard into the queue, without duplicates, who waits longest first.

        A video with a pending decision of a person gets no automatic task: the decision comes first.
        """
        report = DueReport()
        self._wake_ignored(shards)
        self._defer_waiting(shards)
        self._defer_locked(shards)
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
        in_scope = self.in_scope()
        if not in_scope:
            return 0
        query = (
            select(task.c.task_id, task.c.vod_id)
            .join(video, video.c.vod_id == task.c.vod_id)
            .where(task.c.status.in_(OPEN), not_(and_(*in_scope)))
        )
        with reading(self.engine) as connection:
            strays = connection.execute(query).tuples().all()

        def close(connection: Connection) -> None:
            for task_id, vod_id in strays:
                queue.cancel(connection, task_id, _OUT_OF_SCOPE)
                refuse_pending(connection, self.tables, vod_id, _OUT_OF_SCOPE)

        run_transaction(self.engine, close)
        return len(strays)

    def _select(self, shard: int, scope: Scope, limit: int) -> tuple[list[DueVideo], int]:
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
                row["douban_review_status"],
                self.settings.tiers.tier(row["vod_time"], None, now).priority,
            )
            for row in rows
        ]
        return videos, max(total - len(videos), 0)

    def selection(
        self, connection: Connection, shard: int, scope: Scope, limit: int, now: datetime
    ) -> Select[Any] | CompoundSelect[Any]:
        """Return the query for the next ``limit`` videos of a shard."""
        video = self.tables.video
        # Who waits longest comes first; a backfill goes round, so that each of its runs takes the next ones.
        order = video.c.douban_next_sync_at if scope is Scope.due else video.c.douban_last_sync_at
        base = (
            select(video)
            .where(
                video.c.shard == shard,
                *self._wanted(scope, now),
                video.c.douban_review_status != ReviewStatus.IGNORED,
                ~self.decision_pending(),
                ~self._locked(),
                # A backfill does not try earlier what is to be tried again after a failure.
                ~exists().where(*self._waits(now)),
            )
            .order_by(order, video.c.vod_id)
            .limit(limit)
        )
        if scope is not Scope.due or not self.in_scope():
            return base.where(*self.in_scope())
        # Those of other categories stay due for ever, before all others: each category is asked apart, by its index.
        present = select(video.c.type_id).where(video.c.shard == shard).distinct()
        wanted = [type_id for type_id in connection.execute(present).scalars() if self.settings.works_on(type_id)]
        if not wanted:
            return base.where(false())
        parts = [select(base.where(video.c.type_id == type_id).subquery()) for type_id in wanted]
        together = union_all(*parts).subquery()
        return select(together).order_by(together.c.douban_next_sync_at, together.c.vod_id).limit(limit)

    def amount(self, shard: int, scope: Scope, now: datetime) -> Select[tuple[int]]:
        """Return the query for how many videos of a shard are to be visited, counted up to `MOST_COUNTED`.

        Those that wait for something are among them, and, but for what is due, ignored ones: their state is not looked
        up row by row for a number that only shows how much there is.
        """
        video = self.tables.video
        wanted = (video.c.shard == shard, *self._wanted(scope, now), *self.in_scope())
        return select(func.count()).select_from(select(video.c.vod_id).where(*wanted).limit(MOST_COUNTED).subquery())

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
                .values(douban_review_status=awake, douban_review_reason="忽略期已过", douban_ignore_until=None)
            )
            defer = (
                update(video)
                .where(*these, ~self.decision_pending())
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
            ~self.decision_pending(),
        )
        with reading(self.engine) as connection:
            locked = list(connection.execute(query).scalars())
        for vod_ids in chunks(locked):
            later = update(video).where(video.c.vod_id.in_(vod_ids), video.c.douban_next_sync_at <= now)
            run_statement(self.engine, later.values(douban_next_sync_at=now + LOCKED_VISIT))

    def _locked(self) -> ColumnElement[bool]:
        return cms_locked(self.tables, self.settings.table_prefix) if self.settings.respect_vod_lock else false()

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


def _execute_all(connection: Connection, statements: Sequence[Update]) -> None:
    for statement in statements:
        connection.execute(statement)


def _task_type(state: Mapping[Any, Any]) -> TaskType:
    """Return what is due: a link that is in doubt is only judged again where it is locked."""
    if state["vod_douban_id"] > 0 and state["douban_review_status"] == ReviewStatus.CONFIRMED:
        return TaskType.SYNC_DOUBAN
    locked = state["douban_id_locked"] and state["vod_douban_id"] > 0
    return TaskType.RECHECK if locked else TaskType.MATCH_DOUBAN_ID


def _task_for(video: DueVideo) -> NewTask:
    stage = TaskStage.SYNC if video.task_type is TaskType.SYNC_DOUBAN else TaskStage.SEARCH
    return NewTask(video.vod_id, video.task_type, stage, video.priority)
