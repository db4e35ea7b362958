"""The course of a soak: all systems live and are harmed side by side, then drain, and are audited."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Any, Self

import dagster as dg

from douban_pipeline.dagster_kit.runs import UNDER_WAY
from douban_pipeline_tests.harness.rig.processes import Part, only_these
from douban_pipeline_tests.harness.rig.waiting import wait_for
from douban_pipeline_tests.harness.soak.comments import CommentsLife
from douban_pipeline_tests.harness.soak.digest import DigestLife
from douban_pipeline_tests.harness.soak.douban import DoubanLife
from douban_pipeline_tests.harness.soak.evidence import Finding, of_the_soak
from douban_pipeline_tests.harness.soak.feeds import FeedsLife
from douban_pipeline_tests.harness.soak.ground import Ground
from douban_pipeline_tests.harness.soak.harms import EVERY_MINUTES, OUTAGES, Harm, Harms, plan
from douban_pipeline_tests.harness.soak.life import SystemLife
from douban_pipeline_tests.harness.soak.tmdb import TmdbLife

LIVES: Mapping[str, type[SystemLife]] = {
    life.name: life for life in (DoubanLife, FeedsLife, DigestLife, TmdbLife, CommentsLife)
}
"""The systems that can live in a soak, in the order in which they are started and told of."""
_LOOK_SECONDS, _TICK_SECONDS, _SAY_SECONDS, _REST_SECONDS = 3.0, 0.5, 30.0, 90.0
_DOWN_SECONDS = (1.0, 4.0)
_DATABASE, _DAEMON = "the database killed", "Dagster's daemon killed"


class Course(Part):
    """Systems in a soak: started, then `live`, `drain` and `audit`."""

    def __init__(self, names: Sequence[str], ground: Ground) -> None:
        self._ground, self._say = ground, ground.say
        self._rng = Random(f"systems {ground.scale.seed}")
        self.lives: list[SystemLife] = [
            LIVES[name](ground, Random(f"{name} {self._rng.random()}")) for name in LIVES if name in names
        ]
        self._harms = Harms({}, (), self._say)
        self.drained: dict[str, bool] = {}

    def start(self) -> Self:
        """Start everything; nobody does anything yet.

        Raises:
            RigError: A part did not start.
        """
        names = ", ".join(life.name for life in self.lives)
        with only_these({}):  # settings of this process's environment are no system's in a soak
            self._say(f"starting what {names} stand on")
            self._ground.start()
            environments = {life.name: life.prepare() for life in self.lives}
            self._say(f"starting Dagster for {names}")
            self._ground.start_dagster(environments)
            for life in self.lives:
                life.begin()
        self._say(f"Dagster's UI: {self._ground.stack.url}")
        return self

    def live(self, ended: threading.Event) -> None:
        """Let all of them live for the soak's minutes, or until it is ``ended``."""
        done: dict[str, Harm] = {_DATABASE: self._kill_database, _DAEMON: self._kill_daemon}
        every = dict.fromkeys(done, 0.0)
        for life in self.lives:
            done |= life.harms()
            every |= {what: life.every.get(what, EVERY_MINUTES) for what in life.harms()}
        minutes = self._ground.scale.minutes
        self._harms = Harms(done, plan(every, minutes, self._ground.scale.seed), self._say)
        for life in self.lives:
            life.start()
        self._harms.begin()
        said = 0.0
        while self._harms.passed < minutes * 60 and not ended.wait(_TICK_SECONDS):
            self._harms.step()
            if self._harms.passed - said >= _SAY_SECONDS:
                said = self._harms.passed
                self._say("; ".join(f"{life.name}: {life.acts.total()} acts" for life in self.lives))
        self._harms.end()
        for life in self.lives:
            life.stop()

    def drain(self, hurried: threading.Event) -> None:
        """Wait until nothing waits any more, or it is ``hurried``; then everything comes to rest."""
        for life in self.lives:
            life.heal()
        self._say("life and troubles are over; what waits is done now")
        self.drained = {life.name: False for life in self.lives}
        began = said = time.monotonic()
        left = [*self.lives]
        while left and not hurried.wait(_LOOK_SECONDS):
            passed = time.monotonic() - began
            for life in [*left]:
                try:
                    self.drained[life.name] = life.settled()
                except OUTAGES as error:
                    self._say(f"{life.name}, draining: {type(error).__name__}: {error}"[:300])
                if self.drained[life.name] or passed > life.drain_seconds:
                    left.remove(life)
            if time.monotonic() - said > _SAY_SECONDS:
                said = time.monotonic()
                self._say(f"draining: {', '.join(life.name for life in left)}")
        for name, well in self.drained.items():
            self._say(f"{name}: drained: {'yes' if well else 'NO'}")
        self._ground.stack.daemon.stop()
        at_work = dg.RunsFilter(statuses=[each for each in UNDER_WAY if each is not dg.DagsterRunStatus.QUEUED])
        wait_for(lambda: not self._ground.instance.get_runs_count(at_work), seconds=_REST_SECONDS, poll=2)
        for life in self.lives:
            life.finish()

    def _kill_database(self) -> bool:
        with ExitStack() as paused:
            for life in self.lives:
                if life.pauses:
                    paused.enter_context(life.pause)
            return self._ground.restart("database", self._ground.server, self._rng.uniform(*_DOWN_SECONDS))

    def _kill_daemon(self) -> bool:
        return self._ground.restart("daemon", self._ground.stack.daemon, self._rng.uniform(*_DOWN_SECONDS))

    def audit(self) -> list[Finding]:
        """Return what became of the invariants of each system."""
        errors = [error for life in self.lives for error in life.errors]
        found = [of_the_soak(errors, sum(life.acts.total() for life in self.lives), "all systems")]
        for life in self.lives:
            found += [replace(each, system=life.name) for each in life.audit()]
        return found

    def happened(self) -> dict[str, Mapping[str, Any]]:
        """Return what happened, by heading, for the report."""
        missed = {f"not done, there was no moment: {what}": count for what, count in self._harms.missed.items()}
        done = dict(sorted(self._harms.done.items()))
        headings: dict[str, Mapping[str, Any]] = {"what went wrong": {**done, **missed}}
        for life in self.lives:
            runs = {f"runs of {name}": count for name, count in self._ground.runs_by_status(life.name).items()}
            headings[f"what happened in {life.name}"] = {**dict(sorted(life.acts.items())), **life.summary(), **runs}
        return headings

    def stop(self) -> None:
        """Stop everything; safe to repeat."""
        for life in self.lives:
            life.ended.set()
            life.close()
        self._ground.stop()
