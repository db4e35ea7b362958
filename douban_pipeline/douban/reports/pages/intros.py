"""Data of the intro report: locked, failed and waiting intros, refusals of the guard, and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, case, func, select, true

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.intros.author import NO_SOURCE
from douban_pipeline.douban.intros.due import DueIntros
from douban_pipeline.douban.reports.health.metrics import OpenTasks, open_tasks
from douban_pipeline.douban.reports.pages.lookup import VideoNames, names_of, synopses_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import IntroState, TaskStatus, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import OPEN
from douban_pipeline.douban.store.videos import intro_of_person

if TYPE_CHECKING:
    from pandas import DataFrame

DAYS = 30
"""Number of days for which failures, refusals and costs are shown."""

MOST = 100
"""Most locked intros of each kind, and most failures, that are listed."""

_ALL = 1_000_000


@dataclass(slots=True)
class GuardRefusals:
    """The guard's refusals for one kind of violation: how often, in which videos, and an example sentence."""

    times: int = 0
    videos: set[int] = field(default_factory=set)
    example: str = ""


@dataclass(slots=True)
class DaySpending:
    """Cost of a day's calls of the language model, and the outcomes of the answers."""

    calls: int = 0
    written: int = 0
    refused: int = 0
    failed: int = 0
    usd: float = 0.0
    tokens: int = 0


def calls(services: Services, connection: Connection) -> tuple[dict[str, GuardRefusals], dict[date, DaySpending]]:
    """Return the refusals by kind of violation and the spending by day, of the last `DAYS` days."""
    import pandas  # loaded only by a run that needs it

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
    """Return the violations by kind, each with its newest sentence as an example."""
    refused = refused.assign(
        code=[each["code"] for each in refused["violations"]], text=[each["text"] for each in refused["violations"]]
    )
    return {
        str(code): GuardRefusals(len(rows), set(rows["vod_id"].tolist()), rows["text"].iloc[-1])
        for code, rows in refused.groupby("code", sort=False)
    }


@dataclass(frozen=True, slots=True)
class LockedIntro:
    """A locked intro: its author (the model's name, empty if a person locked it), and since when it is locked (UTC)."""

    vod_id: int
    model: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class FailedIntro:
    """A video whose intro failed in the last `DAYS` days and was not written since: how often, when last, and why."""

    vod_id: int
    times: int
    last: datetime | None
    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class SourcelessIntro:
    """A video whose synopsis at Douban is too short for an intro: the reason, and when it was found."""

    vod_id: int
    reason: str
    when: datetime


@dataclass(frozen=True, slots=True)
class UnqueuedIntros:
    """Videos that are due for an intro and have no task yet: how many, and since when the first is due."""

    count: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class Intros:
    """Data of the report.

    Attributes:
        on: Whether writing of intros is enabled.
        locked_by_model: Number of intros that the model wrote and locked.
        locked_by_people: Number of intros that a person locked.
        locked: The newest of both kinds, those locked by a person first.
        failed: The newest failures.
        failed_count: Number of failures.
        sourceless: The newest videos without a source text for an intro, of the last `DAYS` days.
        sourceless_count: Number of these videos.
        queued: Open tasks.
        waiting: Due videos without a task; None if intros are disabled.
        refusals: Refusals by kind of violation, the most frequent first.
        days: Spending by day, the newest first.
        names: Names of the listed videos.
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
    queued: Sequence[OpenTasks]
    waiting: UnqueuedIntros | None
    refusals: Mapping[str, GuardRefusals]
    days: Mapping[date, DaySpending]
    names: VideoNames
    texts: Mapping[int, str]

    @property
    def usd(self) -> float:
        """Cost of all days, in US dollars."""
        return sum(day.usd for day in self.days.values())


def intros(services: Services) -> Intros:
    """Return the data of the intro report."""
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
            queued=[item for item in open_tasks(connection, services) if item.task_type == TaskType.AI_INTRO],
            waiting=_waiting(services) if on else None,
            refusals=dict(sorted(refusals.items(), key=lambda item: (-item[1].times, item[0]))),
            days=dict(sorted(days.items(), reverse=True)),
            names=names,
            texts=synopses_of(services, connection, listed),
        )


def _locked_counts(services: Services, connection: Connection) -> tuple[int, int]:
    video = services.tables.video  # compared with =, here and below: no server uses an index for IS TRUE
    of_people = func.sum(case((intro_of_person(services.tables), 1), else_=0))
    row = connection.execute(select(func.count(), of_people).where(video.c.intro_locked == true())).one()
    people = int(row[1] or 0)
    return row[0] - people, people


def _locked(services: Services, connection: Connection, *, of_people: bool) -> list[LockedIntro]:
    """Return the newest locked intros of one kind."""
    video = services.tables.video
    # The model's intros may be as many as the videos, so they are ordered by an indexed column.
    moment = video.c.intro_lock_time if of_people else video.c.intro_ai_last_at
    by_person = intro_of_person(services.tables)
    query = (
        select(video.c.vod_id, video.c.intro_ai_source, video.c.intro_lock_time)
        .where(video.c.intro_locked == true(), by_person if of_people else ~by_person)
        .order_by(moment.desc())
        .limit(MOST)
    )
    return [LockedIntro(row[0], "" if of_people else row[1], row[2]) for row in connection.execute(query)]


def _failing(services: Services, connection: Connection) -> list[FailedIntro]:
    """Return the videos whose task failed within `DAYS` days and whose intro was not written since.

    The tasks are queried first, since they have an index by time; then the states of their videos are read.
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
    """Return the videos whose newest task of `DAYS` days ended because of a missing source text, the newest first."""
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


def _waiting(services: Services) -> UnqueuedIntros:
    """Return the due videos without a task, counted shard by shard with the rule that queues them."""
    due = DueIntros(services)
    count, oldest = 0, None
    for shard in range(SHARDS):
        for item in due.find(shard, limit=_ALL):
            count += 1
            oldest = min(oldest or item.synced_at, item.synced_at)
    return UnqueuedIntros(count, oldest)
