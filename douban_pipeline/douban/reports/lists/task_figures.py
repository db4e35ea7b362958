"""What the list of tasks shows below it: the queue by stage, who holds tasks, and why they waited or failed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from douban_pipeline.core.database import reading
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.lists.list_page import ColumnKind, Figures, Link, ListColumn, Row, Table
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.health.metrics import OpenTasks, open_tasks
from douban_pipeline.douban.reports.lists.lookup import names_of
from douban_pipeline.douban.reports.lists.spec import FIRST, link_of
from douban_pipeline.douban.reports.lists.videos import ACTIONS, LABEL, NUMBER, TIME
from douban_pipeline.douban.reports.lists.work import (
    FAILURE_DAYS,
    MOST,
    LeaseHolder,
    TaskReason,
    deferred,
    failures,
    holders,
)
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.wording import SOURCE_NAMES, TASK_STAGES, TASK_STATUSES, TASK_TYPES, word_for

_KIND = ListColumn("kind", "任务", LABEL)
_REASON = ListColumn("reason", "原因", width="wide")
_EXAMPLE = ListColumn("example", "例", ColumnKind.LINK)


def task_figures(services: Services) -> Figures:
    """Return what stands around the list of tasks."""
    with reading(services.engine) as connection:
        queue = open_tasks(connection, services, by_stage=True)
        held = holders(services, connection)
        waiting, failed = deferred(services, connection), failures(services, connection)
        shown = [each.vod_id for each in (*waiting[:MOST], *failed[:MOST])]
        names = names_of(services, connection, shown)
    site, now = VideoSite.of(services.settings), services.clock.now()
    examples = {vod_id: Link(names[vod_id], site.address(vod_id) if vod_id in names else "") for vod_id in shown}
    count = sum(tasks.count for tasks in queue)
    put_off, times = (sum(reason.count for reason in reasons) for reasons in (waiting, failed))
    history = {"history": link_of("历史", links.history(FIRST), services.location)}
    return Figures(
        {"open_tasks": count, "put_off": put_off, "failed_7_days": times},
        [
            Card("未完成的任务", f"{count:,}", f"其中 {put_off:,} 个推迟", address="#tasks_by_stage"),
            Card("失败", f"{times:,}", f"最近 {FAILURE_DAYS} 天", problem_tone(times), "#failures_by_reason"),
        ],
        [
            Table(
                "tasks_by_stage",
                "未完成的任务",
                (
                    _KIND,
                    ListColumn("stage", "阶段", LABEL),
                    ListColumn("status", "状态", LABEL),
                    ListColumn("count", "数量", NUMBER),
                    ListColumn("later", "其中未到时间", NUMBER),
                    ListColumn("created", "最早入队", TIME),
                ),
                list(map(_queued, queue)),
            ),
            Table(
                "tasks_held",
                "正由运行持有",
                (
                    ListColumn("run", "运行", ColumnKind.LINK),
                    ListColumn("count", "任务数", NUMBER),
                    ListColumn("until", "持有至", TIME),
                    ListColumn("state", "情况", LABEL),
                ),
                [_held(item, now) for item in held],
            ),
            Table(
                "tasks_put_off",
                "推迟的任务",
                (
                    _KIND,
                    _REASON,
                    ListColumn("count", "数量", NUMBER),
                    _EXAMPLE,
                    ListColumn("until", "最早继续", TIME),
                    ACTIONS,
                ),
                [_reason(item, examples) for item in waiting[:MOST]],
                "来源不可用、时间用完等，不算失败；到时自动继续。",
                links=history,
            ),
            Table(
                "failures_by_reason",
                f"最近 {FAILURE_DAYS} 天的失败",
                (
                    _KIND,
                    _REASON,
                    ListColumn("count", "次数", NUMBER),
                    ListColumn("open", "其中会重试", NUMBER),
                    ListColumn("last", "最近一次", TIME),
                    _EXAMPLE,
                    ACTIONS,
                ),
                [_reason(item, examples) for item in failed[:MOST]],
                "按原因归并（其中的数字不计），最多的在前。",
                links=history,
            ),
        ],
    )


def _queued(item: OpenTasks) -> Row:
    return {
        "kind": word_for(TASK_TYPES, item.task_type),
        "stage": word_for(TASK_STAGES, item.stage),
        "status": word_for(TASK_STATUSES, item.status),
        "count": item.count,
        "later": item.later,
        "created": item.created,
    }


def _held(item: LeaseHolder, now: datetime) -> Row:
    states = (("进程已结束，下次运行会接手", item.dead), ("已过期，下次运行会接手", item.until < now), ("进行中", True))
    return {
        "run": Link(item.run_id[:8], links.run_path(item.run_id)) if item.run_id else None,
        "count": item.count,
        "until": item.until,
        "state": next(text for text, holds in states if holds),
    }


def _reason(item: TaskReason, examples: Mapping[int, Link]) -> Row:
    return {
        "kind": word_for(TASK_TYPES, item.task_type),
        "reason": failure_text(item.reason, SOURCE_NAMES) or "未说明",
        "count": item.count,
        "open": item.open,
        "last": item.last,
        "until": item.until,
        "example": examples[item.vod_id],
        "links": (("history", item.vod_id),),
    }
