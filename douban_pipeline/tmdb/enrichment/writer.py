"""Logs questions after their answers: a bounded queue, a thread that writes it, and the spool as fallback.

Callers never wait for PostgreSQL: a job is put into the queue at once, or onto the disk if the queue is full. While
PostgreSQL does not answer, the thread moves jobs from the queue to the spool, and retries after 1, 2, … 30 s.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol
from uuid import UUID

from psycopg import DataError, Error

from douban_pipeline.tmdb.enrichment.metrics import Metrics
from douban_pipeline.tmdb.enrichment.spool import Job, Spool, SpoolError
from douban_pipeline.tmdb.store.requests import LoggedRequest

_logger = logging.getLogger(__name__)

LONGEST_PAUSE = 30.0
_IDLE_SECONDS = 5.0
_DRAIN_SECONDS = 10.0
_TOGETHER = 50
"""Questions of the queue written in one transaction, so that it empties faster than the store answers."""
_OUTAGE_CLASSES = frozenset({"08", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "58"})
"""SQLSTATE classes that are not caused by the data: connection, rights, missing schema, full disk, shutdown."""


class Store(Protocol):
    """The methods of the store that a writer uses."""

    def persist_questions(self, asked: Mapping[UUID, LoggedRequest]) -> None:
        """Write questions under their ids, all of them or none; writing one again does nothing."""
        ...

    def delete_request(self, logged_id: UUID) -> int:
        """Delete one question."""
        ...


class Writer:
    """Accepts jobs and ensures that they are written.

    Args:
        backlog: Returns how many changes wait for the graph, for the metrics; called regularly by the thread.
    """

    def __init__(
        self, store: Store, spool: Spool, metrics: Metrics, *, size: int = 100, backlog: Callable[[], int] | None = None
    ) -> None:
        self._store = store
        self._spool = spool
        self._metrics = metrics
        self._queue: queue.Queue[Job | None] = queue.Queue(size)
        self._backlog = backlog
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopping = False
        self._down_until = 0.0
        self._pause = 0.0
        self._told = 0.0

    @property
    def waiting(self) -> int:
        """How many jobs are in the queue."""
        return self._queue.qsize()

    @property
    def has_room(self) -> bool:
        """Whether the queue has room for another job."""
        return not self._stopping and not self._queue.full()

    @property
    def is_down(self) -> bool:
        """Whether PostgreSQL did not answer recently."""
        return time.monotonic() < self._down_until

    def start(self) -> None:
        """Start the thread, which replays the spool first; safe to repeat."""
        with self._starting:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._loop, name="tmdb-writer", daemon=True)
                self._thread.start()

    def submit(self, job: Job) -> str:
        """Accept a job and return its state: ``queued``, ``spooled`` or ``lost``. Never waits for PostgreSQL."""
        if not self._stopping:
            self.start()
            try:
                self._queue.put_nowait(job)
            except queue.Full:
                pass
            else:
                return "queued"
        return self._to_spool(job)

    def write(self, job: Job) -> str:
        """Write a job before returning; return ``written``, ``spooled``, ``forgotten``, …"""
        return self._persist(job)

    def close(self, seconds: float = _DRAIN_SECONDS) -> None:
        """Accept no more jobs, write those in the queue or move them to the spool, and stop the thread."""
        with self._starting:
            self._stopping = True
            thread = self._thread
        if thread is not None and thread.is_alive():
            try:
                self._queue.put(None, timeout=seconds)
                thread.join(seconds)
            except queue.Full:
                _logger.warning("the writer of TMDB's questions does not stop; its queue goes to the spool")
        while True:  # jobs left by a hanging thread
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is not None:
                self._to_spool(job)
        self._spool.close()

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        self._run_logged(self.replay)
        while True:
            self._record_backlog()
            try:
                jobs = [self._queue.get(timeout=_IDLE_SECONDS if not self._pause else 1.0)]
            except queue.Empty:
                self._run_logged(self.replay)
                continue
            while jobs[-1] is not None and len(jobs) < _TOGETHER:
                try:
                    jobs.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            found = [job for job in jobs if job is not None]
            self._run_logged(partial(self._persist_together, found))
            if jobs[-1] is None:
                return
            # Under steady load the queue is never empty: with its jobs as many of those on the disk are written.
            self._run_logged(partial(self.replay, len(found)))

    @staticmethod
    def _run_logged(work: Callable[[], object]) -> None:
        """Run ``work`` and log any exception, so that the thread survives for the next job."""
        try:
            work()
        except Exception:
            _logger.exception("the writer of TMDB's questions continues after an error")

    def _record_backlog(self) -> None:
        """Record how many changes wait for the graph, every few seconds."""
        if self._backlog is None or self.is_down or time.monotonic() - self._told < _IDLE_SECONDS:
            return
        self._told = time.monotonic()
        try:
            self._metrics.gauge("outbox_backlog", self._backlog())
        except (Error, OSError) as error:
            self._outage(error)

    def replay(self, most: int | None = None) -> int:
        """Write jobs in the spool, at most this many, while PostgreSQL answers; return how many were written."""
        done = 0
        while not self.is_down and (most is None or done < most):
            try:
                job = self._spool.claim()
            except SpoolError as error:
                _logger.warning("%s", error)
                return done
            if job is None:
                return done
            if self._persist(job, spooled=True) == "spooled":
                return done
            done += 1
        return done

    def _persist_together(self, jobs: Sequence[Job]) -> None:
        """Write jobs of the queue in one transaction; each by itself if there is anything about one of them."""
        if len(jobs) > 1 and not self.is_down and not self._forgotten(*jobs):
            try:
                self._store.persist_questions({job.job_id: job.request for job in jobs})
            except Exception as error:  # noqa: BLE001 - one of them may be refused, and the others must not be
                _logger.debug("questions are written one by one: %s", error)
            else:
                self._pause = 0.0
                self._metrics.count("persisted_total", number=len(jobs))
                for job in self._forgotten(*jobs):  # requested while they were being written
                    self._unwrite(job)
                return
        for job in jobs:
            self._persist(job)

    def _unwrite(self, job: Job) -> None:
        """Delete a job again that was written; if that fails it goes to the disk, and is deleted from there."""
        try:
            self._store.delete_request(job.job_id)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next job must go on
            self._outage(error)
            self._to_spool(job, forgotten_too=True)
        else:
            self._drop(job, spooled=False)

    def _persist(self, job: Job, *, spooled: bool = False) -> str:
        if self.is_down:
            return self._to_spool(job)
        try:
            if self._forgotten(job):
                if spooled:  # it may have been written before PostgreSQL stopped, and must be deleted again
                    self._store.delete_request(job.job_id)
                return self._drop(job, spooled=spooled)
            self._store.persist_questions({job.job_id: job.request})
            self._pause = 0.0
            if self._forgotten(job):  # requested while it was being written
                self._store.delete_request(job.job_id)
                return self._drop(job, spooled=spooled)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next job must go on
            if not _is_outage(error):
                return self._reject(job, error)
            self._outage(error)
            if spooled:
                self._spool.release(job)
                return "spooled"
            return self._to_spool(job, forgotten_too=True)
        self._metrics.count("persisted_total")
        if spooled:
            self._spool.done(job)
        return "written"

    def _outage(self, error: Exception) -> None:
        self._metrics.count("persist_failures_total")
        self._pause = min(2 * self._pause or 1.0, LONGEST_PAUSE)
        self._down_until = time.monotonic() + self._pause
        said = " ".join(str(error).split())[:200]
        _logger.warning(
            "tmdb persistence job failed: PostgreSQL does not answer (%s); retried in %g s", said, self._pause
        )

    def _reject(self, job: Job, error: Exception) -> str:
        self._metrics.count("persist_failures_total")
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        _logger.warning("tmdb persistence job failed: %s is put aside (%s)", job.job_id, reason)
        try:
            self._spool.reject(job, reason)
        except SpoolError as failure:
            return self._lose(failure)
        self._metrics.count("rejected_total")
        return "rejected"

    def _to_spool(self, job: Job, *, forgotten_too: bool = False) -> str:
        """Store a job on the disk; a forgotten one only if PostgreSQL may already hold it."""
        try:
            self._spool.add(job)
            if not forgotten_too and self._forgotten(job):
                return self._drop(job, spooled=True)
        except SpoolError as error:
            return self._lose(error)
        self._metrics.count("spooled_total")
        return "spooled"

    def _lose(self, error: SpoolError) -> str:
        self._metrics.count("lost_total")
        _logger.error("a question of TMDB's service is lost: %s", error)
        return "lost"

    def _forgotten(self, *jobs: Job) -> list[Job]:
        try:
            return self._spool.forgotten(jobs)
        except SpoolError as error:
            _logger.warning("%s", error)
            return []

    def _drop(self, job: Job, *, spooled: bool) -> str:
        self._metrics.count("forgotten_total")
        if spooled:
            self._spool.done(job)
        return "forgotten"


def _is_outage(error: Exception) -> bool:
    if isinstance(error, Error):
        # Without a code there was no answer; exceptions of a code's class count as that class.
        return error.sqlstate[:2] in _OUTAGE_CLASSES if error.sqlstate else not isinstance(error, DataError)
    return isinstance(error, OSError)
