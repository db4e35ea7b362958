"""The operator's drill: what happens between systems and people, done to Douban's world at random moments.

Dagster's PostgreSQL is restarted under people's launches, videos are edited by hand between their judging and a sweep,
what a whole run wrote is reverted, and a worker dies in the middle of a write while another one is well. What people
are told of it is audited by `audit.told`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import psutil
from sqlalchemy import func, select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.store.states import ChangeState, TaskStatus
from douban_pipeline.douban.writes.changes import PIPELINE
from douban_pipeline_tests.harness.soak.audit.told import SPARED_SECONDS
from douban_pipeline_tests.harness.soak.duties import Operator
from douban_pipeline_tests.harness.soak.evidence import Kill
from douban_pipeline_tests.harness.soak.harms import Harm
from douban_pipeline_tests.harness.soak.life import Life
from douban_pipeline_tests.harness.soak.outside import Row, now
from douban_pipeline_tests.harness.soak.site import ADMIN
from douban_pipeline_tests.harness.soak.world import World

LAUNCHES = 3
"""Launches of people a moment after each restart."""
_EDITED = 4
_BULK = 5
"""Changes that a run must have written to be reverted as a whole."""
_LOOKED_AT = 400
_WATCH_SECONDS = 4.0
_GLANCE_SECONDS = 0.004


class Drill:
    """Harms for `harms.Harms`: each does its part once, and returns False while there is nothing to do it to.

    Attributes:
        kills: What was restarted or killed, and when it was back.

    Args:
        world: What it happens to.
        life: The site and its people.
        operator: Who launches the sweep.
        outsiders: Held while the drill acts in their place.
    """

    def __init__(self, world: World, life: Life, operator: Operator, outsiders: threading.Lock) -> None:
        self._world, self._life, self._operator, self._outsiders = world, life, operator, outsiders
        self._rng = Random(f"drill {world.scale.seed}")
        self.kills: list[Kill] = []

    def harms(self) -> Mapping[str, Harm]:
        """Return what is done, by what it is called."""
        return {
            "Dagster's PostgreSQL restarted under launches": self.restart_postgres,
            "videos edited between judging and sweeping": self.edit_what_is_judged,
            "a run reverted as a whole": self.revert_a_run,
            "a worker killed in a write, beside a healthy one": self.kill_a_writer,
        }

    def restart_postgres(self) -> bool:
        """Launch as people do, restart the server that Dagster stores on, and launch at once and a moment later."""
        with self._outsiders:
            if not self._life.people.decide(by_job=True):
                return False
            at = datetime.now(UTC)
            self._world.postgres.restart()
            self.kills.append(Kill(at=at, what="postgres", until=datetime.now(UTC)))
            self._life.people.decide(by_job=True)
            time.sleep(SPARED_SECONDS)
            for _ in range(LAUNCHES):
                self._life.people.decide(by_job=True)
        return True

    def edit_what_is_judged(self) -> bool:
        """Save videos by hand that a run has leased, and have the library swept."""
        task = self._world.services.tables.task
        leased = select(task.c.vod_id).where(task.c.status == TaskStatus.RUNNING).limit(_LOOKED_AT)
        with reading(self._world.services.engine) as connection:
            found = sorted(connection.execute(leased).scalars())
        if not found:
            return False

        def edit(_row: Row) -> Mapping[str, Any]:
            return {"vod_remarks": f"手改 {self._rng.randint(1, 10**6)}", "vod_time": now()}

        chosen = self._rng.sample(found, min(_EDITED, len(found)))
        with self._outsiders:
            changed = self._life.outside.change(ADMIN, "edited by hand what a run had leased", chosen, edit)
        return bool(changed) and self._operator.sweep() is not None

    def revert_a_run(self) -> bool:
        """Revert what one of the latest runs wrote."""
        log = self._world.services.tables.log
        newest = (
            select(log.c.run_id)
            .where(log.c.state == ChangeState.APPLIED, log.c.operator == PIPELINE)
            .order_by(log.c.change_id.desc())
            .limit(_LOOKED_AT)
            .subquery()
        )
        many = select(newest.c.run_id).group_by(newest.c.run_id).having(func.count() >= _BULK)
        with reading(self._world.services.engine) as connection:
            runs = sorted(connection.execute(many).scalars())
        if not runs:
            return False
        with self._outsiders:
            return bool(self._life.people.revert_run(self._rng.choice(runs)))

    def kill_a_writer(self) -> bool:
        """Kill a run's process between the log's row and what it tells of, while another run is at work."""
        workers = self._world.stack.run_workers()
        if len(workers) < 2:
            return False
        log = self._world.services.tables.log
        prepared = select(log.c.run_id).where(log.c.state == ChangeState.PREPARED, log.c.run_id.in_(workers)).limit(1)
        until = time.monotonic() + _WATCH_SECONDS
        while time.monotonic() < until:
            with reading(self._world.services.engine) as connection:
                run_id = connection.execute(prepared).scalar()
            if run_id is not None and self._kill_if_writing(run_id, workers[run_id]):
                return True
            time.sleep(_GLANCE_SECONDS)
        return False

    def _kill_if_writing(self, run_id: str, worker: psutil.Process) -> bool:
        """Stop a process, and kill it if what it prepared is still not applied; else let it go on."""
        log = self._world.services.tables.log
        still = select(func.count()).where(log.c.state == ChangeState.PREPARED, log.c.run_id == run_id)
        with suppress(psutil.NoSuchProcess):
            worker.suspend()
            try:
                with reading(self._world.services.engine) as connection:
                    writing = bool(connection.execute(still).scalar())
                if writing:
                    worker.kill()
                    self.kills.append(Kill(at=datetime.now(UTC), what="run", run_id=run_id))
                    return True
            finally:
                with suppress(psutil.NoSuchProcess):
                    worker.resume()
        return False
