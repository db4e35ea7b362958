"""Everything that the tab of tasks, decisions and changes tells, looked up at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from douban_pipeline.core.database import reading
from douban_pipeline.douban.reports.pages import changes, decided, work
from douban_pipeline.douban.reports.pages.lookup import VideoNames, names_of
from douban_pipeline.douban.services import Services


@dataclass(frozen=True, slots=True)
class TasksAndLog:
    """Everything that is told; where there is a count, it is of all, and the list may be only the first of them."""

    now: datetime
    open_tasks: Sequence[work.StageTasks]
    holders: Sequence[work.LeaseHolder]
    put_off: Sequence[work.TaskReason]
    failures: Sequence[work.TaskReason]
    open_decisions: tuple[int, Sequence[decided.DecisionLine]]
    refused_decisions: tuple[int, Sequence[decided.DecisionLine]]
    troubled: tuple[int, Sequence[changes.LoggedChange]]
    newest: Sequence[changes.LoggedChange]
    days: Sequence[changes.DayOfChanges]
    names: VideoNames


def tasks_and_log_of(services: Services) -> TasksAndLog:
    """Return what is to be told of tasks, decisions and changes."""
    with reading(services.engine) as connection:
        put_off = work.put_off(services, connection)
        failures = work.failures(services, connection)
        open_decisions = decided.open_decisions(services, connection)
        refused_decisions = decided.refused_decisions(services, connection)
        troubled = changes.troubled_changes(services, connection)
        newest = changes.newest_changes(services, connection)
        vod_ids = [reason.vod_id for reason in (*put_off[: work.MOST], *failures[: work.MOST])]
        vod_ids += [decision.vod_id for decision in (*open_decisions[1], *refused_decisions[1])]
        vod_ids += [change.vod_id for change in (*troubled[1], *newest)]
        return TasksAndLog(
            now=services.clock.now(),
            open_tasks=work.open_tasks(services, connection),
            holders=work.holders(services, connection),
            put_off=put_off,
            failures=failures,
            open_decisions=open_decisions,
            refused_decisions=refused_decisions,
            troubled=troubled,
            newest=newest,
            days=changes.days_of_changes(services, connection),
            names=names_of(services, connection, vod_ids),
        )
