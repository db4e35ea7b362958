"""Working through tasks that call outside sources, and what happens to those whose call fails.

A source that is ill ends the work of this run, not the run: what is left goes back into the queue, uncounted. A
failure of one video counts against that video, and from the fifth in a row on a person is asked to look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import TypeVar

from sqlalchemy import Connection, select, update

from douban_pipeline.core.archive import ArchiveError
from douban_pipeline.core.database import run_transaction
from douban_pipeline.core.errors import (
    GateClosed,
    GateUnreadable,
    SourceError,
    SourceThrottled,
    SourceUnpaid,
    SourceWall,
)
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.search import SearchIncomplete
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON, Task, TaskQueue, back_off

logger = logging.getLogger(__name__)

T = TypeVar("T")

ILL = (ArchiveError, GateClosed, GateUnreadable, SourceThrottled, SourceUnpaid, SourceWall)
"""Errors that say the source, or what we need to ask it, is closed to us for now, whichever video was asked about."""

PAUSE = timedelta(minutes=5)
"""When to try again if an ill source does not say."""


def worth_asking_at(error: SourceError, now: datetime) -> datetime:
    """Return when it is worth asking an ill source again."""
    if isinstance(error, GateClosed):
        return max(error.until, now)
    if isinstance(error, SourceThrottled) and error.retry_after:
        return now + timedelta(seconds=error.retry_after)
    return now + PAUSE


@dataclass(frozen=True, slots=True)
class PutBack:
    """A task that went back into the queue: until when, and why."""

    vod_id: int
    shard: int
    until: datetime
    reason: str
    failures: int = 0


@dataclass(slots=True)
class Attempts:
    """The calls of one run, and what became of those that failed.

    Attributes:
        deferred: Put back because a source is ill; not the video's fault.
        failed: Put back after a failure of their own.
        left: Tasks that the run's time did not suffice for.
        lost: Tasks whose lease ran out, so that another run has them; they count as nothing else.
    """

    services: Services
    queue: TaskQueue
    deadline: datetime
    deferred: list[PutBack] = field(default_factory=list)
    failed: list[PutBack] = field(default_factory=list)
    left: int = 0
    lost: int = 0
    _ill: SourceError | None = None
    _lock: Lock = field(default_factory=Lock)

    def run(self, tasks: Sequence[Task], call: Callable[[Task], T], *, workers: int) -> Iterator[tuple[Task, T]]:
        """Yield each task with what ``call`` returned for it, as they come in; failed ones are put back."""
        with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="source") as pool:
            futures: dict[Future[T | None], Task] = {pool.submit(self._guarded, task, call): task for task in tasks}
            try:
                for done, future in enumerate(as_completed(futures), start=1):
                    if done % 20 == 0:
                        self.queue.renew()
                    result = future.result()
                    if result is not None:
                        yield futures[future], result
            finally:
                # Ctrl-C and a closed generator start no more calls.
                pool.shutdown(wait=True, cancel_futures=True)

    def _guarded(self, task: Task, call: Callable[[Task], T]) -> T | None:
        if self._ill is not None:
            self.put_back(task, self._ill)
            return None
        if self.services.clock.now() >= self.deadline:
            now = self.services.clock.now()
            with self._lock:
                ours = run_transaction(
                    self.services.engine,
                    lambda connection: self.queue.requeue(connection, task.task_id, now, "", failed=False),
                )
                self.left += ours
                self.lost += not ours
            return None
        try:
            return call(task)
        except SearchIncomplete as error:
            # Only this video's search was; what the others ask may well be answered.
            self.put_back(task, error.cause)
        except SourceError as error:
            if isinstance(error, ILL):
                self._ill = error
            self.put_back(task, error)
        except Exception as error:
            # One odd row must not stop the rest: it is told in full in the log and stays visible on the video.
            logger.exception("video %s", task.vod_id)
            self.fail(task, f"内部错误 {type(error).__name__}: {error}")
        return None

    def put_back(self, task: Task, error: SourceError) -> None:
        """Return ``task`` to the queue after ``error``: deferred if the source is ill, else as failed."""
        if not isinstance(error, ILL):
            self.fail(task, str(error))
            return
        # Not all at once when the gate opens.
        until = self._until(error) + timedelta(seconds=task.vod_id % 60)

        def defer(connection: Connection) -> bool:
            ours = self.queue.requeue(connection, task.task_id, until, str(error), failed=False)
            if ours:
                self._let_rest(connection, task, until)
            return ours

        with self._lock:
            if run_transaction(self.services.engine, defer):
                self.deferred.append(PutBack(task.vod_id, task.shard, until, str(error)))
            else:
                self.lost += 1

    def _until(self, error: SourceError) -> datetime:
        return worth_asking_at(error, self.services.clock.now())

    def _let_rest(self, connection: Connection, task: Task, until: datetime) -> None:
        """Move the video's next visit to when its task goes on, or it would stay due in vain."""
        video = self.services.tables.video
        connection.execute(update(video).where(video.c.vod_id == task.vod_id).values(douban_next_sync_at=until))

    def fail(self, task: Task, reason: str) -> None:
        """Count a failure of ``task`` and let it wait; from the fifth in a row on a person is asked."""
        now = self.services.clock.now()
        video = self.services.tables.video

        def count(connection: Connection) -> PutBack | None:
            query = select(video.c.douban_sync_fail_count, video.c.douban_review_status)
            row = connection.execute(query.where(video.c.vod_id == task.vod_id)).one_or_none()
            failures = (row.douban_sync_fail_count if row else 0) + 1
            until = now + back_off(failures)
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
            return PutBack(task.vod_id, task.shard, until, reason, failures)

        with self._lock:
            self._record_failure(run_transaction(self.services.engine, count))

    def _record_failure(self, failure: PutBack | None) -> None:
        """Note a task that failed; None is one whose lease was lost."""
        if failure is None:
            self.lost += 1
        else:
            self.failed.append(failure)
