"""Lists of records: tasks, decisions, and the change log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, Table, select

from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.lists.list_page import ColumnKind, ListColumn, ListLink, ListPage, Row
from douban_pipeline.douban import links
from douban_pipeline.douban.pacing import Tiers
from douban_pipeline.douban.reports.lists.keyset import ListRows
from douban_pipeline.douban.reports.lists.named_list import FIRST, NamedList, link_of
from douban_pipeline.douban.reports.lists.videos import (
    ACTIONS,
    LABEL,
    NAME,
    NUMBER,
    PICTURE,
    TIME,
    VOD_ID,
    category_names,
)
from douban_pipeline.douban.reports.pages.changes import logged_change
from douban_pipeline.douban.reports.pages.lookup import names_of
from douban_pipeline.douban.reports.video_site import posters_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tasks import ORDERED_INTRO_PRIORITY, ORDERED_PRIORITY, RECHECK_PRIORITY
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

MOST = 100_000
"""Most rows of a page; older tasks, decisions and changes are shown on the command line only."""

_CATEGORY = ListColumn("category", "分类", LABEL)


def _rows(
    services: Services,
    table: Table,
    key: str,
    time: str,
    source: str,
    texts: Sequence[str],
    words: Mapping[str, Mapping[str, str]],
    conditions: Sequence[ColumnElement[bool]] = (),
) -> ListRows:
    """Return the rows of a list of records about videos, including records of deleted videos."""
    video, vod = services.tables.video, services.cms.vod
    joined = table.outerjoin(video, video.c.vod_id == table.c.vod_id)
    with_cms = joined.outerjoin(vod, vod.c.vod_id == table.c.vod_id)
    number: Column[Any] = table.c[key]
    return ListRows(
        key=number,
        table=joined,
        joined=with_cms,
        cms=vod,
        conditions=conditions,
        sorts={"id": number, "time": table.c[time]},
        time=table.c[time],
        category=video.c.type_id,
        source=table.c[source],
        texts=(vod.c.vod_name, *(table.c[name] for name in texts)),
        numbers=(table.c.vod_id,),
        words=[(table.c[name], shown) for name, shown in words.items()],
    )


def _reader(
    services: Services, table: Table, key: str, cells: Callable[[RowMapping], Row]
) -> Callable[[Connection, Sequence[int]], Mapping[int, Row]]:
    """Return the function that reads records in full: cells of the video, and the ``cells`` of the record itself."""
    video = services.tables.video

    def read(connection: Connection, keys: Sequence[int]) -> Mapping[int, Row]:
        records = connection.execute(select(table).where(table.c[key].in_(keys))).mappings().all()
        vod_ids = {record["vod_id"] for record in records}
        names, categories = names_of(services, connection, list(vod_ids)), category_names(services)
        posters = posters_of(services, connection, vod_ids)
        query = select(video.c.vod_id, video.c.type_id).where(video.c.vod_id.in_(vod_ids))
        types = dict(connection.execute(query).tuples().all())
        found = {}
        for record in records:
            vod_id = record["vod_id"]
            type_id = types.get(vod_id)
            category = None if type_id is None else categories.get(type_id, str(type_id))
            first = {"video": names[vod_id], "picture": posters.get(vod_id) or None, "vod_id": vod_id}
            found[record[key]] = {**first, "category": category, key: record[key], **cells(record)}
        return found

    return read


def _history(location: str) -> dict[str, ListLink]:
    return {"history": link_of("历史", links.history(FIRST), location)}


def tasks_list(services: Services) -> NamedList:
    """Return the list of tasks, open and closed, as far as they are retained."""
    task, location = services.tables.task, services.location
    columns = (
        NAME,
        PICTURE,
        VOD_ID,
        _CATEGORY,
        ListColumn("task_id", "任务", ColumnKind.ID),
        ListColumn("kind", "类型", LABEL),
        ListColumn("stage", "阶段", LABEL),
        ListColumn("status", "状态", LABEL),
        ListColumn("priority", "优先级", LABEL, by="rank"),
        ListColumn("rank", "", ColumnKind.RANK),
        ListColumn("attempts", "次数", NUMBER),
        ListColumn("error", "原因", width="wide"),
        ListColumn("created", "入队", TIME),
        ListColumn("after", "最早运行", TIME),
        ListColumn("finished", "结束", TIME),
        ListColumn("seconds", "用时（秒）", NUMBER),
        ACTIONS,
    )

    def cells(row: RowMapping) -> Row:
        return {
            "kind": word_for(TASK_TYPES, row["task_type"]),
            "stage": word_for(TASK_STAGES, row["stage"]),
            "status": word_for(TASK_STATUSES, row["status"]),
            "priority": _priority(row, services.settings.tiers),
            "rank": row["priority"],
            "attempts": row["attempts"],
            "error": failure_text(row["last_error"], SOURCE_NAMES) or None,
            "created": row["created_at"],
            "after": row["run_after"],
            "finished": row["finished_at"],
            "seconds": _seconds(row),
            "links": (("history", row["vod_id"]), *_runs(row)),
        }

    page = ListPage(
        "list_tasks",
        "任务",
        f"队列里的与已结束的任务，最多列出最新的 {MOST:,} 条；更早的用命令 douban-pipeline list tasks。",
        columns,
        key="task_id",
        video="vod_id",
        time="created",
        links={**_history(location), "run": ListLink("运行", "/runs/{0}")},
        order="任务编号，新的在前",
    )
    words = {"task_type": TASK_TYPES, "stage": TASK_STAGES, "status": TASK_STATUSES}
    rows = _rows(services, task, "task_id", "created_at", "status", ("last_error",), words)
    rows = replace(rows, failures=(task.c.last_error,))
    return NamedList("tasks", page, rows, _reader(services, task, "task_id", cells), most=MOST)


def _priority(row: Mapping[Any, Any], tiers: Tiers) -> str:
    """Return the reason of a task's priority as text: who requested it, or how recent its video is."""
    intro = row["stage"] == TaskStage.INTRO
    priority = row["priority"]
    if priority >= (ORDERED_INTRO_PRIORITY if intro else ORDERED_PRIORITY):
        return "人工决定"
    if intro:
        return "刚同步的在前"
    if priority >= RECHECK_PRIORITY:
        return "自动复查" if row["task_type"] == TaskType.RECHECK else "人工提前"
    # The tiers' settings may have changed since.
    tier = next((tier for tier in tiers.members if tier.priority == priority), None)
    if tier is None or len(tiers.members) == 1:
        return "定期"
    if tier is tiers.members[-1]:
        return "定期：很久没有更新的影片"
    days = f"{tier.max_age.days} 天内更新"
    return f"新片：{days}" if tier is tiers.members[0] else f"定期：{days}"


