"""Making the plan of troubles come true: killing processes, and making sources fail for a while."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Literal

import psutil
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline_tests.harness.rig.processes import RigError
from douban_pipeline_tests.harness.soak.evidence import SOURCES, Kill
from douban_pipeline_tests.harness.soak.troubles import Kind, Trouble
from douban_pipeline_tests.harness.soak.world import World
from douban_pipeline_tests.stand_ins.faults import Fault

Server = Literal["database", "code", "daemon"]
HUNT_SECONDS = 40.0
"""How long a run is waited for that can be killed."""
_LATER_SECONDS = (0.0, 6.0)
"""How much later it is killed than found, so that it is not always at its beginning."""
_TICK_SECONDS = 0.5


class Disasters:
    """Carries out a plan of troubles, step by step; `step` is called often, by one thread.

    Attributes:
        kills: What was killed, and when it was back.
        done: How often each kind of trouble happened really.
        missed: Runs that were to be killed when none was at work.
        unhealthy: The sources that are unhealthy now, by endpoint.

    Args:
        world: What it happens to.
        plan: The troubles, in order.
        outsiders: Held while the database is down: who writes to the CMS from outside waits, for what became of a
            statement that was under way would not be known.
        say: Told what happens.
    """

    def __init__(
        self, world: World, plan: Sequence[Trouble], outsiders: threading.Lock, say: Callable[[str], None]
    ) -> None:
        self._world, self._left, self._outsiders, self._say = world, list(plan), outsiders, say
        self._rng = Random(f"disasters {world.scale.seed}")
        self._began = time.monotonic()
        self._over: dict[str, float] = {}
        self._hunts: list[float] = []
        self._prey: tuple[str, psutil.Process, float] | None = None
        self.unhealthy: dict[str, Fault] = {}
        self.kills: list[Kill] = []
        self.done: Counter[str] = Counter()
        self.missed = 0

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    @property
    def ill_sources(self) -> set[str]:
        """The gates of the sources that are unhealthy now."""
        return {SOURCES[endpoint] for endpoint in self.unhealthy}

    def begin(self) -> None:
        """The plan's time begins now."""
        self._began = time.monotonic()

    def step(self) -> None:
        """Do what is due."""
        for endpoint in [endpoint for endpoint, until in self._over.items() if until <= self.passed]:
            self._heal(endpoint)
        while self._left and self._left[0].at <= self.passed:
            self._happen(self._left.pop(0))
        self._hunt()

    def end(self) -> None:
        """Nothing goes wrong any more, and what is unhealthy is well again; safe to repeat."""
        self._left.clear()
        self._hunts.clear()
        self._prey = None
        for endpoint in list(self.unhealthy):
            self._heal(endpoint)

    def _happen(self, trouble: Trouble) -> None:
        stack = self._world.stack
        match trouble.kind:
            case Kind.kill_run:
                self._hunts.append(self.passed + HUNT_SECONDS)
            case Kind.fault:
                self._sicken(trouble)
            case Kind.kill_database:
                self._kill_database(trouble)
            case Kind.kill_daemon:
                self._restart("daemon", stack.daemon.kill, stack.daemon.start, trouble)
            case Kind.kill_code:
                self._restart("code", stack.code.kill, stack.code.start, trouble)

    def _sicken(self, trouble: Trouble) -> None:
        self._say(trouble.summary)
        self.done[trouble.kind] += 1
        self.unhealthy[trouble.endpoint] = Fault(trouble.endpoint, trouble.fault, retry_after=trouble.retry_after)
        self._over[trouble.endpoint] = self.passed + trouble.seconds
        self._world.replay.faults.replace(self.unhealthy.values())

    def _heal(self, endpoint: str) -> None:
        self.unhealthy.pop(endpoint, None)
        self._over.pop(endpoint, None)
        self._world.replay.faults.replace(self.unhealthy.values())
        self._say(f"{SOURCES[endpoint]} is well again")

    def _kill_database(self, trouble: Trouble) -> None:
        with self._outsiders:
            self._restart("database", self._world.server.kill, self._world.server.start, trouble)

    def _restart(self, what: Server, kill: Callable[[], object], start: Callable[[], object], trouble: Trouble) -> None:
        at = datetime.now(UTC)
        kill()
        time.sleep(trouble.seconds)
        start()
        until = datetime.now(UTC)
        self.kills.append(Kill(at=at, what=what, until=until))
        self.done[trouble.kind] += 1
        self._say(f"{trouble.summary}, started again after {(until - at).total_seconds():.1f} s")

    def _hunt(self) -> None:
        """Kill a run if one is due to be: found first, killed a little later."""
        if self._prey is not None:
            run_id, worker, at = self._prey
            if self.passed >= at:
                self._prey = None
                self._kill_run(run_id, worker)
            return
        if not self._hunts:
            return
        try:
            workers = self._world.stack.run_workers()
        except (RigError, SQLAlchemyError):
            workers = {}
        if workers:
            run_id = self._rng.choice(sorted(workers))
            self._prey = run_id, workers[run_id], self.passed + self._rng.uniform(*_LATER_SECONDS)
        elif self._hunts[0] <= self.passed:
            self._hunts.pop(0)
            self.missed += 1
            self._say(f"no run to kill for {HUNT_SECONDS:.0f} s")

    def _kill_run(self, run_id: str, worker: psutil.Process) -> None:
        try:
            worker.kill()
        except psutil.NoSuchProcess:
            return  # it ended by then; the hunt goes on
        if self._hunts:
            self._hunts.pop(0)
        self.kills.append(Kill(at=datetime.now(UTC), what="run", run_id=run_id))
        self.done[Kind.kill_run] += 1
        self._say(f"run {run_id[:8]} killed")
