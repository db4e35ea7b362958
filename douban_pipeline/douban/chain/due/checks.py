"""Guards on `due_videos`. Add one here when it says what may be in the queue."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, and_, func, not_, select

from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.guard_checks import Guard, guard_checks
from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.chain.due.conditions import in_scope
from douban_pipeline.douban.partitions import BREACHES
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tasks import OPEN
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
        yield Breach(vod_id, f"分类 {type_id} 不在处理范围内，或影片已被忽略")


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
        yield Breach(vod_id, f"有 {count} 个未完成的 {task_type} 任务")


checks = [
    guard_checks(
        due_videos,
        (
            Guard(
                "no_excluded_type",
                described(
                    "没有未完成任务属于排除的分类或已忽略的影片。",
                    "No open task belongs to an excluded category or an ignored video.",
                ),
                excluded_types,
            ),
            Guard(
                "no_duplicate_open_task",
                described("没有影片有两个同类的未完成任务。", "No video has two open tasks of one type."),
                duplicate_tasks,
            ),
        ),
        shown=BREACHES,
    )
]
