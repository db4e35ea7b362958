"""Requeueing of videos whose call of the language model failed, by the kind of failure.

The schedule of their visits to Douban does not change: an intro is optional, and nothing waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from sqlalchemy import Connection, select, update

from douban_pipeline.core.clock import day_of
from douban_pipeline.core.database import run_transaction
from douban_pipeline.core.errors import (
    GateClosed,
    SourceError,
    SourceThrottled,
    SourceUnavailable,
    SourceUnpaid,
)
from douban_pipeline.douban.chain.attempts import Attempts, RequeuedTask
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON, Task

OTHER_MINUTES = (30.0, 120.0)
"""The plan's wait after any other failure."""

UNAVAILABLE_MINUTES = (5.0, 10.0)
"""The plan's wait after a 5xx or no connection."""

THROTTLED_MINUTES = (10.0, 30.0)
"""The plan's wait after a 429, from and to; chosen at random, so that waiting intros do not come back together."""


@dataclass
class IntroAttempts(Attempts):
    """The calls for intros of one run, and the handling of failed ones.

    Attributes:
        rng: Random source for waiting times.
    """

    rng: Random = field(default_factory=Random)

    def _blame(self, task: Task, error: SourceError) -> None:
        """Count a failure of ``task`` itself; a retryable one is tried again sooner."""
        if isinstance(error, SourceUnavailable) and error.retryable:
            self._count(task, str(error), UNAVAILABLE_MINUTES)
        else:
            super()._blame(task, error)

    def fail(self, task: Task, reason: str) -> None:
        """Count a failure of ``task`` that no source caused, and defer it."""
        self._count(task, reason, OTHER_MINUTES)

    def _defer_visit(self, connection: Connection, task: Task, until: datetime) -> None:
        """Do not change the visits to Douban."""

    def _retry_at(self, error: SourceError) -> datetime:
        now = self.services.clock.now()
        if isinstance(error, GateClosed):
            return max(error.until, now)
        if isinstance(error, SourceUnpaid):
            return day_of(now, self.services.settings.zone).ends_at
        if isinstance(error, SourceThrottled):
            return now + max(timedelta(seconds=error.retry_after or 0), self._drawn(THROTTLED_MINUTES))
        unavailable = isinstance(error, SourceUnavailable)
        return now + self._drawn(UNAVAILABLE_MINUTES if unavailable else OTHER_MINUTES)

    def _count(self, task: Task, reason: str, minutes: tuple[float, ...]) -> None:
        now = self.services.clock.now()
        video = self.services.tables.video
        this_video = video.c.vod_id == task.vod_id

        def count(connection: Connection) -> RequeuedTask | None:
            before = connection.execute(select(video.c.intro_ai_fail_count).where(this_video)).scalar()
            failures = (before or 0) + 1
            # Repeated failures back off, so that they are not paid for every hour.
            again = self.services.settings.back_off.wait(failures, task.vod_id)
            until = now + (drawn if failures < FAILURES_FOR_A_PERSON else again)
            if not self.queue.requeue(connection, task.task_id, until, reason, failed=True):
                return None
            connection.execute(
                update(video)
                .where(this_video)
                .values(
                    intro_ai_fail_count=failures,
                    intro_ai_last_fail_at=now,
                    intro_ai_last_fail_reason=reason[:500],
                )
            )
            return RequeuedTask(task.vod_id, task.shard, until, reason, failures)

        with self._lock:
            drawn = self._drawn(minutes)
            self._record_failure(run_transaction(self.services.engine, count))

    def _drawn(self, minutes: tuple[float, ...]) -> timedelta:
        return timedelta(minutes=self.rng.uniform(*minutes))
