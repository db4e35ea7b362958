"""Guards on `due_videos`. Add one here when it says what may be in the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import Connection, Select, and_, exists, func, not_, select

from douban_pipeline.core.database import chunks, run_transaction
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.guard_checks import Guard, guard_checks
from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.chain.due.cleared_ids import held_in_bulk
from douban_pipeline.douban.chain.due.due_videos import in_scope
from douban_pipeline.douban.partitions import BREACHES
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tasks import OPEN, OUT_OF_SCOPE
from douban_pipeline.douban.store.videos import Breach


def excluded_types(services: Services, connection: Connection) -> Iterator[Breach]:
    """Find open tasks of videos whose category is not to be worked on, or that are ignored."""
    task, video = services.tables.task, services.tables.video
    wanted = in_scope(services.tables, services.settings)
    wrong = video.c.douban_review_status == ReviewStatus.IGNORED
    if wanted:
        wrong = wrong | not_(and_(*wanted))
    query = (
        select(task.c.vod_id, video.c.type_id)
        .join(video, video.c.vod_id == task.c.vod_id)
        .where(task.c.status.in_(OPEN), wrong)
        .order_by(task.c.vod_id)
    )
    for vod_id, type_id in connection.execute(query):
        yield Breach(
            vod_id, page_text("category {type_id} is not processed, or the video is ignored").format(type_id=type_id)
        )


def duplicate_tasks(services: Services, connection: Connection) -> Iterator[Breach]:
    """Find videos with more than one open task of a type."""
    task = services.tables.task
    query = (
        select(task.c.vod_id, task.c.task_type, func.count())
        .where(task.c.status.in_(OPEN))
        .group_by(task.c.vod_id, task.c.task_type)
        .having(func.count() > 1)
    )
    for vod_id, task_type, count in connection.execute(query):
        yield Breach(vod_id, page_text("{count} open tasks {task_type}").format(count=count, task_type=task_type))


def drop_excluded(services: Services, breaches: Sequence[Breach]) -> None:
    """Mend what `excluded_types` finds: skip the open tasks of these videos, so that this run does not take them on."""
    task = services.tables.task
    _skip(services, breaches, lambda vod_ids: select(task.c.task_id).where(task.c.vod_id.in_(vod_ids)), OUT_OF_SCOPE)


def drop_duplicates(services: Services, breaches: Sequence[Breach]) -> None:
    """Mend what `duplicate_tasks` finds: skip all open tasks of these videos but the oldest of each type."""
    task = services.tables.task
    older = task.alias("older")
    earlier = exists().where(
        older.c.vod_id == task.c.vod_id,
        older.c.task_type == task.c.task_type,
        older.c.status.in_(OPEN),
        older.c.task_id < task.c.task_id,
    )
    query = select(task.c.task_id).where(earlier)
    _skip(services, breaches, lambda vod_ids: query.where(task.c.vod_id.in_(vod_ids)), "同类的任务已在队列中")


def _skip(
    services: Services, breaches: Sequence[Breach], of: Callable[[Sequence[int]], Select[tuple[int]]], why: str
) -> None:
    task, queue = services.tables.task, services.queue("")

    def skip(connection: Connection) -> None:
        for vod_ids in chunks([breach.vod_id for breach in breaches]):
            for task_id in connection.execute(of(vod_ids).where(task.c.status.in_(OPEN))).scalars().all():
                queue.cancel(connection, task_id, why)

    run_transaction(services.engine, skip)


checks = [
    guard_checks(
        due_videos,
        (
            Guard(
                "no_excluded_type",
                page_text(
                    "No open task belongs to an excluded category or an ignored video; one that does is dropped."
                ),
                excluded_types,
                mend=drop_excluded,
            ),
            Guard(
                "no_duplicate_open_task",
                page_text("No video has two open tasks of one type; of several the oldest stays."),
                duplicate_tasks,
                mend=drop_duplicates,
            ),
            Guard(
                "no_ids_cleared_in_bulk",
                page_text("No ids that were cleared in the CMS in bulk wait for an answer (`settle_cleared_ids`)."),
                held_in_bulk,
                warns=True,
            ),
        ),
        shown=BREACHES,
    )
]
