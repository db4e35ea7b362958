"""The change log for people: the newest writes, their number by day, and what was not written and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import Connection, RowMapping, case, func, select

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ChangeState, DecisionAction
from douban_pipeline.douban.store.videos import GONE
from douban_pipeline.douban.writes.changes import PIPELINE, decode

DAYS = 30
TROUBLE_DAYS = 7
MOST = 100


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change as it is listed.

    Attributes:
        what: The changed columns; for the id also its values.
        at: When it was prepared (UTC).
    """

    change_id: int
    vod_id: int
    action: str
    what: str
    operator: str
    reason: str
    batch_id: str
    run_id: str
    state: str
    state_reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DayOfChanges:
    """Number of changes written on one day of the site's time zone by action and operator, and of those reverted
    since.
    """

    day: date
    action: str
    operator: str
    count: int
    reverted: int


@dataclass(frozen=True, slots=True)
class Remedy:
    """What a person can do about a change that was not written: a sentence, and suitable decisions."""

    text: str
    actions: tuple[DecisionAction, ...] = ()


def newest_changes(services: Services, connection: Connection) -> list[LoggedChange]:
    """Return the newest changes, the newest first."""
    log = services.tables.log
    query = select(log).order_by(log.c.change_id.desc()).limit(MOST)
    return [logged_change(row) for row in connection.execute(query).mappings()]


def troubled_changes(services: Services, connection: Connection) -> tuple[int, list[LoggedChange]]:
    """Return the number and the newest of the changes of `TROUBLE_DAYS` days that were refused or are in conflict."""
    log = services.tables.log
    since = services.clock.now() - timedelta(days=TROUBLE_DAYS)
    troubled = (log.c.state.in_([ChangeState.CONFLICT, ChangeState.REFUSED]), log.c.prepared_at >= since)
    count = connection.execute(select(func.count()).select_from(log).where(*troubled)).scalar_one()
    query = select(log).where(*troubled).order_by(log.c.prepared_at.desc(), log.c.change_id.desc()).limit(MOST)
    return int(count), [logged_change(row) for row in connection.execute(query).mappings()]


def logged_change(row: RowMapping) -> LoggedChange:
    """Return a row of the log as it is listed."""
    old, new = decode(row["old_values"]), decode(row["new_values"])
    columns = [f"豆瓣 ID {old.get(name)} → {new[name]}" if name == "vod_douban_id" else name for name in new]
    return LoggedChange(
        row["change_id"],
        row["vod_id"],
        row["action"],
        "、".join(columns) or "仅状态",
        row["operator"],
        row["reason"],
        row["batch_id"],
        row["run_id"],
        row["state"],
        row["state_reason"],
        row["prepared_at"],
    )


def days_of_changes(services: Services, connection: Connection) -> list[DayOfChanges]:
    """Return the changes of the last `DAYS` days by day, action and operator, the newest day first."""
    log, zone = services.tables.log, services.settings.zone
    today = day_of(services.clock.now(), zone).date
    reverted = func.sum(case((log.c.state == ChangeState.REVERTED, 1), else_=0))
    found: list[DayOfChanges] = []
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
        found += [DayOfChanges(day, row[0], row[1], row[2], int(row[3])) for row in connection.execute(query)]
    return found


_REMEDIES: Sequence[tuple[str, Remedy]] = (
    (GONE, Remedy("影片已不在 CMS 中，无需处理。")),
    ("vod_lock", Remedy("影片在 CMS 中已锁定：应当写入时在 CMS 中解锁，否则无需处理。")),
    ("豆瓣 ID 已锁定", Remedy("锁定优先。锁定已过时才解锁。", (DecisionAction.unlock_id,))),
    ("简介已锁定", Remedy("锁定优先。锁定已过时才解锁。", (DecisionAction.unlock_intro,))),
    ("已被忽略", Remedy("忽略优先。不应忽略时重新匹配。", (DecisionAction.rematch,))),
    ("容纳不下", Remedy("在 CMS 中扩宽该列或改用 utf8mb4，或将该列的写入策略设为 never。")),
)
"""Remedies by a part of the reason that the change log gives for a refused write."""


def remedy_of(change: LoggedChange) -> Remedy:
    """Return what to do about a change that was refused or is in conflict."""
    for part, remedy in _REMEDIES:
        if part in change.state_reason:
            return remedy
    if change.state == ChangeState.CONFLICT:
        text = "运行中断，CMS 中的值已不是写入前后的任何一个：打开影片核对，以 CMS 为准则无需处理，否则立即同步。"
        return Remedy(text, (DecisionAction.sync_now,))
    if change.operator != PIPELINE:
        return Remedy("决定未能写入：核对影片后重新记录该决定。")
    return Remedy("CMS 中的值在写入时变了：下次访问会自动重试，不想等可立即同步。", (DecisionAction.sync_now,))
