"""Metrics of the pipeline at one moment. Every query uses an index; nothing is written.

Definitions:

- A task *succeeded* if it was closed as SUCCESS; a skipped task neither succeeded nor failed.
- A task *failed* if it was closed as FAIL, or if it is open, was attempted before, and its video's last failure is in
  the requested period. Tasks are requeued after a failure, so most failures are of the second kind; a failure whose
  task succeeded later is no longer counted. A task that waits because a source is closed has not failed.
- The *duration* of a task is the time from when a run started it to its end; tasks of older releases have no start
  time and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import Connection, case, func, select
from sqlalchemy.sql import ColumnElement

from douban_pipeline.cms.values import readable
from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.database import reading
from douban_pipeline.core.gate import GateStatus
from douban_pipeline.douban.chain.due.due_videos import in_scope
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import ShownStatus, status_counts
from douban_pipeline.douban.store.states import IntroState, TaskStatus, TaskType
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.task_queue import task_leases
from douban_pipeline.douban.store.tasks import OPEN

HOUR = timedelta(hours=1)
DAY = timedelta(hours=24)
DAYS = 14
"""Number of days before today for which verdicts are counted."""


@dataclass(frozen=True, slots=True)
class OpenTasks:
    """Open tasks of one type and status, and of one stage if they are counted by stage (else it is empty).

    Attributes:
        later: How many of them may not be started yet.
        oldest: Earliest moment from which one may be started (UTC).
        created: When the first of them was queued (UTC).
    """

    task_type: str
    stage: str
    status: str
    count: int
    later: int
    oldest: datetime
    created: datetime


@dataclass(frozen=True, slots=True)
class ClosedTasks:
    """Tasks of one type and status that were closed in the last 24 hours; seconds are None if no start is known."""

    task_type: str
    status: str
    count: int
    mean_seconds: float | None
    p95_seconds: float | None


@dataclass(frozen=True, slots=True)
class TaskOutcomes:
    """Numbers of tasks of a period by outcome; see the module's definitions."""

    succeeded: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def judged(self) -> int:
        """How many either succeeded or failed."""
        return self.succeeded + self.failed

    @property
    def failure_share(self) -> float | None:
        """Share of these that failed, 0 to 1; None if there are none."""
        return self.failed / self.judged if self.judged else None

    def __add__(self, other: TaskOutcomes) -> TaskOutcomes:
        """Return the sum of both."""
        return TaskOutcomes(self.succeeded + other.succeeded, self.failed + other.failed, self.skipped + other.skipped)


@dataclass(frozen=True, slots=True)
class OldestDue:
    """The due video that has waited longest, and since when (UTC)."""

    vod_id: int
    title: str
    since: datetime


@dataclass(frozen=True, slots=True)
class VerdictDay:
    """Number of verdicts on a day of the site's time zone, by status."""

    day: date
    counts: Mapping[str, int]

    @property
    def judged(self) -> int:
        """How many verdicts were conclusive: those given while a source was unhealthy are not."""
        return sum(self.counts.get(status, 0) for status in ("CONFIRMED", "REVIEW", "NOT_FOUND"))

    @property
    def review_share(self) -> float | None:
        """Share of these that goes to a person, 0 to 1; None if there are none."""
        return self.counts.get("REVIEW", 0) / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class IntroBudget:
    """Cost of today's intros, in US dollars, and how many were written (or shown in a dry run) or failed."""

    usd: float
    budget_usd: float
    written: int
    failed: int


@dataclass(frozen=True, slots=True)
class Health:
    """Everything that is measured at a moment (UTC); closed tasks are of the last 24 hours.

    Attributes:
        due: Number of videos in scope whose next visit is due.
        oldest_due: The due video that has waited longest.
        statuses: Numbers of live videos by status, as people read it.
        last_hour, last_day: Outcomes of tasks, by type.
        verdict_days: The last `DAYS` days and today, the oldest first.
    """

    at: datetime
    due: int
    oldest_due: OldestDue | None
    statuses: Mapping[ShownStatus, int]
    open_tasks: Sequence[OpenTasks]
    closed_tasks: Sequence[ClosedTasks]
    last_hour: Mapping[str, TaskOutcomes]
    last_day: Mapping[str, TaskOutcomes]
    gates: Sequence[GateStatus]
    verdict_days: Sequence[VerdictDay]
    spending: IntroBudget

    @property
    def in_review(self) -> int:
        """Videos that wait for a person."""
        return self.statuses[ShownStatus.REVIEW]


