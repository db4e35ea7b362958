"""Intros as people look after them: what is locked, what fails, what waits, what the guard refuses, what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, case, func, select, true
from sqlalchemy.sql import ColumnElement

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.intros.author import NO_SOURCE
from douban_pipeline.douban.intros.due import DueIntros
from douban_pipeline.douban.reports.pages.lookup import VideoNames, names_of, synopses_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import IntroState, TaskStatus, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import OPEN

if TYPE_CHECKING:
    from pandas import DataFrame

DAYS = 30
"""How many days back failures, refusals and costs are shown."""

MOST = 100
"""Locked intros of each sort, and failures, that are listed."""

_ALL = 1_000_000


@dataclass(slots=True)
class GuardRefusals:
    """What the guard refused for one kind of violation: how often, in how many videos, and a sentence of it."""

    times: int = 0
    videos: set[int] = field(default_factory=set)
    example: str = ""


@dataclass(slots=True)
class DaySpending:
    """What a day's calls of the language model cost, and what became of the answers."""

    calls: int = 0
    written: int = 0
    refused: int = 0
    failed: int = 0
    usd: float = 0.0
    tokens: int = 0


def calls(services: Services, connection: Connection) -> tuple[dict[str, GuardRefusals], dict[date, DaySpending]]:
    """Return the refusals by kind of violation and the spending by day, of the last `DAYS` days."""
    import pandas  # only a run that makes this report has to wait for it to load

    intro, zone = services.tables.intro, services.settings.zone
    today = day_of(services.clock.now(), zone).date
    tokens = intro.c.prompt_tokens + intro.c.completion_tokens
    query = select(
        intro.c.vod_id, intro.c.state, intro.c.created_at, intro.c.cost_usd, tokens, intro.c.violations
    ).where(intro.c.created_at >= midnight(today - timedelta(days=DAYS - 1), zone))
    columns = ["vod_id", "state", "created_at", "usd", "tokens", "violations"]
    rows = connection.execute(query.execution_options(yield_per=2000))
    table = pandas.DataFrame(map(tuple, rows), columns=columns)
    if table.empty:
        return {}, {}
    written = [IntroState.WRITTEN, IntroState.WITHDRAWN, IntroState.PREVIEW]
    table["day"] = pandas.to_datetime(table["created_at"], utc=True).dt.tz_convert(zone).dt.date
    table["written"] = table["state"].isin(written)
    table["refused"] = table["state"] == IntroState.REFUSED
    table["failed"] = table["state"] == IntroState.FAILED
    by_day = table.groupby("day")
    sums = by_day[["written", "refused", "failed", "usd", "tokens"]].sum()
    days = {
        day: DaySpending(int(count), int(sums.written[day]), int(sums.refused[day]), int(sums.failed[day]))
        for day, count in by_day.size().items()
    }
    for day, spent in days.items():
        spent.usd, spent.tokens = float(sums.usd[day]), int(sums.tokens[day])
    return _refusals(table[["vod_id", "violations"]].explode("violations").dropna()), days


def _refusals(refused: DataFrame) -> dict[str, GuardRefusals]:
    """Return the violations by kind; of each the newest sentence as an example."""
    refused = refused.assign(
        code=[each["code"] for each in refused["violations"]], text=[each["text"] for each in refused["violations"]]
    )
    return {
        str(code): GuardRefusals(len(rows), set(rows["vod_id"].tolist()), rows["text"].iloc[-1])
        for code, rows in refused.groupby("code", sort=False)
    }


@dataclass(frozen=True, slots=True)
class LockedIntro:
    """A locked intro: whose it is (the model's name, empty for a person's), and since when (UTC)."""

    vod_id: int
    model: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class FailedIntro:
    """A video whose intro failed in the last `DAYS` days and has not come since: how often, when last, and why."""

    vod_id: int
    times: int
    last: datetime | None
    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class SourcelessIntro:
    """A video whose synopsis at Douban is too short for an intro: why, and when that was found."""

    vod_id: int
    reason: str
    when: datetime


@dataclass(frozen=True, slots=True)
class Queued:
    """Open tasks of one status: how many, how many of them may not be taken on yet, and when the first was queued."""

    status: str
    count: int
    later: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class UnqueuedIntros:
    """Videos that shall get an intro and have no task yet: how many, and since when the first could have had one."""

    count: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class Intros:
    """Everything that is shown.

    Attributes:
        on: Whether intros are written at all.
        locked_by_model: How many the model wrote and locked.
        locked_by_people: How many a person locked.
        locked: The newest of both sorts, a person's first.
        failed: The newest failures.
        failed_count: How many there are.
        sourceless: The newest videos without a source text for an intro, of the last `DAYS` days.
        sourceless_count: How many there are.
        queued: Open tasks.
        waiting: Videos without a task; None where intros are switched off.
        refusals: By kind of violation, the most frequent first.
        days: Spending by day, the newest first.
        names: How the videos listed are called.
        texts: Their synopses in the CMS, as plain text.
    """

    on: bool
    locked_by_model: int
    locked_by_people: int
    locked: Sequence[LockedIntro]
    failed: Sequence[FailedIntro]
    failed_count: int
    sourceless: Sequence[SourcelessIntro]
    sourceless_count: int
    queued: Sequence[Queued]
    waiting: UnqueuedIntros | None
    refusals: Mapping[str, GuardRefusals]
    days: Mapping[date, DaySpending]
    names: VideoNames
    texts: Mapping[int, str]

    @property
    def usd(self) -> float:
        """US dollars of all days."""
        return sum(day.usd for day in self.days.values())


