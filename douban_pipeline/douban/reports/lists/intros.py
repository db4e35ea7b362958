"""The list of videos whose intro is locked, was written by the model, or failed.

Below it: what has no source text, what waits, what the fact guard refuses, and what the model costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, case, or_, select, true

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.lists.list_page import Figures, ListColumn, Row, Table
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.intro_figures import DAYS, Intros, intros
from douban_pipeline.douban.reports.lists.intro_proofs import origins_table, proofs_table
from douban_pipeline.douban.reports.lists.keyset import Choice, ListRows
from douban_pipeline.douban.reports.lists.lookup import names_of, synopses_of
from douban_pipeline.douban.reports.lists.spec import ListSpec, batch_link, counted, view
from douban_pipeline.douban.reports.lists.videos import (
    ACTIONS,
    LABEL,
    NAME,
    NUMBER,
    TIME,
    VIDEO_COLUMNS,
    VOD_ID,
    category_names,
    common_links,
    known_of,
    named,
    video_rows,
)
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionAction, TaskType
from douban_pipeline.douban.store.tasks import OPEN
from douban_pipeline.douban.store.videos import intro_of_person, is_intro_of_person
from douban_pipeline.douban.wording import TASK_STATUSES, word_for

MOST = 100
"""Most videos without a source text that are listed."""

_SHOWN = 400
"""Characters of a synopsis that a row shows, more than an intro has: the model's are as many as the videos."""

_STATES = {"locked": "已锁定", "failed": "失败", "unlocked": "未锁定"}


def intros_list(services: Services) -> ListSpec:
    """Return the list of videos whose intro is locked, was written by the model, or failed."""
    video, categories, location = services.tables.video, category_names(services), services.location
    site = VideoSite.of(services.settings)
    on = services.settings.ai_intros
    switched_off = "" if on else "AI 简介未开启（DOUBAN_PIPELINE_AI_INTROS），不会写入新的简介。"
    columns = (
        *VIDEO_COLUMNS,
        ListColumn("state", "状态", LABEL),
        ListColumn("source", "由谁", LABEL),
        ListColumn("text", "简介", width="wide"),
        ListColumn("why", "失败原因"),
        ListColumn("written", "上次 AI 处理", TIME),
        ListColumn("since", "锁定时间", TIME),
        ListColumn("fails", "失败次数", NUMBER),
        ListColumn("failed_at", "上次失败", TIME),
        ListColumn("next", "下次", TIME),
        ListColumn("hits", "播放", NUMBER),
        ACTIONS,
    )

    def read(connection: Connection, vod_ids: Sequence[int]) -> Mapping[int, Row]:
        texts, retries = synopses_of(services, connection, vod_ids), _retries(services, connection, vod_ids)
        return {
            vod_id: {
                **named(row, categories, site),
                **_intro_cells(row),
                "next": retries.get(vod_id),
                "text": _beginning(texts.get(vod_id, "CMS 中没有简介")),
            }
            for vod_id, row in known_of(services, connection, vod_ids).items()
        }

    locked = video.c.intro_locked == true()
    failing = video.c.intro_ai_fail_count > 0
    state = case((locked, "locked"), (failing, "failed"), else_="unlocked")
    by = case((and_(locked, intro_of_person(services.tables)), "person"), else_="model")
    rows = video_rows(
        services,
        [or_(locked, video.c.intro_ai_last_at.is_not(None), failing)],
        {"written": video.c.intro_ai_last_at, "since": video.c.intro_lock_time},
        video.c.intro_ai_last_at,
        {"state": Choice(state, _STATES), "source": Choice(by, {"person": "人工", "model": "模型"})},
    )
    return ListSpec(
        "intros",
        f"{switched_off}简介已锁定、由模型写过、或没有写成的影片。锁定的简介不会被任何自动运行改动。"
        "没有写成而没有“下次”的，间隔期满后再写。",
        columns,
        rows,
        read,
        links=common_links(location),
        batch=(
            batch_link("批量重写", links.rewrite_intros, location),
            batch_link("批量锁定", lambda ids: links.batch(DecisionAction.lock_intro, ids), location),
            batch_link("批量解锁", lambda ids: links.batch(DecisionAction.unlock_intro, ids), location),
        ),
        figures=lambda: _figures(services, rows),
    )


def _intro_cells(row: RowMapping) -> dict[str, Any]:
    vod_id, locked, failing = row["vod_id"], row["intro_locked"], row["intro_ai_fail_count"] > 0
    moment: datetime | None = row["intro_ai_last_at"]
    return {
        "state": _STATES["locked" if locked else "failed" if failing else "unlocked"],
        "source": "人工" if locked and is_intro_of_person(row) else row["intro_ai_source"] or None,
        "since": row["intro_lock_time"],
        "written": moment,
        "fails": row["intro_ai_fail_count"] or None,
        "failed_at": row["intro_ai_last_fail_at"],
        "why": row["intro_ai_last_fail_reason"] if failing else None,
        "links": (("unlock_intro" if locked else "lock_intro", vod_id), ("redo", vod_id), ("history", vod_id)),
    }


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _retries(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, datetime]:
    """Return when the intros that failed before are tried again, by video, as far as they are queued."""
    task = services.tables.task
    query = select(task.c.vod_id, task.c.run_after).where(
        task.c.vod_id.in_(vod_ids), task.c.task_type == TaskType.AI_INTRO, task.c.status.in_(OPEN), task.c.attempts > 0
    )
    return dict(connection.execute(query).tuples().all())


