"""What every step of a chain run starts with: its shards, its view of the queue, its time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.progress import Progress
from douban_pipeline.douban.decisions.leases import release_dead_decisions
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import status_counts
from douban_pipeline.douban.store.states import TaskStage
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import Task
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import ReconciledChange


@dataclass(frozen=True)
class Session:
    """One step of a chain run; made by `open_session`.

    Attributes:
        services: Database, sources and settings.
        run_id: The Dagster run.
        shards: The shards it works on.
        log: Where the run's messages go.
        queue: The run's view of the tasks.
        change_log: The log to write through.
        started: When the step began (UTC).
        reconciled: Changes that dead runs left incomplete, settled by `open_session`.
        ordered_only: Whether it does only requested work: it was launched automatically outside the active hours.
        further: Returns a line for the log about more than this run, such as its backfill; None where there is none.
    """

    services: Services
    run_id: str
    shards: Sequence[int]
    log: logging.Logger
    queue: TaskQueue
    change_log: ChangeLog
    started: datetime
    reconciled: Sequence[ReconciledChange]
    ordered_only: bool = False
    further: Callable[[], str] | None = None

    @property
    def deadline(self) -> datetime:
        """The time after which no source is called."""
        return self.started + timedelta(seconds=self.services.settings.run_seconds)

    @property
    def limit(self) -> int:
        """How many videos this step takes on."""
        return self.services.settings.batch_size * len(self.shards)

    def lease(self, stage: TaskStage, *, limit: int | None = None, spare: int = 0) -> list[Task]:
        """Lease what this step works on.

        Args:
            stage: Which tasks.
            limit: How many at most; without one `Session.limit`, or as many as the run queued itself if that is more: a
                run whose config takes on more videos than the settings do does them, too.
            spare: How many more; those that the run holds already come first and may be as many as ``limit``.
        """
        if limit is None:
            limit = max(self.limit, self.queue.queued_by(self.run_id, self.shards, stage))
        return self.queue.lease(self.shards, stage, limit=limit + spare, ordered_only=self.ordered_only)

    def attempts(self, what: str) -> Attempts:
        """Return a record of calls to outside sources that ends with this step's time.

        Args:
            what: What the calls are made for, for the log.
        """
        return Attempts(self.services, self.queue, self.deadline, progress=self.progress(what))

    def progress(self, what: str) -> Progress:
        """Return what follows this step's work, named ``what`` in the log."""
        services = self.services
        return Progress(
            what,
            self.log,
            services.settings.zone,
            services.gate.status,
            services.clock.now,
            self.deadline,
            self.further,
        )

    def metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``metadata``, how many changes were reconciled if any, the library's numbers and the step's seconds.

        A step's counts are of its shards; ``library_…`` is the number of videos of the whole library by status.
        """
        reconciled = {"reconciled_changes": len(self.reconciled)} if self.reconciled else {}
        seconds = (self.services.clock.now() - self.started).total_seconds()
        quiet = {"outside_active_hours": True} if self.ordered_only else {}
        with reading(self.services.engine) as connection:
            statuses = status_counts(connection, self.services.tables, self.services.cms)
        library = {f"library_{status.value.lower()}": count for status, count in statuses.items()}
        return {**metadata, **reconciled, **quiet, **library, "seconds": round(seconds, 2)}


def open_session(
    services: Services,
    run_id: str,
    shards: Sequence[int],
    log: logging.Logger,
    *,
    automatic: bool = False,
    further: Callable[[], str] | None = None,
) -> Session:
    """Begin a step: check that the database is ready, free the tasks of dead runs, reconcile their changes.

    Args:
        services: Database, sources and settings.
        run_id: The Dagster run.
        shards: The shards it works on.
        log: Where the run's messages go.
        automatic: Whether no person launched the run; then it keeps to the active hours.
        further: Returns a line for the log about more than this run.

    Raises:
        DatabaseError: The database is not set up; the message says what to run.
    """
    services.ready()
    queue, change_log = services.queue(run_id), services.change_log(run_id)
    dead = queue.release_dead()
    if dead:
        log.warning(f"freed the tasks of {len(dead)} dead runs: {', '.join(dead)}")
    release_dead_decisions(services)
    reconciled = change_log.reconcile()
    for change in reconciled:
        log.warning(f"change {change.change_id} of video {change.vod_id} was left half done: {change.state}")
    now = services.clock.now()
    ordered_only = automatic and not services.settings.works_at(now)
    if ordered_only:
        log.info("outside the active hours: only what people ordered is done (DOUBAN_PIPELINE_ACTIVE_HOURS)")
    return Session(services, run_id, shards, log, queue, change_log, now, reconciled, ordered_only, further)