def intros(services: Services) -> Intros:
    """Return what the report shows of intros."""
    on = services.settings.ai_intros
    with reading(services.engine) as connection:
        by_model, by_people = _locked_counts(services, connection)
        locked = [*_locked(services, connection, of_people=True), *_locked(services, connection, of_people=False)]
        failing = _failing(services, connection)
        failed = sorted(failing, key=lambda item: (-item.last.timestamp() if item.last else 0.0, item.vod_id))[:MOST]
        sourceless = _sourceless(services, connection)
        refusals, days = calls(services, connection)
        listed = [item.vod_id for items in (locked, failed, sourceless[:MOST]) for item in items]
        names = names_of(services, connection, listed)
        return Intros(
            on=on,
            locked_by_model=by_model,
            locked_by_people=by_people,
            locked=locked,
            failed=failed,
            failed_count=len(failing),
            sourceless=sourceless[:MOST],
            sourceless_count=len(sourceless),
            queued=_queued(services, connection),
            waiting=_waiting(services) if on else None,
            refusals=dict(sorted(refusals.items(), key=lambda item: (-item[1].times, item[0]))),
            days=dict(sorted(days.items(), reverse=True)),
            names=names,
            texts=synopses_of(services, connection, listed),
        )


def _locked_counts(services: Services, connection: Connection) -> tuple[int, int]:
    video = services.tables.video  # compared by =, here and below: for IS TRUE no server uses an index
    of_people = func.sum(case((_of_people(services), 1), else_=0))
    row = connection.execute(select(func.count(), of_people).where(video.c.intro_locked == true())).one()
    people = int(row[1] or 0)
    return row[0] - people, people


def _of_people(services: Services) -> ColumnElement[bool]:
    # The model's are signed when they are written; an unsigned one was locked as it was.
    return services.tables.video.c.intro_ai_source == ""


def _locked(services: Services, connection: Connection, *, of_people: bool) -> list[LockedIntro]:
    """Return the newest locked intros of one sort."""
    video = services.tables.video
    # Of the model's there may be as many as videos: their order is that of an index.
    moment = video.c.intro_lock_time if of_people else video.c.intro_ai_last_at
    query = (
        select(video.c.vod_id, video.c.intro_ai_source, video.c.intro_lock_time)
        .where(video.c.intro_locked == true(), _of_people(services) if of_people else ~_of_people(services))
        .order_by(moment.desc())
        .limit(MOST)
    )
    return [LockedIntro(row[0], row[1], row[2]) for row in connection.execute(query)]


def _failing(services: Services, connection: Connection) -> list[FailedIntro]:
    """Return the videos whose task failed lately, and whose intro has not come since.

    Asked of the tasks, which have an index by time; the states are read of those alone.
    """
    task, video = services.tables.task, services.tables.video
    since = services.clock.now() - timedelta(days=DAYS)
    of_intros = task.c.task_type == TaskType.AI_INTRO
    closed = select(task.c.vod_id).where(
        task.c.finished_at >= since, task.c.open_key.is_(None), of_intros, task.c.status == TaskStatus.FAIL
    )
    requeued = select(task.c.vod_id, task.c.run_after).where(task.c.status.in_(OPEN), of_intros, task.c.attempts > 0)
    until: dict[int, datetime | None] = dict.fromkeys(connection.execute(closed).scalars())
    until.update((vod_id, run_after) for vod_id, run_after in connection.execute(requeued))
    found: list[FailedIntro] = []
    for chunk in chunks(sorted(until)):
        query = select(
            video.c.vod_id,
            video.c.intro_ai_fail_count,
            video.c.intro_ai_last_fail_at,
            video.c.intro_ai_last_fail_reason,
        ).where(video.c.vod_id.in_(chunk), video.c.intro_ai_fail_count > 0)
        found += [FailedIntro(row[0], row[1], row[2], row[3], until[row[0]]) for row in connection.execute(query)]
    return found


def _sourceless(services: Services, connection: Connection) -> list[SourcelessIntro]:
    """Return the videos whose newest task of the last `DAYS` days ended for want of a source text, the newest first."""
    task = services.tables.task
    since = services.clock.now() - timedelta(days=DAYS)
    query = (
        select(task.c.vod_id, task.c.last_error, task.c.finished_at)
        .where(task.c.finished_at >= since, task.c.open_key.is_(None), task.c.task_type == TaskType.AI_INTRO)
        .order_by(task.c.finished_at, task.c.task_id)
    )
    newest = {row[0]: SourcelessIntro(*row) for row in connection.execute(query)}
    found = [item for item in newest.values() if item.reason.startswith(NO_SOURCE)]
    return sorted(found, key=lambda item: (-item.when.timestamp(), item.vod_id))


def _queued(services: Services, connection: Connection) -> list[Queued]:
    task = services.tables.task
    later = func.sum(case((task.c.run_after > services.clock.now(), 1), else_=0))
    query = (
        select(task.c.status, func.count(), later, func.min(task.c.created_at))
        .where(task.c.status.in_(OPEN), task.c.task_type == TaskType.AI_INTRO)
        .group_by(task.c.status)
        .order_by(task.c.status)
    )
    return [Queued(status, count, int(late), oldest) for status, count, late, oldest in connection.execute(query)]


def _waiting(services: Services) -> UnqueuedIntros:
    """Count the due videos by the very rule that queues them, a shard at a time."""
    due = DueIntros(services)
    count, oldest = 0, None
    for shard in range(SHARDS):
        for item in due.find(shard, limit=_ALL):
            count += 1
            oldest = min(oldest or item.synced_at, item.synced_at)
    return UnqueuedIntros(count, oldest)