def _figures(services: Services, rows: ListRows) -> Figures:
    found = intros(services)
    queued = sum(item.count for item in found.queued)
    waiting = found.waiting.count if found.waiting else 0
    failing = replace(rows, conditions=[services.tables.video.c.intro_ai_fail_count > 0, *rows.conditions[1:]])
    failed = counted(services, failing, rows.choices["state"].by).get("failed", 0)
    refused = sum(row["times"] for row in found.refusals)
    return Figures(
        {
            "locked_by_model": found.locked_by_model,
            "locked_by_people": found.locked_by_people,
            "failed": failed,
            "without_source": len(found.sourceless),
            "waiting": waiting,
            "queued": queued,
            "violations": refused,
            "spent_usd": round(found.usd, 4),
        },
        [
            Card("模型写入并锁定", f"{found.locked_by_model:,}", "部影片"),
            Card(
                "人工锁定",
                f"{found.locked_by_people:,}",
                "部影片",
                address=view(source="person") if found.locked_by_people else "",
            ),
            Card("失败", f"{failed:,}", "没有写成", problem_tone(failed), view(state="failed") if failed else ""),
            Card("原简介太短", f"{len(found.sourceless):,}", f"最近 {DAYS} 天，未改写", address="#sourceless"),
            Card(
                "等待生成", f"{waiting + queued:,}", f"其中 {queued:,} 部已排队" if found.on else "未开启", "", "#queue"
            ),
            Card("费用", f"${found.usd:,.2f}", f"最近 {DAYS} 天", address="#spending"),
        ],
        list(_tables(services, found)),
    )


def _tables(services: Services, found: Intros) -> Iterator[Table]:
    shown = found.sourceless[:MOST]
    with reading(services.engine) as connection:
        names = names_of(services, connection, [item.vod_id for item in shown])
        proofs, origins = proofs_table(services, connection), origins_table(services, connection)
    yield proofs
    yield Table(
        "sourceless",
        "没有可改写的原简介",
        (NAME, VOD_ID, ListColumn("reason", "原因", width="wide"), ListColumn("at", "时间", TIME), ACTIONS),
        [
            {
                "video": names[item.vod_id],
                "vod_id": item.vod_id,
                "reason": item.reason,
                "at": item.when,
                "links": (("redo", item.vod_id),),
            }
            for item in shown
        ],
        f"最近 {DAYS} 天因豆瓣简介太短而没有改写的影片：没有原文，情节只能编造。原有简介不变。",
        total=len(found.sourceless),
        video="vod_id",
        links=common_links(services.location),
    )
    yield Table(
        "queue",
        "等待中",
        (
            ListColumn("what", "什么"),
            ListColumn("count", "数量", NUMBER),
            ListColumn("later", "其中未到时间", NUMBER),
            ListColumn("oldest", "最早", TIME),
            ListColumn("of", "何时的", LABEL),
        ),
        list(_waiting(found)),
        "到期的影片在下次运行时排队，每分片每次不超过设定的数目。",
    )
    yield Table(
        "refusals",
        "核对未通过的原因",
        (
            ListColumn("kind", "类别"),
            ListColumn("times", "次数", NUMBER),
            ListColumn("videos", "影片数", NUMBER),
            ListColumn("example", "例", width="wide"),
        ),
        found.refusals,
        f"最近 {DAYS} 天，最常见的在前；一篇可有多条。",
    )
    yield origins
    yield Table(
        "spending",
        "每天的调用与费用",
        (
            ListColumn("day", "日期"),
            ListColumn("calls", "调用", NUMBER),
            ListColumn("written", "写成", NUMBER),
            ListColumn("refused", "核对未通过", NUMBER),
            ListColumn("failed", "无可用回答", NUMBER),
            ListColumn("usd", "费用（美元）", NUMBER),
            ListColumn("tokens", "token", NUMBER),
        ),
        found.days,
    )


def _waiting(found: Intros) -> Iterator[Row]:
    if found.waiting is not None and found.waiting.count:
        what = {"what": "到期，尚未排队", "count": found.waiting.count}
        yield {**what, "later": 0, "oldest": found.waiting.oldest, "of": "同步字段"}
    for item in found.queued:
        what = {"what": f"任务：{word_for(TASK_STATUSES, item.status)}", "count": item.count}
        yield {**what, "later": item.later, "oldest": item.created, "of": "入队"}
