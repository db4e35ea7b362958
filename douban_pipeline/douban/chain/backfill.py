"""How far a whole backfill is, whichever of its runs asks: counted in the library, by index."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy import func as sql

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.due.due_videos import Scope, in_scope
from douban_pipeline.douban.chain.progress import HowFar
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus, TaskType

LATELY = timedelta(minutes=5)
"""The rate of a backfill is that of this time: it may have stood still for a night."""


def backfill_line(services: Services, scope: Scope, began: datetime) -> str:
    """Return how far a backfill of all shards that began at ``began`` is, as a line of the log.

    Everything that was done since counts, whichever run did it: runs of the sensor share out the same work.
    """
    now = services.clock.now()
    task = services.tables.task
    since = max(began, now - LATELY)
    closed = (task.c.finished_at <= now, task.c.task_type != TaskType.AI_INTRO)
    with reading(services.engine) as connection:

        def count(*conditions: ColumnElement[bool]) -> int:
            return int(connection.execute(select(sql.count()).where(*conditions)).scalar_one())

        left = count(*_unvisited(services, scope, began, now), *in_scope(services.tables, services.settings))
        done = count(task.c.finished_at >= began, *closed)
        lately = count(task.c.finished_at >= since, *closed)
    recent = HowFar(lately, left, now - since, now)
    return recent.line("whole backfill", services.settings.zone, done=done)


def _unvisited(services: Services, scope: Scope, began: datetime, now: datetime) -> Sequence[ColumnElement[bool]]:
    """Return the conditions that a backfill has a video still before it."""
    video = services.tables.video
    due = video.c.douban_next_sync_at <= now
    if scope is Scope.due:
        return [due]
    not_yet = or_(video.c.douban_last_sync_at.is_(None), video.c.douban_last_sync_at < began)
    wanted = [video.c.douban_next_sync_at.is_not(None), video.c.douban_review_status != ReviewStatus.IGNORED, not_yet]
    return wanted if scope is Scope.everything else [*wanted, video.c.douban_review_status != ReviewStatus.CONFIRMED]
