"""One step of a chain run: its shards, its view of the queue, and what it mends before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from douban_pipeline.core.ui.presentation import local_time, table
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.partitions import shard_numbers
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.tasks import TaskQueue
from douban_pipeline.douban.writes.change_log import ChangeLog, Reconciled


@dataclass(frozen=True)
class Session:
    """What every step of the chain works with; see `open_session`."""

    context: dg.AssetExecutionContext
    services: Services
    shards: list[int]
    queue: TaskQueue
    change_log: ChangeLog
    deadline: datetime
    started: datetime
    reconciled: list[Reconciled]

    @property
    def run_id(self) -> str:
        """The Dagster run."""
        return self.context.run.run_id

    @property
    def limit(self) -> int:
        """How many videos this step takes on."""
        return self.services.settings.batch_size * len(self.shards)

    def attempts(self) -> Attempts:
        """Return a record of calls to outside sources, bound to this step's time."""
        return Attempts(self.services, self.queue, self.deadline)

    def attempts_metadata(self, attempts: Attempts) -> dict[str, Any]:
        """Return how many calls came to nothing, and a table of the tasks that went back into the queue, if any did."""
        rows = [
            {
                "vod_id": item.vod_id,
                "shard": item.shard,
                "why": item.reason,
                "failures": item.failures,
                "again at": local_time(item.until, self.services.settings.zone),
            }
            for item in (*attempts.failed, *attempts.deferred)
        ]
        return {
            "deferred": len(attempts.deferred),
            "failed": len(attempts.failed),
            "left_for_later": attempts.left,
            **({"lease_lost": attempts.lost} if attempts.lost else {}),
            **({"put_back": dg.MetadataValue.md(table(rows))} if rows else {}),
        }

    def result(self, metadata: Mapping[str, Any]) -> dg.MaterializeResult:
        """Return the step's result: ``metadata``, how long it took, and what was mended at its start."""
        mended = {"reconciled_changes": len(self.reconciled)} if self.reconciled else {}
        seconds = (self.services.clock.now() - self.started).total_seconds()
        return dg.MaterializeResult(metadata={**metadata, **mended, "seconds": round(seconds, 2)})


def open_session(context: dg.AssetExecutionContext, services: Services) -> Session:
    """Begin a step: check that the database is ready, free what dead runs held, settle what they left half done.

    Raises:
        DatabaseError: The database is not set up; the message says what to run.
    """
    services.ready()
    run_id = context.run.run_id
    queue, change_log = services.queue(run_id), services.change_log(run_id)
    dead = queue.release_dead()
    if dead:
        context.log.warning(f"freed the tasks of {len(dead)} dead runs: {', '.join(dead)}")
    reconciled = change_log.reconcile()
    for change in reconciled:
        context.log.warning(f"change {change.change_id} of video {change.vod_id} was left half done: {change.state}")
    now = services.clock.now()
    return Session(
        context,
        services,
        shard_numbers(context.partition_keys),
        queue,
        change_log,
        now + timedelta(seconds=services.settings.run_seconds),
        now,
        reconciled,
    )
