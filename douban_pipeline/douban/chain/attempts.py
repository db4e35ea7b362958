"""Processes tasks that call outside sources, and requeues those whose calls fail.

If a source is down, the run makes no further calls and succeeds: the remaining tasks are requeued without counting as
failed. So are those whose calls failed in the same outage before the breaker opened; whether a failure was the source's
is known only at the end. So is a search without any answer: it says nothing of its video. A failure of one video counts
against that video; the fifth in a row sends it to review.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, select, update

from douban_pipeline.core.database import chunks, run_transaction
from douban_pipeline.core.errors import OthersFirst, SourceError, SourceSilent
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.chain.progress import Progress
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.setting_values import SEARCH_PROVIDERS
from douban_pipeline.douban.sources.errors import SOURCE_DOWN, retry_time
from douban_pipeline.douban.sources.search import SearchIncomplete
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON, INTERNAL_ERROR, Task

logger = logging.getLogger(__name__)

T = TypeVar("T")

_RENEWALS = 5
"""A run gives so many signs of life within the time of a lease."""


@dataclass(frozen=True, slots=True)
class RequeuedTask:
    """A task that went back into the queue: until when, why, and how many failures in a row its video has by now."""

    vod_id: int
    shard: int
    until: datetime
    reason: str
    failures: int = 0


@dataclass(frozen=True, slots=True)
class _FailedCall:
    """A task whose call failed, why and when; whether by its own fault is not known yet."""

    task: Task
    error: SourceError
    at: datetime


@dataclass(slots=True)
class Attempts:
    """The calls of one run, and the tasks that went back into the queue.

    Attributes:
        services: Database, clock and settings.
        queue: The run's view of the tasks.
        deadline: After this no call is started (UTC).
        deferred: Tasks requeued because a source is down; not the video's fault.
        failed: Tasks requeued after a failure of their own.
        left: Tasks for which the run had no time.
        lost: Tasks whose lease expired, so that another run has them; they are counted nowhere else.
        progress: Follows the progress of the calls; None for none.
    """

    services: Services
    queue: TaskQueue
    deadline: datetime
    deferred: list[RequeuedTask] = field(default_factory=list)
    failed: list[RequeuedTask] = field(default_factory=list)
    left: int = 0
    lost: int = 0
    progress: Progress | None = None
    _source_down: SourceError | None = None
    _unsettled: list[_FailedCall] = field(default_factory=list)
    _too_late: list[Task] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def videos(self) -> dict[str, list[int]]:
        """Return the videos whose tasks went back into the queue, by reason."""
        return {
            "deferred": [item.vod_id for item in self.deferred],
            "failed": [item.vod_id for item in self.failed],
        }

    def counts(self) -> dict[str, int]:
        """Return for how many tasks the run had no time or lease, for its metadata."""
        return {"left_for_later": self.left} | ({"lease_lost": self.lost} if self.lost else {})

    def pace(self) -> dict[str, float]:
        """Return videos a minute and the share of its allowance that each source used, for the run's metadata."""
        return self.progress.metadata() if self.progress is not None else {}

    def requeued(self, zone: ZoneInfo) -> list[dict[str, Any]]:
        """Return a row for each task that failed or was deferred, with times in ``zone``."""
        return [
            {
                "vod_id": item.vod_id,
                "shard": item.shard,
                "why": item.reason,
                "failures": item.failures,
                "again at": local_time(item.until, zone),
            }
            for item in (*self.failed, *self.deferred)
        ]

    def run(self, tasks: Sequence[Task], call: Callable[[Task], T], *, workers: int) -> Iterator[tuple[Task, T]]:
        """Yield each task with what ``call`` returned for it, as they come in; failed ones are requeued."""
        if self.progress is not None:
            self.progress.begin(len(tasks))
        with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="source") as pool:
            futures: dict[Future[T | None], Task] = {pool.submit(self._attempt, task, call): task for task in tasks}
            renewed = self.services.clock.now()
            try:
                for future in as_completed(futures):
                    now = self.services.clock.now()
                    if now - renewed >= self.queue.lease_time / _RENEWALS:
                        self.queue.renew()
                        renewed = now
                    if self.progress is not None:
                        self.progress.note(now)
                    result = future.result()
                    if result is not None:
                        yield futures[future], result
            finally:
                # Ctrl-C and a closed generator start no more calls.
                pool.shutdown(wait=True, cancel_futures=True)
                self.settle()

    def _attempt(self, task: Task, call: Callable[[Task], T]) -> T | None:
        if self._source_down is not None:
            self.requeue(task, self._source_down)
            return None
        if self.services.clock.now() >= self.deadline:
            with self._lock:
                self._too_late.append(task)
            return None
        try:
            return call(task)
        except SearchIncomplete as error:
            # Only this video's search was; what the others ask may well be answered.
            self.requeue(task, error.cause)
        except SourceError as error:
            if isinstance(error, SOURCE_DOWN) and not isinstance(error, OthersFirst):
                self._source_down = error
            self.requeue(task, error)
        except Exception as error:
            # One odd row must not stop the others: the log has the traceback, and the video shows the error.
            logger.exception("video %s", task.vod_id)
            self.fail(task, f"{INTERNAL_ERROR} {type(error).__name__}: {error}")
        return None

    def requeue(self, task: Task, error: SourceError) -> None:
        """Return ``task`` to the queue after ``error``: deferred if the source is down, else by `settle`."""
        if isinstance(error, SOURCE_DOWN):
            self._defer(task, error)
        else:
            with self._lock:
                self._unsettled.append(_FailedCall(task, error, self.services.clock.now()))

    def settle(self) -> None:
        """Requeue tasks that were not begun, and those whose calls failed: as deferred if the source was down."""
        with self._lock:
            unsettled, self._unsettled = self._unsettled, []
            too_late, self._too_late = self._too_late, []
        for some in chunks([task.task_id for task in too_late]):
            give_up = partial(self.queue.give_up, task_ids=some, run_after=self.services.clock.now())
            ours = run_transaction(self.services.engine, give_up)
            self.left += ours
            self.lost += len(some) - ours
        for call in unsettled:
            if self._is_the_sources(call.error, call.at):
                self._defer(call.task, call.error)
            else:
                self._blame(call.task, call.error)

    def _is_the_sources(self, error: SourceError, at: datetime) -> bool:
        """Return whether a failure was its source's: in an outage, or a search that said nothing at all."""
        if isinstance(error, SourceSilent) and error.source in SEARCH_PROVIDERS:
            return True
        return error.healthy is False and self.services.gate.was_unhealthy(error.source, at)

    def _blame(self, task: Task, error: SourceError) -> None:
        """Count a failure of ``task`` itself."""
        self.fail(task, str(error))

    def _defer(self, task: Task, error: SourceError) -> None:
        # Not all at once when the gate opens.
        until = self._retry_at(error) + timedelta(seconds=task.vod_id % 60)

        def defer(connection: Connection) -> bool:
            ours = self.queue.requeue(connection, task.task_id, until, str(error), failed=False)
            if ours:
                self._defer_visit(connection, task, until)
            return ours

        with self._lock:
            if run_transaction(self.services.engine, defer):
                self.deferred.append(RequeuedTask(task.vod_id, task.shard, until, str(error)))
            else:
                self.lost += 1

    def _retry_at(self, error: SourceError) -> datetime:
        return retry_time(error, self.services.clock.now())

    def _defer_visit(self, connection: Connection, task: Task, until: datetime) -> None:
        """Move the video's next visit to the time of its task, because until then it would be due without effect."""
        video = self.services.tables.video
        connection.execute(update(video).where(video.c.vod_id == task.vod_id).values(douban_next_sync_at=until))

    def fail(self, task: Task, reason: str) -> None:
        """Count a failure of ``task`` and retry later; the fifth in a row sends its video to review."""
        with self._lock:
            self._record_failure(
                run_transaction(self.services.engine, lambda connection: self._fail(connection, task, reason))
            )

    def _fail(self, connection: Connection, task: Task, reason: str) -> RequeuedTask | None:
        now = self.services.clock.now()
        video = self.services.tables.video
        query = select(video.c.douban_sync_fail_count, video.c.douban_review_status)
        row = connection.execute(query.where(video.c.vod_id == task.vod_id)).one_or_none()
        failures = (row.douban_sync_fail_count if row else 0) + 1
        until = now + self.services.settings.back_off.wait(failures, task.vod_id)
        if not self.queue.requeue(connection, task.task_id, until, reason, failed=True):
            return None
        values: dict[str, object] = {
            "douban_sync_fail_count": failures,
            "douban_last_fail_at": now,
            "douban_last_fail_reason": reason[:500],
            "douban_next_sync_at": until,
        }
        if failures >= FAILURES_FOR_A_PERSON:
            values["douban_review_reason"] = f"连续失败 {failures} 次：{reason}"[:500]
            if row and row.douban_review_status == ReviewStatus.NOT_FOUND:
                values["douban_review_status"] = ReviewStatus.REVIEW
        connection.execute(update(video).where(video.c.vod_id == task.vod_id).values(**values))
        return RequeuedTask(task.vod_id, task.shard, until, reason, failures)

    def _record_failure(self, failure: RequeuedTask | None) -> None:
        """Record a task that failed; None is one whose lease was lost."""
        if failure is None:
            self.lost += 1
        else:
            self.failed.append(failure)
