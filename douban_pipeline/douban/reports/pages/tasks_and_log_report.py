"""The page of tasks, decisions and changes: what makes no progress, what was not applied, what was written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.templates import problem_tone
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.health.metrics import OpenTasks
from douban_pipeline.douban.reports.pages.changes import DAYS, TROUBLE_DAYS, DayOfChanges, LoggedChange, remedy_of
from douban_pipeline.douban.reports.pages.lookup import VideoNames
from douban_pipeline.douban.reports.pages.report_page import (
    Card,
    Cell,
    Chapter,
    LinesCell,
    LinkCell,
    NoteCell,
    ReportPage,
    SubjectCell,
    VideoCell,
    decision,
)
from douban_pipeline.douban.reports.pages.tasks_and_log import REFUSED_DAYS, DecisionLine, TasksAndLog
from douban_pipeline.douban.reports.pages.work import FAILURE_DAYS, MOST, LeaseHolder, TaskReason
from douban_pipeline.douban.wording import (
    CHANGE_STATES,
    CHANGES,
    DECISION_STATES,
    OPERATORS,
    SOURCE_NAMES,
    TASK_STAGES,
    TASK_STATUSES,
    TASK_TYPES,
    word_for,
)

_HASHES = re.compile(r"\b[0-9a-f]{32,}\b")


def tasks_and_log_report(found: TasksAndLog) -> ReportPage:
    """Return the page of tasks, decisions and changes."""
    failed = sum(reason.count for reason in found.failures)
    open_tasks = sum(tasks.count for tasks in found.open_tasks)
    waiting, refused, troubled = found.open_decisions[0], found.refused_decisions[0], found.troubled[0]
    deferred = sum(reason.count for reason in found.deferred)
    written = sum(day.count for day in found.days)
    return ReportPage(
        name="tasks_and_log",
        title="任务、决定与变更",
        about="什么没有进展、为什么，以及写入了什么。总体的快慢与成败见 pipeline_health。",
        counts={
            "open_tasks": open_tasks,
            "put_off": deferred,
            "failed_7_days": failed,
            "decisions_open": waiting,
            "decisions_refused_7_days": refused,
            "changes_troubled_7_days": troubled,
            "changes_30_days": written,
        },
        cards=[
            Card("未完成的任务", f"{open_tasks:,}", f"其中 {deferred:,} 个推迟"),
            Card("失败", f"{failed:,}", f"最近 {FAILURE_DAYS} 天", problem_tone(failed)),
            Card("待执行的决定", f"{waiting:,}", "通常半分钟内执行"),
            Card("被拒绝的决定", f"{refused:,}", f"最近 {REFUSED_DAYS} 天", problem_tone(refused)),
            Card("未写入的变更", f"{troubled:,}", f"被拒绝或有冲突，最近 {TROUBLE_DAYS} 天", problem_tone(troubled)),
            Card("写入的变更", f"{written:,}", f"最近 {DAYS} 天"),
        ],
        chapters=[*_of_tasks(found), *_of_decisions(found), *_of_changes(found)],
    )


def _history(vod_id: int) -> LinkCell:
    return LinkCell("历史", links.history(vod_id))


def _of_tasks(found: TasksAndLog) -> Sequence[Chapter]:
    return (
        Chapter("tasks_by_stage", "未完成的任务", [_tasks(item) for item in found.open_tasks]),
        Chapter("tasks_held", "正由运行持有", [_holder(item, found.now) for item in found.holders]),
        Chapter(
            "tasks_put_off",
            "推迟的任务",
            [_deferred_row(item, found.names) for item in found.deferred[:MOST]],
            "来源不可用、时间用完等，不算失败；到时自动继续。",
        ),
        Chapter(
            "failures_by_reason",
            f"最近 {FAILURE_DAYS} 天的失败",
            [_failure(item, found.names) for item in found.failures[:MOST]],
            "按原因归并（其中的数字不计），最多的在前。",
        ),
    )


def _tasks(item: OpenTasks) -> dict[str, Cell]:
    return {
        "任务": word_for(TASK_TYPES, item.task_type),
        "阶段": word_for(TASK_STAGES, item.stage),
        "状态": word_for(TASK_STATUSES, item.status),
        "数量": item.count,
        "其中未到时间": item.later,
        "最早入队": item.created,
    }


def _holder(item: LeaseHolder, now: datetime) -> dict[str, Cell]:
    states = (("进程已结束，下次运行会接手", item.dead), ("已过期，下次运行会接手", item.until < now), ("进行中", True))
    state = next(text for text, holds in states if holds)
    run = LinkCell(item.run_id[:8], links.run_path(item.run_id)) if item.run_id else ""
    return {"运行": run, "任务数": item.count, "持有至": item.until, "情况": state}


def _deferred_row(item: TaskReason, names: VideoNames) -> dict[str, Cell]:
    return {
        "任务": word_for(TASK_TYPES, item.task_type),
        "原因": failure_text(item.reason, SOURCE_NAMES),
        "数量": item.count,
        "例": VideoCell(item.vod_id, names[item.vod_id]),
        "最早继续": item.until,
        "操作": _history(item.vod_id),
    }


def _failure(item: TaskReason, names: VideoNames) -> dict[str, Cell]:
    return {
        "任务": word_for(TASK_TYPES, item.task_type),
        "原因": failure_text(item.reason, SOURCE_NAMES) or "未说明",
        "次数": item.count,
        "其中会重试": item.open,
        "最近一次": item.last,
        "例": VideoCell(item.vod_id, names[item.vod_id]),
        "操作": _history(item.vod_id),
    }


def _of_decisions(found: TasksAndLog) -> Sequence[Chapter]:
    names = found.names
    (waiting, first), (refused, newest) = found.open_decisions, found.refused_decisions
    return (
        Chapter("pending_decisions", "待执行的决定", [_decision(item, names) for item in first], total=waiting),
        Chapter(
            "refused_decisions",
            f"最近 {REFUSED_DAYS} 天被拒绝的决定",
            [_decision(item, names) for item in newest],
            "按原因改正后重新记录。",
            total=refused,
        ),
    )


def _decision(item: DecisionLine, names: VideoNames) -> dict[str, Cell]:
    state = word_for(DECISION_STATES, item.state)
    waits = "条目尚未核对" if item.unchecked else ""
    return {
        "影片": VideoCell(item.vod_id, names[item.vod_id]),
        "决定": word_for(CHANGES, item.action),
        "条目": SubjectCell(item.douban_id),
        "审核员": item.reviewer,
        "理由": item.note,
        "状态": "：".join(filter(None, (state, item.state_reason or waits))),
        "记录于": item.at,
        "操作": _history(item.vod_id),
    }


def _of_changes(found: TasksAndLog) -> Sequence[Chapter]:
    troubled, first = found.troubled
    return (
        Chapter(
            "changes_not_written",
            f"最近 {TROUBLE_DAYS} 天未写入的变更",
            [_troubled(item, found.names) for item in first],
            total=troubled,
        ),
        Chapter(
            "newest_changes",
            f"最新的 {MOST} 次变更",
            [_change(item, found.names) for item in found.newest],
            "撤销以批为单位，链接只演练；确认后改 dry_run 为 false。",
        ),
        Chapter("changes_by_day", f"最近 {DAYS} 天的变更", [_day(item) for item in found.days]),
    )


def _change(item: LoggedChange, names: VideoNames) -> dict[str, Cell]:
    revert = LinkCell("撤销整批", links.revert(batch_id=item.batch_id))
    return {
        "影片": VideoCell(item.vod_id, names[item.vod_id]),
        "变更": word_for(CHANGES, item.action),
        "内容": item.what,
        "为什么": _HASHES.sub(lambda found: f"{found[0][:8]}…", item.reason),
        "谁": word_for(OPERATORS, item.operator),
        "时间": item.at,
        "状态": "：".join(filter(None, (word_for(CHANGE_STATES, item.state), item.state_reason))),
        "批次": NoteCell(item.batch_id),
        "操作": LinesCell((revert, _history(item.vod_id))),
    }


def _troubled(item: LoggedChange, names: VideoNames) -> dict[str, Cell]:
    remedy = remedy_of(item)
    actions = tuple(decision(CHANGES[action], item.vod_id, action) for action in remedy.actions)
    return {
        "影片": VideoCell(item.vod_id, names[item.vod_id]),
        "变更": word_for(CHANGES, item.action),
        "内容": item.what,
        "谁": word_for(OPERATORS, item.operator),
        "时间": item.at,
        "状态": word_for(CHANGE_STATES, item.state),
        "原因": item.state_reason,
        "怎么办": remedy.text,
        "操作": LinesCell((*actions, _history(item.vod_id))),
    }


def _day(item: DayOfChanges) -> dict[str, Cell]:
    return {
        "日期": str(item.day),
        "变更": word_for(CHANGES, item.action),
        "谁": word_for(OPERATORS, item.operator),
        "次数": item.count,
        "其中已撤销": item.reverted,
    }