def measure(services: Services) -> Health:
    """Return the current measurement.

    Raises:
        GateUnreadable: The sources' states cannot be read.
    """
    now = services.clock.now()
    gates = services.gate.status()
    with reading(services.engine) as connection:
        closed = _closed(connection, services.tables, now)
        return Health(
            at=now,
            due=due_count(connection, services),
            oldest_due=oldest_due(connection, services),
            statuses=status_counts(connection, services.tables, services.cms),
            open_tasks=open_tasks(connection, services),
            closed_tasks=closed,
            last_hour=outcomes_since(connection, services, now - HOUR),
            last_day=_outcomes(
                [(item.task_type, item.status, item.count) for item in closed],
                _requeued(connection, services, now - DAY),
            ),
            gates=gates,
            verdict_days=verdict_days(connection, services),
            spending=_spending(connection, services, now),
        )


def total(outcomes: Mapping[str, TaskOutcomes]) -> TaskOutcomes:
    """Return the outcomes of all types together."""
    return sum(outcomes.values(), TaskOutcomes())


def due_count(connection: Connection, services: Services) -> int:
    """Return how many videos in scope are due."""
    query = select(func.count()).select_from(services.tables.video).where(*_due(services))
    return int(connection.execute(query).scalar_one())


def open_tasks(connection: Connection, services: Services, *, by_stage: bool = False) -> list[OpenTasks]:
    """Return the queue by type and status and, with ``by_stage``, by stage."""
    task = services.tables.task
    kind = (task.c.task_type, *([task.c.stage] if by_stage else []), task.c.status)
    later = func.sum(case((task.c.run_after > services.clock.now(), 1), else_=0))
    query = (
        select(*kind, func.count(), later, func.min(task.c.run_after), func.min(task.c.created_at))
        .where(task.c.status.in_(OPEN))
        .group_by(*kind)
        .order_by(*kind)
    )
    return [
        OpenTasks(task_type, stage[0] if stage else "", status, count, int(waiting), oldest, created)
        for task_type, *stage, status, count, waiting, oldest, created in connection.execute(query)
    ]


def outcomes_since(connection: Connection, services: Services, since: datetime) -> dict[str, TaskOutcomes]:
    """Return the outcomes of tasks since a moment, by type."""
    task = services.tables.task
    closed = (
        select(task.c.task_type, task.c.status, func.count())
        .where(task.c.finished_at >= since, task.c.open_key.is_(None))
        .group_by(task.c.task_type, task.c.status)
    )
    counts = [(task_type, status, count) for task_type, status, count in connection.execute(closed)]
    return _outcomes(counts, _requeued(connection, services, since))


