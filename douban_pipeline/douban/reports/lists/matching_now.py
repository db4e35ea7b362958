"""Matching on demand: queues videos without an id with a higher priority than videos that are due by schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, update

from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.lists.list_page import Row
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.spec import ListSpec, rows_of
from douban_pipeline.douban.reports.lists.videos import missing_list
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStage, TaskStatus, TaskType
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import REVIEWER, NewTask

MATCH_PRIORITY = 900
"""Priority above every tier, below syncs that a decision requested."""

MOST = 5000
"""Most videos that one launch queues: at 30 requests a minute some of them wait for half a day."""


@dataclass(frozen=True, slots=True)
class QueuedMatches:
    """What a launch queued, or would queue.

    Attributes:
        videos: The selected rows of the list, in its order.
        new: Number of new tasks.
        waiting: Number of videos that had a task already, which now runs sooner.
        unknown: Named ids that are not in the list: linked, ignored or deleted.
    """

    videos: Sequence[Row]
    new: int
    waiting: int
    unknown: Sequence[int]


def queue_matches(
    services: Services,
    queue: TaskQueue,
    asked: ListFilter,
    vod_ids: Sequence[int],
    *,
    reviewer: str,
    run_id: str,
    most: int,
    dry_run: bool,
) -> QueuedMatches:
    """Queue the videos without an id that pass ``asked``, or those named, for matching at once.

    Args:
        services: Database and settings.
        queue: The queue as this run sees it.
        asked: The filter on the list of videos without an id.
        vod_ids: Only these videos; empty for those that pass ``asked``.
        reviewer: Name of the person who requests it; kept with the task.
        run_id: The Dagster run.
        most: Most videos, in the order of the list.
        dry_run: Select only, queue nothing.

    Raises:
        ProblemsError: The reviewer's name is missing, or a number is out of range.
    """
    problems = [] if reviewer.strip() else ["reviewer: 请填写你的名字"]
    if not 1 <= most <= MOST:
        problems.append(f"most: 应在 1 到 {MOST} 之间，现为 {most}")
    if len(vod_ids) > MOST:
        problems.append(f"vod_ids: 最多 {MOST} 部，现为 {len(vod_ids)} 部")
    if problems:
        raise ProblemsError(problems)
    wanted = missing_list(services)
    videos = _named(services, wanted, vod_ids) if vod_ids else list(rows_of(services, wanted, asked, most=most))
    meant = [row["vod_id"] for row in videos]
    unknown = sorted(set(vod_ids) - set(meant))
    new = 0
    if not dry_run:
        for chunk in chunks(meant):
            new += run_transaction(
                services.engine, partial(_queue, services, queue, chunk=chunk, reviewer=reviewer.strip(), run_id=run_id)
            )
    return QueuedMatches(videos, new, 0 if dry_run else len(meant) - new, unknown)


def _named(services: Services, wanted: ListSpec, vod_ids: Sequence[int]) -> list[Row]:
    rows: list[Row] = []
    for chunk in chunks(sorted(set(vod_ids))):
        only = (*wanted.rows.conditions, wanted.rows.key.in_(chunk))
        keys = wanted.rows.only(only)
        with reading(services.engine) as connection:
            present = list(connection.execute(keys).scalars())
            found = wanted.read(connection, present)
        rows += [found[vod_id] for vod_id in present if vod_id in found]
    return rows


def _queue(
    services: Services, queue: TaskQueue, connection: Connection, *, chunk: Sequence[int], reviewer: str, run_id: str
) -> int:
    tables, now = services.tables, services.clock.now()
    ordered = {REVIEWER: reviewer}
    tasks = [NewTask(vod_id, TaskType.MATCH_DOUBAN_ID, TaskStage.SEARCH, MATCH_PRIORITY, ordered) for vod_id in chunk]
    new = queue.enqueue(connection, tasks, run_id=run_id)
    sooner = (
        tables.task.c.vod_id.in_(chunk),
        tables.task.c.task_type == TaskType.MATCH_DOUBAN_ID,
        tables.task.c.status == TaskStatus.PENDING,
        tables.task.c.priority < MATCH_PRIORITY,
    )
    connection.execute(update(tables.task).where(*sooner).values(priority=MATCH_PRIORITY))
    # Made due, so that the sensor launches their shards within a minute.
    due = (tables.video.c.vod_id.in_(chunk), tables.video.c.douban_next_sync_at > now)
    connection.execute(update(tables.video).where(*due).values(douban_next_sync_at=now))
    return new
