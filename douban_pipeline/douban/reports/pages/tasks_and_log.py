"""Data of the report of tasks, decisions and changes. Decisions that wait or were refused are read here, the rest by
`work`, `changes` and, for counts of open tasks, `health.metrics`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select
from sqlalchemy.sql import ColumnElement

from douban_pipeline.core.database import reading
from douban_pipeline.douban.reports.health import metrics
from douban_pipeline.douban.reports.pages import changes, work
from douban_pipeline.douban.reports.pages.lookup import VideoNames, names_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import NAMING
from douban_pipeline.douban.store.states import DecisionState

REFUSED_DAYS = 7
MOST = 100
_OPEN = (DecisionState.PENDING, DecisionState.QUEUED)


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """A decision that waits or was refused, as it is listed.

    Attributes:
        state_reason: Why it was refused, or what it waits for.
        unchecked: Whether the subject it names still has to be fetched and compared.
        batch_id: Batch of the decisions that were recorded together.
    """

    decision_id: int
    vod_id: int
    action: str
    douban_id: int
    reviewer: str
    note: str
    state: str
    state_reason: str
    unchecked: bool
    batch_id: str
    at: datetime


def open_decisions(services: Services, connection: Connection) -> tuple[int, list[DecisionLine]]:
    """Return the number of decisions that are pending or queued, and the oldest of them."""
    return _decisions(services, connection, _OPEN, [], newest_first=False)


def refused_decisions(services: Services, connection: Connection) -> tuple[int, list[DecisionLine]]:
    """Return the number of refused decisions of the last `REFUSED_DAYS` days, and the newest of them."""
    since = services.tables.decision.c.created_at >= services.clock.now() - timedelta(days=REFUSED_DAYS)
    return _decisions(services, connection, [DecisionState.REFUSED], [since], newest_first=True)


def _decisions(
    services: Services,
    connection: Connection,
    states: Collection[DecisionState],
    conditions: list[ColumnElement[bool]],
    *,
    newest_first: bool,
) -> tuple[int, list[DecisionLine]]:
    decision = services.tables.decision
    wanted = (decision.c.state.in_(states), *conditions)
    count = connection.execute(select(func.count()).select_from(decision).where(*wanted)).scalar_one()
    order = decision.c.decision_id.desc() if newest_first else decision.c.decision_id
    query = select(decision).where(*wanted).order_by(order).limit(MOST)
    return int(count), [
        DecisionLine(
            row["decision_id"],
            row["vod_id"],
            row["action"],
            row["douban_id"],
            row["reviewer"],
            row["note"],
            row["state"],
            row["state_reason"],
            row["state"] == DecisionState.PENDING and row["action"] in NAMING and row["checked_at"] is None,
            row["batch_id"],
            row["created_at"],
        )
        for row in connection.execute(query).mappings()
    ]


@dataclass(frozen=True, slots=True)
class TasksAndLog:
    """Data of the report. A count covers all, while the list beside it may hold only the first of them."""

    now: datetime
    open_tasks: Sequence[metrics.OpenTasks]
    holders: Sequence[work.LeaseHolder]
    deferred: Sequence[work.TaskReason]
    failures: Sequence[work.TaskReason]
    open_decisions: tuple[int, Sequence[DecisionLine]]
    refused_decisions: tuple[int, Sequence[DecisionLine]]
    troubled: tuple[int, Sequence[changes.LoggedChange]]
    newest: Sequence[changes.LoggedChange]
    days: Sequence[changes.DayOfChanges]
    names: VideoNames


def tasks_and_log_of(services: Services) -> TasksAndLog:
    """Return the data of the report."""
    with reading(services.engine) as connection:
        deferred = work.deferred(services, connection)
        failures = work.failures(services, connection)
        waiting = open_decisions(services, connection)
        refused = refused_decisions(services, connection)
        troubled = changes.troubled_changes(services, connection)
        newest = changes.newest_changes(services, connection)
        vod_ids = [reason.vod_id for reason in (*deferred[: work.MOST], *failures[: work.MOST])]
        vod_ids += [decision.vod_id for decision in (*waiting[1], *refused[1])]
        vod_ids += [change.vod_id for change in (*troubled[1], *newest)]
        return TasksAndLog(
            now=services.clock.now(),
            open_tasks=metrics.open_tasks(connection, services, by_stage=True),
            holders=work.holders(services, connection),
            deferred=deferred,
            failures=failures,
            open_decisions=waiting,
            refused_decisions=refused,
            troubled=troubled,
            newest=newest,
            days=changes.days_of_changes(services, connection),
            names=names_of(services, connection, vod_ids),
        )
