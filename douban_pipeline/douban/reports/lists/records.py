"""Lists of records about videos: what they share, and those of tasks and of decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Column, Connection, RowMapping, Table, and_, func, or_, select

from douban_pipeline.core.clock import day_of
from douban_pipeline.core.database import reading
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.lists.list_page import ColumnKind, Figures, ListColumn, ListLink, Row
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban import links
from douban_pipeline.douban.pace import Tiers
from douban_pipeline.douban.reports.lists.keyset import Choice, ListRows
from douban_pipeline.douban.reports.lists.lookup import names_of
from douban_pipeline.douban.reports.lists.spec import FIRST, ListSpec, link_of, view
from douban_pipeline.douban.reports.lists.task_figures import task_figures
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
from douban_pipeline.douban.reports.video_site import posters_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import NAMING, SERVED_RUN
from douban_pipeline.douban.store.states import DecisionState, TaskStage, TaskType
from douban_pipeline.douban.store.tasks import ORDERED_INTRO_PRIORITY, ORDERED_PRIORITY, RECHECK_PRIORITY
from douban_pipeline.douban.wording import (
    CHANGES,
    DECISION_STATES,
    SOURCE_NAMES,
    TASK_STAGES,
    TASK_STATUSES,
    TASK_TYPES,
    word_for,
)

_OPEN = (DecisionState.PENDING, DecisionState.QUEUED)
REFUSED_DAYS = 7
"""Days of which the refused decisions are counted."""

MOST = 100_000
"""Most rows of the CSV file of tasks, of decisions and of changes."""

record_columns = (NAME, PICTURE, VOD_ID, ListColumn("category", "分类", LABEL))
"""The columns with which the list of records begin."""


def record_rows(
    services: Services,
    table: Table,
    key: str,
    time: str,
    texts: Sequence[str],
    words: Mapping[str, Mapping[str, str]],
    choices: Mapping[str, Choice],
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
        conditions=(),
        sorts={"id": number, "time": table.c[time]},
        time=table.c[time],
        category=video.c.type_id,
        choices=choices,
        texts=(vod.c.vod_name, *(table.c[name] for name in texts)),
        numbers=(table.c.vod_id,),
        words=[(table.c[name], shown) for name, shown in words.items()],
    )


def record_reader(
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


def history_link(location: str) -> ListLink:
    """Return the link to a video's history."""
    return link_of("历史", links.history(FIRST), location)


def tasks_list(services: Services) -> ListSpec:
    """Return the list of tasks, open and closed, as far as they are retained."""
    task, location = services.tables.task, services.location
    columns = (
        *record_columns,
        ListColumn("task_id", "任务", ColumnKind.ID),
        ListColumn("kind", "类型", LABEL),
        ListColumn("stage", "阶段", LABEL),
        ListColumn("status", "状态", LABEL),
        ListColumn("priority", "优先级", LABEL),
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
            "attempts": row["attempts"],
            "error": failure_text(row["last_error"], SOURCE_NAMES) or None,
            "created": row["created_at"],
            "after": row["run_after"],
            "finished": row["finished_at"],
            "seconds": _seconds(row),
            "links": (("history", row["vod_id"]), *_runs(row)),
        }

    words = {"task_type": TASK_TYPES, "stage": TASK_STAGES, "status": TASK_STATUSES}
    choices = {"kind": Choice(task.c.task_type, TASK_TYPES), "status": Choice(task.c.status, TASK_STATUSES)}
    rows = record_rows(services, task, "task_id", "created_at", ("last_error",), words, choices)
    sorts = {**rows.sorts, "priority": task.c.priority}
    return ListSpec(
        "tasks",
        f"队列里的与已结束的任务；CSV 里是最新的 {MOST:,} 条。",
        columns,
        replace(rows, failures=(task.c.last_error,), sorts=sorts),
        record_reader(services, task, "task_id", cells),
        key="task_id",
        links={"history": history_link(location), "run": ListLink("运行", "/runs/{0}")},
        figures=lambda: task_figures(services),
        most=MOST,
    )


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
    # What the served sheet recorded has no run in Dagster.
    return (("run", row["run_id"]),) if row["run_id"] and not row["run_id"].startswith(SERVED_RUN) else ()


def decisions_list(services: Services) -> ListSpec:
    """Return the list of people's decisions."""
    decision, location = services.tables.decision, services.location
    columns = (
        *record_columns,
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
            "why": row["state_reason"] or _waits_for(row),
            "at": row["created_at"],
            "settled": row["settled_at"],
            "batch": row["batch_id"] or None,
            "links": (("history", row["vod_id"]), ("undo", row["decision_id"])),
        }

    undo = link_of("撤销…", links.revert(decision_ids=[FIRST]), location)
    choices = {"action": Choice(decision.c.action, CHANGES), "state": Choice(decision.c.state, DECISION_STATES)}
    texts = ("note", "state_reason", "batch_id", "reviewer")
    return ListSpec(
        "decisions",
        f"审核员的决定；CSV 里是最新的 {MOST:,} 条。",
        columns,
        record_rows(
            services,
            decision,
            "decision_id",
            "created_at",
            texts,
            {"action": CHANGES, "state": DECISION_STATES},
            choices,
        ),
        record_reader(services, decision, "decision_id", cells),
        key="decision_id",
        links={"history": history_link(location), "undo": undo},
        figures=lambda: _decision_figures(services),
        most=MOST,
    )


def _waits_for(row: RowMapping) -> str | None:
    """Return what a decision waits for, apart from its turn."""
    unchecked = row["action"] in NAMING and row["checked_at"] is None
    return "条目尚未核对" if unchecked and row["state"] == DecisionState.PENDING else None


def _decision_figures(services: Services) -> Figures:
    decision, now = services.tables.decision, services.clock.now()
    since = now - timedelta(days=REFUSED_DAYS)
    lately = and_(decision.c.state == DecisionState.REFUSED, decision.c.created_at >= since)
    query = select(decision.c.state, func.count()).where(or_(decision.c.state.in_(_OPEN), lately))
    with reading(services.engine) as connection:
        counts = dict(connection.execute(query.group_by(decision.c.state)).tuples().all())
    refused = counts.get(DecisionState.REFUSED, 0)
    day = day_of(since, services.settings.zone).date

    def at(state: DecisionState, since: date | None = None) -> str:
        return view(since=since, state=state) if counts.get(state) else ""

    return Figures(
        {"decisions_open": sum(counts.get(state, 0) for state in _OPEN), "decisions_refused_7_days": refused},
        [
            *(
                Card(
                    word_for(DECISION_STATES, state), f"{counts.get(state, 0):,}", "通常半分钟内执行", address=at(state)
                )
                for state in _OPEN
            ),
            Card(
                "被拒绝",
                f"{refused:,}",
                f"最近 {REFUSED_DAYS} 天；按原因改正后重新记录",
                problem_tone(refused),
                at(DecisionState.REFUSED, day),
            ),
        ],
    )
