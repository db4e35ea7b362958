"""The queue for troubleshooting: which runs hold open tasks, why tasks were deferred, and what failed.

`pipeline_health` measures numbers and outcomes of tasks; this module reads the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, select

from douban_pipeline.core.owner import is_dead
from douban_pipeline.douban.reports.health.metrics import last_failure
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStatus
from douban_pipeline.douban.store.tasks import OPEN

FAILURE_DAYS = 7
MOST = 100
_NUMBERS = re.compile(r"\d{4,}")


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A run that holds tasks.

    Attributes:
        owner: Its name as owner of leases, see `core.owner`.
        run_id: The run.
        dead: Whether its process is known to be gone: the next run takes the tasks over.
        until: When the first of its leases expires (UTC).
    """

    owner: str
    run_id: str
    dead: bool
    count: int
    until: datetime


@dataclass(slots=True)
class TaskReason:
    """Tasks of one type with the same reason, apart from numbers in it.

    Attributes:
        reason: The reason of the newest task.
        closed: Number of tasks that were given up.
        open: Number of tasks that are in the queue again.
        vod_id: The video of the newest task.
        last: When the newest task failed or was queued (UTC).
        until: When the first of the queued tasks may be started (UTC).
    """

    task_type: str
    reason: str
    closed: int = 0
    open: int = 0
    vod_id: int = 0
    last: datetime | None = None
    until: datetime | None = None

    @property
    def count(self) -> int:
        """Number of tasks."""
        return self.closed + self.open


def holders(services: Services, connection: Connection) -> list[LeaseHolder]:
    """Return the runs that hold tasks, in the order in which their leases expire."""
    task = services.tables.task
    query = (
        select(task.c.lease_owner, func.count(), func.min(task.c.lease_until))
        .where(task.c.lease_owner.is_not(None))
        .group_by(task.c.lease_owner)
    )
    found = [
        LeaseHolder(owner, _run_of(owner), is_dead(owner), count, until)
        for owner, count, until in connection.execute(query)
        if until is not None
    ]
    return sorted(found, key=lambda holder: holder.until)


def _run_of(owner: str) -> str:
    return owner.rpartition("@")[0]


def deferred(services: Services, connection: Connection) -> list[TaskReason]:
    """Return the reasons of tasks that wait without having failed: a source is closed, a run's time was over."""
    task = services.tables.task
    query = select(task.c.task_type, task.c.last_error, task.c.vod_id, task.c.created_at, task.c.run_after).where(
        task.c.status == TaskStatus.PENDING, task.c.attempts == 0, task.c.last_error != ""
    )
    return _by_reason((row[0], row[1], row[2], row[3], row[4], False) for row in connection.execute(query))


def failures(services: Services, connection: Connection) -> list[TaskReason]:
    """Return the reasons of tasks that failed in the last `FAILURE_DAYS` days: given up, or in the queue again."""
    task, video = services.tables.task, services.tables.video
    since = services.clock.now() - timedelta(days=FAILURE_DAYS)
    closed = select(task.c.task_type, task.c.last_error, task.c.vod_id, task.c.finished_at).where(
        task.c.finished_at >= since, task.c.open_key.is_(None), task.c.status == TaskStatus.FAIL
    )
    again = (
        select(task.c.task_type, task.c.last_error, task.c.vod_id, last_failure(services.tables), task.c.run_after)
        .join(video, video.c.vod_id == task.c.vod_id)
        .where(task.c.status.in_(OPEN), task.c.attempts > 0, last_failure(services.tables) >= since)
    )
    rows: list[tuple[Any, ...]] = [(*row, None, True) for row in connection.execute(closed)]
    rows += [(*row, False) for row in connection.execute(again)]
    return _by_reason(rows)


def _by_reason(rows: Iterable[tuple[Any, ...]]) -> list[TaskReason]:
    """Return tasks grouped by reason without regard to numbers in it, the most frequent first."""
    found: dict[tuple[str, str], TaskReason] = {}
    for task_type, reason, vod_id, moment, until, is_closed in rows:
        entry = found.setdefault((task_type, _NUMBERS.sub("…", reason)), TaskReason(task_type, reason))
        entry.closed += is_closed
        entry.open += not is_closed
        if entry.last is None or (moment, vod_id) > (entry.last, entry.vod_id):
            entry.reason, entry.vod_id, entry.last = reason, vod_id, moment
        if until is not None:
            entry.until = min(entry.until or until, until)
    return sorted(found.values(), key=lambda entry: (-entry.count, entry.task_type, entry.reason))