def _seconds(row: Mapping[Any, Any]) -> float | None:
    began, ended = row["started_at"], row["finished_at"]
    return round((ended - began).total_seconds(), 1) if began and ended else None


def _runs(row: Mapping[Any, Any]) -> Sequence[tuple[Any, ...]]:
    return (("run", row["run_id"]),) if row["run_id"] else ()


def decisions_list(services: Services) -> NamedList:
    """Return the list of people's decisions."""
    decision, location = services.tables.decision, services.location
    columns = (
        NAME,
        PICTURE,
        VOD_ID,
        _CATEGORY,
        ListColumn("decision_id", "决定编号", ColumnKind.ID),
        ListColumn("action", "决定", LABEL),
        ListColumn("douban_id", "条目", ColumnKind.SUBJECT),
        ListColumn("reviewer", "审核员", LABEL),
        ListColumn("note", "理由"),
        ListColumn("state", "状态", LABEL),
        ListColumn("why", "说明"),
        ListColumn("at", "记录于", TIME),
        ListColumn("settled", "执行于", TIME),
        ListColumn("batch", "批次", width="narrow"),
        ACTIONS,
    )

    def cells(row: RowMapping) -> Row:
        return {
            "action": word_for(CHANGES, row["action"]),
            "douban_id": row["douban_id"],
            "reviewer": row["reviewer"],
            "note": row["note"] or None,
            "state": word_for(DECISION_STATES, row["state"]),
            "why": row["state_reason"] or None,
            "at": row["created_at"],
            "settled": row["settled_at"],
            "batch": row["batch_id"] or None,
            "links": (("history", row["vod_id"]), ("undo", row["decision_id"])),
        }

    undo = link_of("撤销…", links.revert(decision_ids=[FIRST]), location)
    page = ListPage(
        "list_decisions",
        "决定",
        f"审核员的决定，最多列出最新的 {MOST:,} 条；更早的用命令 douban-pipeline list decisions。",
        columns,
        key="decision_id",
        video="vod_id",
        time="at",
        links={**_history(location), "undo": undo},
        order="决定编号，新的在前",
    )
    words = {"action": CHANGES, "state": DECISION_STATES}
    rows = _rows(
        services, decision, "decision_id", "created_at", "reviewer", ("note", "state_reason", "batch_id"), words
    )
    return NamedList("decisions", page, rows, _reader(services, decision, "decision_id", cells), most=MOST)


def log_list(services: Services) -> NamedList:
    """Return the list of logged changes: every write, who made it, why, and its outcome."""
    log, location = services.tables.log, services.location
    columns = (
        NAME,
        PICTURE,
        VOD_ID,
        _CATEGORY,
        ListColumn("change_id", "变更", ColumnKind.ID),
        ListColumn("action", "动作", LABEL),
        ListColumn("what", "内容"),
        ListColumn("reason", "为什么", width="wide"),
        ListColumn("score", "得分", NUMBER),
        ListColumn("operator", "谁", LABEL),
        ListColumn("state", "状态", LABEL),
        ListColumn("why", "说明"),
        ListColumn("at", "时间", TIME),
        ListColumn("batch", "批次", width="narrow"),
        ACTIONS,
    )

    def cells(row: RowMapping) -> Row:
        change = logged_change(row)
        return {
            "action": word_for(CHANGES, change.action),
            "what": change.what,
            "reason": change.reason or None,
            "score": row["score"],
            "operator": word_for(OPERATORS, change.operator),
            "state": word_for(CHANGE_STATES, change.state),
            "why": change.state_reason or None,
            "at": change.at,
            "batch": change.batch_id,
            "links": (("undo", change.change_id), ("history", change.vod_id)),
        }

    page = ListPage(
        "list_log",
        "变更日志",
        f"写入了什么、谁写的、为什么，最多列出最新的 {MOST:,} 条；更早的用命令 douban-pipeline list log。",
        columns,
        key="change_id",
        video="vod_id",
        time="at",
        links={**_history(location), "undo": link_of("撤销…", links.revert(change_ids=[FIRST]), location)},
        order="变更编号，新的在前",
    )
    words = {"action": CHANGES, "state": CHANGE_STATES, "operator": OPERATORS}
    rows = _rows(services, log, "change_id", "prepared_at", "operator", ("reason", "state_reason", "batch_id"), words)
    return NamedList("log", page, rows, _reader(services, log, "change_id", cells), most=MOST)
