"""Texts of the home page: current problems, and what the pipeline did in the last 24 hours.

Every query uses an index, and Dagster is not called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, case, func, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.launchpad_links import job_path
from douban_pipeline.douban.reports.health.alerts import Alert, open_alerts
from douban_pipeline.douban.reports.health.causes import (
    BREAKER,
    BUDGET,
    FAILING,
    GUARD,
    QUESTION,
    RUN,
    guard_of,
    job_of,
)
from douban_pipeline.douban.reports.health.metrics import duration
from douban_pipeline.douban.reports.health.samples import newest_before
from douban_pipeline.douban.reports.lists.statistics import UNWRITTEN_DAYS, Statistics, finished_tasks
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionState, IntroState, TaskStatus
from douban_pipeline.douban.wording import CHANGES, VERDICTS, word_for
from douban_pipeline.douban.writes.changes import PIPELINE, REVERT, SEEN_IN_CMS

DAY = timedelta(hours=24)
QUIET = timedelta(minutes=30)
"""Measurements come every five minutes: after this long without one, schedules are taken to have stopped."""
_FAILURES = "lists/tasks#failures_by_reason"
_KEPT = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem that a person should look at.

    Attributes:
        detail: What is known about it, or what to do.
        address: Link: a page of the service, or a path of Dagster's UI.
        since: Since when, if known.
    """

    title: str
    detail: str
    address: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """A sentence about what was done, and the page with the details."""

    sentence: str
    address: str


def troubles(services: Services, found: Statistics) -> list[Trouble]:
    """Return the current problems: open alerts, missing measurements, and failed writes, tasks and decisions."""
    return [
        *_silence(services),
        *(_alerted(services, alert) for alert in open_alerts(services)),
        *_left_undone(found, _refused_decisions(services)),
    ]


def _silence(services: Services) -> Iterator[Trouble]:
    now = services.clock.now()
    newest = newest_before(services, now + timedelta(microseconds=1), within=_KEPT)
    if newest is not None and now - newest.at > QUIET:
        yield Trouble(
            f"已有 {duration((now - newest.at).total_seconds())}没有健康检查",
            "定时作业 frequent_health 每五分钟一次：请看 dagster-daemon 是否在运行，定时是否开启",
            "/deployment/daemons",
            newest.at,
        )


def _alerted(services: Services, alert: Alert) -> Trouble:
    lines = [line for line in alert.detail.splitlines() if line.strip()]
    return Trouble(alert.title, "；".join(lines[:2]), _page_of(services, alert), alert.first_at)


def _page_of(services: Services, alert: Alert) -> str:
    if alert.kind == QUESTION:
        return job_path(job_of(alert.cause), services.location)
    if alert.kind == GUARD:
        return f"/assets/{guard_of(alert.cause)[0]}?view=checks"
    return {
        BREAKER: "/assets/source_gates",
        FAILING: _FAILURES,
        BUDGET: "lists/intros#spending",
        RUN: "/runs",
    }.get(alert.kind, "/assets/pipeline_health")


def _left_undone(found: Statistics, refused: int) -> Iterator[Trouble]:
    if found.unwritten:
        yield Trouble(
            f"{found.unwritten:,} 条变更没有写入",
            f"{UNWRITTEN_DAYS} 天内被拒绝，或 CMS 里的内容已被别人改动",
            "lists/log",
        )
    if found.failed_today:
        yield Trouble(
            f"今天 {found.failed_today:,} 篇简介没有通过核对",
            "没有写入，原简介不变；间隔期满后再写",
            "lists/intros#refusals",
        )
    if refused:
        yield Trouble(f"{refused:,} 条人工决定被拒绝", "最近 24 小时；每条都写明了原因", "lists/decisions")


def _refused_decisions(services: Services) -> int:
    decision, since = services.tables.decision, services.clock.now() - DAY
    query = select(func.count()).where(decision.c.state == DecisionState.REFUSED, decision.c.settled_at >= since)
    with reading(services.engine) as connection:
        return int(connection.execute(query).scalar_one())


