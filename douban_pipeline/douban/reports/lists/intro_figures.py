"""Figures of the list of intros: how many are locked and wait, refusals of the guard, and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, case, func, select, true

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.database import reading
from douban_pipeline.douban.intros.author import NO_SOURCE
from douban_pipeline.douban.intros.due import DueIntros
from douban_pipeline.douban.reports.health.metrics import OpenTasks, open_tasks
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import IntroState, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.videos import intro_of_person

if TYPE_CHECKING:
    from pandas import DataFrame

DAYS = 30
"""Number of days for which refusals, costs and missing source texts are shown."""

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
    """Figures of the list of intros.

    Attributes:
        on: Whether writing of intros is enabled.
        locked_by_model: Number of intros that the model wrote and locked.
        locked_by_people: Number of intros that a person locked.
        sourceless: The videos without a source text for an intro, of the last `DAYS` days, the newest first.
        queued: Open tasks.
        waiting: Due videos without a task; None if intros are disabled.
        refusals: Refusals by kind of violation, the most frequent first.
        days: Spending by day, the newest first.
    """

    on: bool
    locked_by_model: int
    locked_by_people: int
    sourceless: Sequence[SourcelessIntro]
    queued: Sequence[OpenTasks]
    waiting: UnqueuedIntros | None
    refusals: Mapping[str, GuardRefusals]
    days: Mapping[date, DaySpending]

    @property
    def usd(self) -> float:
        """Cost of all days, in US dollars."""
        return sum(day.usd for day in self.days.values())


def intros(services: Services) -> Intros:
    """Return the figures of the list of intros."""
    on = services.settings.ai_intros
    with reading(services.engine) as connection:
        by_model, by_people = _locked_counts(services, connection)
        refusals, days = calls(services, connection)
        return Intros(
            on=on,
            locked_by_model=by_model,
            locked_by_people=by_people,
            sourceless=_sourceless(services, connection),
            queued=[item for item in open_tasks(connection, services) if item.task_type == TaskType.AI_INTRO],
            waiting=_waiting(services) if on else None,
            refusals=dict(sorted(refusals.items(), key=lambda item: (-item[1].times, item[0]))),
            days=dict(sorted(days.items(), reverse=True)),
        )


def _locked_counts(services: Services, connection: Connection) -> tuple[int, int]:
    video = services.tables.video  # compared with =, here and below: no server uses an index for IS TRUE
    of_people = func.sum(case((intro_of_person(services.tables), 1), else_=0))
    row = connection.execute(select(func.count(), of_people).where(video.c.intro_locked == true())).one()
    people = int(row[1] or 0)
    return row[0] - people, people


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
