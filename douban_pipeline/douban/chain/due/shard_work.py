"""Shards with work, for the due sensor: a few indexed queries, independent of the library's size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, Select, and_, case, func, select

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.due.due_videos import in_scope
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.task_queue import task_leases
from douban_pipeline.douban.store.tasks import OPEN, ORDERED_PRIORITY

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""Before every visit; a condition that a visit is later leaves out videos without one."""


@dataclass(frozen=True, slots=True)
class ShardDue:
    """A shard with work.

    Attributes:
        shard: The shard.
        lately: Number of videos that came due within the last `max_due_wait_minutes`; videos that have waited longer
            cause a run regardless of their number, so they are not counted.
        oldest: Since when the longest waiting video is due, or its task could be done.
        ordered: Whether a recheck waits that a person requested. Decisions are applied by runs of their own.
        tasks: Number of tasks that could be done now and that no run holds, because a run queued them and had no time.
    """

    shard: int
    lately: int
    oldest: datetime
    ordered: bool = False
    tasks: int = 0


class ShardWork:
    """The shards with work, as our tables know them."""

    def __init__(self, engine: Engine, tables: OwnTables, settings: Settings, clock: Clock) -> None:
        self.engine = engine
        self.tables = tables
        self.settings = settings
        self.clock = clock

    def overview(self) -> list[ShardDue]:
        """Return the shards with work, those with requests of people first, then by waiting time; four indexed queries.

        What they read does not grow with the library or with a backlog: the first due video of each shard and
        category, what came due lately, and the open tasks. What waits for a source counts from its time on.
        """
        now = self.clock.now()
        with reading(self.engine) as connection:
            oldest: dict[int, datetime] = {}
            for shard, type_id, since in connection.execute(self.first_due(now)):
                if self.settings.works_on(type_id):
                    oldest[shard] = min(since, oldest.get(shard, since))
            lately = dict(connection.execute(self.came_due_lately(now)).tuples().all()) if oldest else {}
            found = {shard: ShardDue(shard, lately.get(shard, 0), since) for shard, since in oldest.items()}
            for shard, tasks, ordered, since in connection.execute(self.free_tasks(now)):
                due = found.get(shard, ShardDue(shard, 0, since))
                found[shard] = ShardDue(shard, due.lately, min(due.oldest, since), bool(ordered), tasks)
        return sorted(found.values(), key=lambda due: (not due.ordered, due.oldest, due.shard))

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
        lately = (visit > since, visit <= now, *in_scope(self.tables, self.settings))
        return select(video.c.shard, func.count()).where(*lately).group_by(video.c.shard)

    def free_tasks(self, now: datetime) -> Select[tuple[int, int, int, datetime]]:
        """Return the query for the tasks of each shard that can be done now and that no run holds.

        Intros are left out: they have a budget of the day, and none is worth a run by itself.
        """
        task = self.tables.task
        recheck = and_(task.c.task_type == TaskType.RECHECK, task.c.priority >= ORDERED_PRIORITY)
        return (
            select(task.c.shard, func.count(), func.max(case((recheck, 1), else_=0)), func.min(task.c.run_after))
            .where(
                task.c.status.in_(OPEN),
                task.c.run_after <= now,
                task.c.stage != TaskStage.INTRO,
                task_leases(self.tables).free(now),
            )
            .group_by(task.c.shard)
        )
