"""The list of logged changes: every write, who made it, why, its outcome, and what to do about one that was refused.

Below it, the changes by day, action and operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, case, func, select

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.lists.list_page import ColumnKind, Figures, ListColumn, ListLink, Row, Table
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.keyset import Choice
from douban_pipeline.douban.reports.lists.records import MOST, history_link, record_columns, record_reader, record_rows
from douban_pipeline.douban.reports.lists.spec import FIRST, ListSpec, decide, link_of, view
from douban_pipeline.douban.reports.lists.videos import ACTIONS, LABEL, NUMBER, TIME
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ChangeState, DecisionAction
from douban_pipeline.douban.store.videos import GONE
from douban_pipeline.douban.wording import CHANGE_STATES, CHANGES, COLUMNS, OPERATORS, word_for
from douban_pipeline.douban.writes.changes import PIPELINE, decode

DAYS = 30
"""Days of which the changes are counted."""

TROUBLE_DAYS = 7
"""Days of which the changes that were not written are counted."""

_BATCH = "9000000000000005"
"""Placeholder in the config of a link for a batch."""

_TROUBLE = (ChangeState.REFUSED, ChangeState.CONFLICT)
_LOOKED_AFTER = (
    DecisionAction.unlock_id,
    DecisionAction.unlock_intro,
    DecisionAction.rematch,
    DecisionAction.sync_now,
)
"""Decisions that may help a change that was not written."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What a person can do about a change that was not written: a sentence, and suitable decisions."""

    text: str
    actions: tuple[DecisionAction, ...] = ()


_REMEDIES: Sequence[tuple[str, Remedy]] = (
    (GONE, Remedy("影片已不在 CMS 中，无需处理。")),
    ("vod_lock", Remedy("影片在 CMS 中已锁定：应当写入时在 CMS 中解锁，否则无需处理。")),
    ("豆瓣 ID 已锁定", Remedy("锁定优先。锁定已过时才解锁。", (DecisionAction.unlock_id,))),
    ("简介已锁定", Remedy("锁定优先。锁定已过时才解锁。", (DecisionAction.unlock_intro,))),
    ("已被忽略", Remedy("忽略优先。不应忽略时重新匹配。", (DecisionAction.rematch,))),
    ("容纳不下", Remedy("在 CMS 中扩宽该列或改用 utf8mb4，或将该列的写入策略设为 never。")),
)
"""Remedies by a part of the reason that the change log gives for a refused write."""


def remedy_of(change: Mapping[Any, Any]) -> Remedy:
    """Return what to do about a row of the log that was refused or is in conflict."""
    for part, remedy in _REMEDIES:
        if part in change["state_reason"]:
            return remedy
    if change["state"] == ChangeState.CONFLICT:
        text = "运行中断，CMS 中的值已不是写入前后的任何一个：打开影片核对，以 CMS 为准则无需处理，否则立即同步。"
        return Remedy(text, (DecisionAction.sync_now,))
    if change["operator"] != PIPELINE:
        return Remedy("决定未能写入：核对影片后重新记录该决定。")
    return Remedy("CMS 中的值在写入时变了：下次访问会自动重试，不想等可立即同步。", (DecisionAction.sync_now,))


