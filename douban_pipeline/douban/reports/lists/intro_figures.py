"""Figures of the list of intros: how many are locked and wait, refusals of the guard, and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, case, func, select, true

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.lists.list_page import Row
from douban_pipeline.douban.intros.author import NO_SOURCE
from douban_pipeline.douban.intros.due import DueIntros
from douban_pipeline.douban.reports.health.metrics import OpenTasks, open_tasks
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import IntroState, TaskType
from douban_pipeline.douban.store.videos import intro_of_person
from douban_pipeline.douban.wording import VIOLATIONS, word_for

DAYS = 30
"""Number of days for which refusals, costs and missing source texts are shown."""


def calls(services: Services, connection: Connection) -> tuple[list[Row], list[Row]]:
    """Return the guard's refusals, the most frequent first, and the days' calls and costs, the newest first.

    Both are rows of the page's tables, of the last `DAYS` days of the site's time zone.
    """
    import pandas  # loaded only where it is needed

    intro, zone = services.tables.intro, services.settings.zone
    today = day_of(services.clock.now(), zone).date
    tokens = intro.c.prompt_tokens + intro.c.completion_tokens
    query = select(
        intro.c.vod_id, intro.c.state, intro.c.created_at, intro.c.cost_usd, tokens, intro.c.violations
    ).where(intro.c.created_at >= midnight(today - timedelta(days=DAYS - 1), zone))
    rows = connection.execute(query.execution_options(yield_per=2000))
    table = pandas.DataFrame(map(tuple, rows), columns=["vod_id", "state", "at", "usd", "tokens", "violations"])
    if table.empty:
        return [], []
    outcomes = {
        "written": [IntroState.WRITTEN, IntroState.WITHDRAWN, IntroState.PREVIEW],
        "refused": [IntroState.REFUSED],
        "failed": [IntroState.FAILED],
    }
    for name, states in outcomes.items():
        table[name] = table["state"].isin(states)
    table["day"] = pandas.to_datetime(table["at"], utc=True).dt.tz_convert(zone).dt.date.astype(str)
    by_day = table.groupby("day")
    days = by_day[[*outcomes, "usd", "tokens"]].sum().assign(calls=by_day.size()).sort_index(ascending=False)
    refused = table[["vod_id", "violations"]].explode("violations").dropna()
    refused["code"] = [each["code"] for each in refused["violations"]]
    refused["text"] = [each["text"] for each in refused["violations"]]
    refusals: list[Row] = [
        {
            "kind": word_for(VIOLATIONS, str(code)),
            "times": len(found),
            "videos": int(found["vod_id"].nunique()),
            "example": found["text"].iloc[-1],
        }
        for code, found in refused.groupby("code")
    ]
    refusals.sort(key=lambda row: -row["times"])
    return refusals, days.reset_index().to_dict("records")


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
        refusals, days: See `calls`.
    """

    on: bool
    locked_by_model: int
    locked_by_people: int
    sourceless: Sequence[SourcelessIntro]
    queued: Sequence[OpenTasks]
    waiting: UnqueuedIntros | None
    refusals: Sequence[Row]
    days: Sequence[Row]

    @property
    def usd(self) -> float:
        """Cost of all days, in US dollars."""
        return float(sum(day["usd"] for day in self.days))


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
            waiting=UnqueuedIntros(*DueIntros(services).count(connection)) if on else None,
            refusals=refusals,
            days=days,
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
