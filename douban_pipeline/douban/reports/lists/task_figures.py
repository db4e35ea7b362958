"""What the list of tasks shows below it: the queue by stage, who holds tasks, and why they waited or failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.owner import is_dead
from douban_pipeline.core.ui.lists.list_page import ColumnKind, Figures, Link, ListColumn, Row, Table
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.health.metrics import OpenTasks, last_failure, open_tasks
from douban_pipeline.douban.reports.lists.lookup import names_of
from douban_pipeline.douban.reports.lists.spec import FIRST, link_of
from douban_pipeline.douban.reports.lists.videos import ACTIONS, LABEL, NUMBER, TIME
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline.douban.store.tasks import OPEN
from douban_pipeline.douban.wording import SOURCE_NAMES, TASK_STAGES, TASK_STATUSES, TASK_TYPES, word_for

FAILURE_DAYS = 7
MOST = 100
"""Most reasons that a table has."""
_NUMBERS = re.compile(r"\d{4,}")


@dataclass(slots=True)
class _Reason:
    """Tasks of one type with the same reason, apart from numbers in it; video, time and text are the newest task's."""

    task_type: str
    reason: str
    count: int = 0
    open: int = 0
    vod_id: int = 0
    last: datetime | None = None
    until: datetime | None = None


_KIND = ListColumn("kind", "任务", LABEL)
_REASON = ListColumn("reason", "原因", width="wide")
_EXAMPLE = ListColumn("example", "例", ColumnKind.LINK)


def task_figures(services: Services) -> Figures:
    """Return what stands around the list of tasks."""
    with reading(services.engine) as connection:
        queue = open_tasks(connection, services, by_stage=True)
        held = _holders(services, connection)
        waiting, failed = _deferred(services, connection), _failures(services, connection)
        shown = [each.vod_id for each in (*waiting[:MOST], *failed[:MOST])]
        names = names_of(services, connection, shown)
    site = VideoSite.of(services.settings)
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
                held,
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


def _holders(services: Services, connection: Connection) -> list[Row]:
    """Return the runs that hold tasks, in the order in which their leases expire."""
    task, now = services.tables.task, services.clock.now()
    query = (
        select(task.c.lease_owner, func.count(), func.min(task.c.lease_until).label("until"))
        .where(task.c.lease_owner.is_not(None), task.c.lease_until.is_not(None))
        .group_by(task.c.lease_owner)
    )

    def held(owner: str, count: int, until: datetime) -> Row:
        run_id = owner.rpartition("@")[0]
        state = (
            "进程已结束，下次运行会接手" if is_dead(owner) else "已过期，下次运行会接手" if until < now else "进行中"
        )
        link = Link(run_id[:8], links.run_path(run_id)) if run_id else None
        return {"run": link, "count": count, "until": until, "state": state}

    return sorted((held(*row) for row in connection.execute(query)), key=lambda row: row["until"])


def _deferred(services: Services, connection: Connection) -> list[_Reason]:
    """Return the reasons of tasks that wait without having failed: a source is closed, a run's time was over."""
    task = services.tables.task
    query = select(task.c.task_type, task.c.last_error, task.c.vod_id, task.c.created_at, task.c.run_after).where(
        task.c.status == TaskStatus.PENDING, task.c.attempts == 0, task.c.last_error != ""
    )
    return _by_reason((row[0], row[1], row[2], row[3], row[4], False) for row in connection.execute(query))


def _failures(services: Services, connection: Connection) -> list[_Reason]:
    """Return the reasons of tasks that failed in the last `FAILURE_DAYS` days: given up, or in the queue again."""
    task, video = services.tables.task, services.tables.video
    since = services.clock.now() - timedelta(days=FAILURE_DAYS)
    closed = select(task.c.task_type, task.c.last_error, task.c.vod_id, task.c.finished_at).where(
        task.c.finished_at >= since, task.c.open_key.is_(None), task.c.status == TaskStatus.FAIL
    )
    again = (
        select(task.c.task_type, task.c.last_error, task.c.vod_id, last_failure(services.tables), task.c.run_after)
        .join(video, video.c.vod_id == task.c.vod_id)
        .where(task.c.status.in_(OPEN), task.c.attempts > 0, last_failure(services.tables) >= since)
    )
    rows: list[tuple[Any, ...]] = [(*row, None, True) for row in connection.execute(closed)]
    rows += [(*row, False) for row in connection.execute(again)]
    return _by_reason(rows)


def _by_reason(rows: Iterable[tuple[Any, ...]]) -> list[_Reason]:
    """Return tasks grouped by reason without regard to numbers in it, the most frequent first."""
    found: dict[tuple[str, str], _Reason] = {}
    for task_type, reason, vod_id, moment, until, is_closed in rows:
        entry = found.setdefault((task_type, _NUMBERS.sub("…", reason)), _Reason(task_type, reason))
        entry.count += 1
        entry.open += not is_closed
        if entry.last is None or (moment, vod_id) > (entry.last, entry.vod_id):
            entry.reason, entry.vod_id, entry.last = reason, vod_id, moment
        if until is not None:
            entry.until = min(entry.until or until, until)
    return sorted(found.values(), key=lambda entry: (-entry.count, entry.task_type, entry.reason))


def _reason(item: _Reason, examples: Mapping[int, Link]) -> Row:
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