def log_list(services: Services) -> ListSpec:
    """Return the list of logged changes: every write, who made it, why, and its outcome."""
    log, location = services.tables.log, services.location
    columns = (
        *record_columns,
        ListColumn("change_id", "变更", ColumnKind.ID),
        ListColumn("action", "动作", LABEL),
        ListColumn("what", "内容"),
        ListColumn("reason", "为什么", width="wide"),
        ListColumn("score", "得分", NUMBER),
        ListColumn("operator", "谁", LABEL),
        ListColumn("state", "状态", LABEL),
        ListColumn("why", "说明"),
        ListColumn("remedy", "怎么办", width="wide"),
        ListColumn("at", "时间", TIME),
        ListColumn("batch", "批次", width="narrow"),
        ACTIONS,
    )

    def cells(row: RowMapping) -> Row:
        remedy = remedy_of(row) if row["state"] in _TROUBLE else None
        return {
            "action": word_for(CHANGES, row["action"]),
            "what": _what(row),
            "reason": row["reason"] or None,
            "score": row["score"],
            "operator": word_for(OPERATORS, row["operator"]),
            "state": word_for(CHANGE_STATES, row["state"]),
            "why": row["state_reason"] or None,
            "remedy": remedy.text if remedy else None,
            "at": row["prepared_at"],
            "batch": row["batch_id"],
            "links": (
                *((action.value, row["vod_id"]) for action in (remedy.actions if remedy else ())),
                ("undo", row["change_id"]),
                ("undo_batch", row["batch_id"]),
                ("history", row["vod_id"]),
            ),
        }

    by = case((log.c.operator.in_(list(OPERATORS)), log.c.operator), else_="person")
    rows = record_rows(
        services,
        log,
        "change_id",
        "prepared_at",
        ("reason", "state_reason", "batch_id", "operator"),
        {"action": CHANGES, "state": CHANGE_STATES},
        {
            "action": Choice(log.c.action, CHANGES),
            "state": Choice(log.c.state, CHANGE_STATES),
            "operator": Choice(by, {**OPERATORS, "person": "人工"}),
        },
    )
    return ListSpec(
        "log",
        f"写入了什么、谁写的、为什么；CSV 里是最新的 {MOST:,} 条。",
        columns,
        rows,
        record_reader(services, log, "change_id", cells),
        key="change_id",
        links={
            "history": history_link(location),
            "undo": link_of("撤销…", links.revert(change_ids=[FIRST]), location),
            "undo_batch": ListLink(
                "撤销整批…", link_of("", links.revert(batch_id=_BATCH), location).address.replace(_BATCH, "{0}")
            ),
            **{action.value: decide(CHANGES[action], location, action) for action in _LOOKED_AFTER},
        },
        figures=lambda: _figures(services),
        most=MOST,
    )


def _what(row: RowMapping) -> str:
    """Return the changed columns; for the id also its values."""
    old, new = decode(row["old_values"]), decode(row["new_values"])
    columns = [
        f"豆瓣 ID {old.get(name)} → {new[name]}" if name == "vod_douban_id" else word_for(COLUMNS, name) for name in new
    ]
    return "、".join(columns) or "仅状态"


def _figures(services: Services) -> Figures:
    log, now, zone = services.tables.log, services.clock.now(), services.settings.zone
    since = now - timedelta(days=TROUBLE_DAYS)
    with reading(services.engine) as connection:
        query = select(log.c.state, func.count()).where(log.c.state.in_(_TROUBLE), log.c.prepared_at >= since)
        counts = dict(connection.execute(query.group_by(log.c.state)).tuples().all())
        days = days_of_changes(services, connection)
    written = sum(day["count"] for day in days)

    def card(state: ChangeState) -> Card:
        count, word = counts.get(state, 0), word_for(CHANGE_STATES, state)
        address = view(since=day_of(since, zone).date, state=state) if count else ""
        return Card(f"未写入：{word}", f"{count:,}", f"最近 {TROUBLE_DAYS} 天", problem_tone(count), address)

    return Figures(
        {"changes_troubled_7_days": sum(counts.values()), "changes_30_days": written},
        [*map(card, _TROUBLE), Card("写入的变更", f"{written:,}", f"最近 {DAYS} 天", address="#changes_by_day")],
        [
            Table(
                "changes_by_day",
                f"最近 {DAYS} 天的变更",
                (
                    ListColumn("day", "日期"),
                    ListColumn("action", "变更", LABEL),
                    ListColumn("operator", "谁", LABEL),
                    ListColumn("count", "次数", NUMBER),
                    ListColumn("reverted", "其中已撤销", NUMBER),
                ),
                days,
            )
        ],
    )


def days_of_changes(services: Services, connection: Connection) -> list[Row]:
    """Return the changes of the last `DAYS` days by day, action and operator, the newest day first."""
    log, zone = services.tables.log, services.settings.zone
    today = day_of(services.clock.now(), zone).date
    reverted = func.sum(case((log.c.state == ChangeState.REVERTED, 1), else_=0))
    found: list[Row] = []
    for back in range(DAYS):
        day = today - timedelta(days=back)
        # Midnights, not steps of 24 hours: some zones change their clocks.
        start, end = (midnight(each, zone) for each in (day, day + timedelta(days=1)))
        query = (
            select(log.c.action, log.c.operator, func.count(), reverted)
            .where(log.c.applied_at >= start, log.c.applied_at < end)
            .group_by(log.c.action, log.c.operator)
            .order_by(func.count().desc(), log.c.action, log.c.operator)
        )
        for action, operator, count, undone in connection.execute(query):
            words = {"action": word_for(CHANGES, action), "operator": word_for(OPERATORS, operator)}
            found.append({"day": str(day), **words, "count": count, "reverted": int(undone)})
    return found