def last_day(services: Services) -> list[Deed]:
    """Return what was done in the last 24 hours, one sentence per kind; kinds with no events are left out."""
    since = services.clock.now() - DAY
    with reading(services.engine) as connection:
        return [
            *_judged(services, connection, since),
            *_written(services, connection, since),
            *_intros(services, connection, since),
            *_finished(services, connection, since),
            *_alerts(services, connection, since),
        ]


def _judged(services: Services, connection: Connection, since: datetime) -> Iterator[Deed]:
    verdict = services.tables.verdict
    query = select(verdict.c.verdict, func.count()).where(verdict.c.created_at >= since).group_by(verdict.c.verdict)
    counts = Counter(dict(connection.execute(query).tuples().all()))
    if counts:
        kinds = [f"{word} {counts[status]:,}" for status, word in VERDICTS.items() if counts[status]]
        yield Deed(f"判定了 {counts.total():,} 次：{'，'.join(kinds)}。", "lists/verdicts")


def _written(services: Services, connection: Connection, since: datetime) -> Iterator[Deed]:
    log = services.tables.log
    by_hand = case((log.c.operator == PIPELINE, 0), else_=1)
    # What was seen in the CMS is noted in the log, and was written by nobody here.
    written = (log.c.applied_at >= since, log.c.batch_id != SEEN_IN_CMS)
    query = select(log.c.action, by_hand, func.count()).where(*written).group_by(log.c.action, by_hand)
    machine: Counter[str] = Counter()
    people: Counter[str] = Counter()
    for action, hand, count in connection.execute(query).tuples():
        (people if hand else machine)[action] += count
    reverted = machine.pop(REVERT, 0) + people.pop(REVERT, 0)
    for what, counts in (("自动写入 CMS", machine), ("按人工决定处理", people)):
        if counts:
            kinds = [f"{word_for(CHANGES, action)} {count:,}" for action, count in sorted(counts.items())]
            yield Deed(f"{what} {counts.total():,} 条变更：{'，'.join(kinds)}。", "lists/log")
    if reverted:
        yield Deed(f"撤销了 {reverted:,} 条变更。", "lists/log")


def _intros(services: Services, connection: Connection, since: datetime) -> Iterator[Deed]:
    intro = services.tables.intro
    query = (
        select(intro.c.state, func.count(), func.sum(intro.c.cost_usd))
        .where(intro.c.created_at >= since)
        .group_by(intro.c.state)
    )
    rows = connection.execute(query).tuples().all()
    counts, cost = Counter({state: count for state, count, _ in rows}), sum(float(usd or 0) for *_, usd in rows)
    if counts:
        yield Deed(
            f"请模型写了 {counts.total():,} 次简介：写入 {counts[IntroState.WRITTEN]:,}，"
            f"核对未通过 {counts[IntroState.REFUSED]:,}，无可用回答 {counts[IntroState.FAILED]:,}；"
            f"花费 ${cost:,.2f}。",
            "lists/intros",
        )


def _finished(services: Services, connection: Connection, since: datetime) -> Iterator[Deed]:
    counts = finished_tasks(services, connection, since)
    if counts:
        yield Deed(
            f"结束了 {counts.total():,} 项任务：成功 {counts[TaskStatus.SUCCESS]:,}，"
            f"跳过 {counts[TaskStatus.SKIP]:,}，简介没有通过核对 {counts[TaskStatus.FAIL]:,}。",
            "lists/tasks",
        )


def _alerts(services: Services, connection: Connection, since: datetime) -> Iterator[Deed]:
    alert = services.tables.alert
    query = select(func.count()).where(alert.c.first_at >= since)
    begun = int(connection.execute(query).scalar_one())
    if begun:
        yield Deed(f"新出现 {begun:,} 个告警。", "/assets/pipeline_health")