def _requeued(connection: Connection, services: Services, since: datetime) -> dict[str, int]:
    """Return how many open tasks failed since a moment, by type."""
    task, video = services.tables.task, services.tables.video
    query = (
        select(task.c.task_type, func.count())
        .join(video, video.c.vod_id == task.c.vod_id)
        .where(task.c.status.in_(OPEN), task.c.attempts > 0, last_failure(services.tables) >= since)
        .group_by(task.c.task_type)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def _outcomes(closed: Sequence[tuple[str, str, int]], requeued: Mapping[str, int]) -> dict[str, TaskOutcomes]:
    found: dict[str, dict[str, int]] = {}
    for task_type, status, count in closed:
        found.setdefault(task_type, {})[status] = count
    for task_type in requeued:
        found.setdefault(task_type, {})
    return {
        task_type: TaskOutcomes(
            counts.get(TaskStatus.SUCCESS, 0),
            counts.get(TaskStatus.FAIL, 0) + requeued.get(task_type, 0),
            counts.get(TaskStatus.SKIP, 0),
        )
        for task_type, counts in sorted(found.items())
    }


def last_failure(tables: OwnTables) -> ColumnElement[datetime | None]:
    """Return the expression for when a task's video last failed at work of the task's type; needs both tables."""
    task, video = tables.task, tables.video
    return case(
        (task.c.task_type == TaskType.AI_INTRO, video.c.intro_ai_last_fail_at), else_=video.c.douban_last_fail_at
    )


def verdict_days(connection: Connection, services: Services) -> list[VerdictDay]:
    """Return the numbers of verdicts of the last `DAYS` days and of today so far, the oldest first."""
    verdict, zone = services.tables.verdict, services.settings.zone
    today = day_of(services.clock.now(), zone).date
    days = [today - timedelta(days=back) for back in range(DAYS, -1, -1)]
    found = []
    for day in days:
        # Midnights, not steps of 24 hours: some zones change their clocks.
        start, end = (midnight(each, zone) for each in (day, day + timedelta(days=1)))
        query = (
            select(verdict.c.verdict, func.count())
            .where(verdict.c.created_at >= start, verdict.c.created_at < end)
            .group_by(verdict.c.verdict)
        )
        found.append(VerdictDay(day, {row[0]: row[1] for row in connection.execute(query)}))
    return found


def _due(services: Services) -> list[ColumnElement[bool]]:
    due = services.tables.video.c.douban_next_sync_at <= services.clock.now()
    return [due, *in_scope(services.tables, services.settings)]


@dataclass(frozen=True, slots=True)
class LeftTasks:
    """Open tasks of one type in one shard that no run takes, and since when the oldest could be done."""

    task_type: str
    shard: int
    count: int
    oldest: datetime


def tasks_left(connection: Connection, services: Services, before: datetime) -> list[LeftTasks]:
    """Return the open tasks that could be done ``before`` and that no run holds, by type and shard."""
    task, now = services.tables.task, services.clock.now()
    query = (
        select(task.c.task_type, task.c.shard, func.count(), func.min(task.c.run_after))
        .where(
            task.c.status.in_(OPEN),
            task.c.run_after < before,
            task_leases(services.tables).free(now),
        )
        .group_by(task.c.task_type, task.c.shard)
    )
    return [LeftTasks(*row) for row in connection.execute(query)]


def oldest_due(connection: Connection, services: Services) -> OldestDue | None:
    """Return the due video that has waited longest; None if none is due."""
    video = services.tables.video
    query = select(video.c.vod_id, video.c.douban_next_sync_at).where(*_due(services))
    oldest = connection.execute(query.order_by(video.c.douban_next_sync_at).limit(1)).first()
    if oldest is None:
        return None
    row = services.cms.rows(connection, [oldest.vod_id]).get(oldest.vod_id)
    return OldestDue(oldest.vod_id, readable(row["vod_name"]) if row else "", oldest.douban_next_sync_at)


def _closed(connection: Connection, tables: OwnTables, now: datetime) -> list[ClosedTasks]:
    task = tables.task
    query = select(task.c.task_type, task.c.status, task.c.started_at, task.c.finished_at).where(
        task.c.finished_at >= now - DAY, task.c.open_key.is_(None)
    )
    counts: dict[tuple[str, str], int] = {}
    took: dict[tuple[str, str], list[float]] = {}
    for task_type, status, started, finished in connection.execute(query):
        counts[task_type, status] = counts.get((task_type, status), 0) + 1
        if started is not None:
            took.setdefault((task_type, status), []).append((finished - started).total_seconds())
    return [ClosedTasks(*key, count, *_mean_and_p95(took.get(key, []))) for key, count in sorted(counts.items())]


def _mean_and_p95(seconds: list[float]) -> Iterator[float | None]:
    if not seconds:
        yield from (None, None)
        return
    yield sum(seconds) / len(seconds)
    yield sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]


def _spending(connection: Connection, services: Services, now: datetime) -> IntroBudget:
    intro, settings = services.tables.intro, services.settings
    query = (
        select(intro.c.state, func.count(), func.sum(intro.c.cost_usd))
        .where(intro.c.created_at >= midnight(day_of(now, settings.zone).date, settings.zone))
        .group_by(intro.c.state)
    )
    rows = connection.execute(query).all()
    counts = {row[0]: row[1] for row in rows}
    written = sum(counts.get(state, 0) for state in (IntroState.WRITTEN, IntroState.WITHDRAWN, IntroState.PREVIEW))
    failed = sum(counts.get(state, 0) for state in (IntroState.REFUSED, IntroState.FAILED))
    return IntroBudget(sum(row[2] for row in rows), settings.llm_budget_usd_per_day, written, failed)


def duration(seconds: float) -> str:
    """Return a duration as text, in a unit that makes it readable."""
    units = ((90, 1.0, "秒"), (5400, 60.0, "分"), (172_800, 3600.0, "小时"), (math.inf, 86_400.0, "天"))
    size, unit = next((size, unit) for limit, size, unit in units if seconds < limit)
    value = seconds / size
    return f"{value:,.0f} {unit}" if value >= 100 else f"{round(value, 1 if value >= 10 else 2):g} {unit}"
