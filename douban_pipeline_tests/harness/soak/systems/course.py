"""The course of the systems beside Douban's in a soak: all live and are harmed side by side, then drain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Self

from douban_pipeline_tests.harness.rig.parts import Part
from douban_pipeline_tests.harness.soak.evidence import Finding, of_the_soak
from douban_pipeline_tests.harness.soak.harms import OUTAGES, Harm, Harms, plan
from douban_pipeline_tests.harness.soak.systems.ground import Ground
from douban_pipeline_tests.harness.soak.systems.life import SystemLife
from douban_pipeline_tests.harness.soak.systems.lives import LIVES
from douban_pipeline_tests.harness.soak.world import Scale, only_these

DRAIN_SECONDS = 420.0
_LOOK_SECONDS, _TICK_SECONDS, _SAY_SECONDS = 3.0, 0.5, 30.0
_DOWN_SECONDS = (1.0, 4.0)


class Systems(Part):
    """Systems beside Douban's: started, then `live` and `drain` on a thread of their own, then `audit`.

    Attributes:
        drained: Whether nothing waited in the end, by system.

    Args:
        names: Which; in the order of `lives.LIVES`.
        scale: How large the soak is.
        scratch: An empty folder.
        say: Told what happens.
    """

    def __init__(self, names: Sequence[str], scale: Scale, scratch: Path, say: Callable[[str], None]) -> None:
        self._scale, self._say = scale, say
        self._ground = Ground(scale, scratch, say)
        rng = Random(f"systems {scale.seed}")
        self.lives: list[SystemLife] = [
            LIVES[name](self._ground, Random(f"{name} {rng.random()}")) for name in LIVES if name in names
        ]
        self._harms = Harms({}, (), say)
        self._end, self._hurry = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._go_through, name="systems", daemon=True)
        self._rng = rng
        self.drained: dict[str, bool] = {}
        self.errors: list[str] = []

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
        return self

    def live(self, end: threading.Event, hurry: threading.Event) -> None:
        """Let all of them live for the soak's minutes, then drain, on a thread of its own; see `wait`.

        Args:
            end: Set to end life early.
            hurry: Set to leave the drain.
        """
        self._end, self._hurry = end, hurry
        self._thread.start()

    def wait(self) -> None:
        """Wait until life and drain are over; interrupted as any other waiting."""
        while self._thread.is_alive():
            self._thread.join(_TICK_SECONDS)

    def _go_through(self) -> None:
        try:
            self._live()
            self._drain()
        except Exception as error:  # noqa: BLE001 (reported)
            self.errors.append(f"{type(error).__name__}: {error}")

    def _live(self) -> None:
        done: dict[str, Harm] = {"the systems' database killed": self._kill_database}
        done["the systems' daemon killed"] = self._kill_daemon
        for life in self.lives:
            done |= life.harms()
        self._harms = Harms(done, plan(list(done), self._scale.minutes, self._scale.seed), self._say)
        for life in self.lives:
            life.start()
        self._harms.begin()
        said = 0.0
        while self._harms.passed < self._scale.minutes * 60 and not self._end.wait(_TICK_SECONDS):
            self._harms.step()
            if self._harms.passed - said >= _SAY_SECONDS:
                said = self._harms.passed
                self._say("; ".join(f"{life.name}: {life.acts.total()} acts" for life in self.lives))
        self._harms.end()
        for life in self.lives:
            life.stop()

    def _drain(self) -> None:
        for life in self.lives:
            life.heal()
        self._say("the systems' life is over; what waits is done now")
        self.drained = {life.name: False for life in self.lives}
        until = time.monotonic() + DRAIN_SECONDS
        while not all(self.drained.values()) and time.monotonic() < until and not self._hurry.wait(_LOOK_SECONDS):
            for life in self.lives:
                try:
                    self.drained[life.name] = self.drained[life.name] or life.settled()
                except OUTAGES as error:
                    self._say(f"{life.name}, draining: {type(error).__name__}: {error}"[:300])
        for name, well in self.drained.items():
            self._say(f"{name}: drained: {'yes' if well else 'NO'}")

    def _kill_database(self) -> bool:
        self._ground.server.kill()
        time.sleep(self._rng.uniform(*_DOWN_SECONDS))
        self._ground.server.start()
        return True

    def _kill_daemon(self) -> bool:
        self._ground.stack.daemon.kill()
        time.sleep(self._rng.uniform(*_DOWN_SECONDS))
        self._ground.stack.daemon.start()
        return True

    def audit(self) -> list[Finding]:
        """Return what became of the invariants of each system."""
        errors = [*self.errors, *(error for life in self.lives for error in life.errors)]
        acts = sum(life.acts.total() for life in self.lives)
        found = [of_the_soak(errors, acts, "all systems")]
        for life in self.lives:
            found += [replace(each, system=life.name) for each in life.audit()]
        return found

    def happened(self) -> dict[str, Mapping[str, Any]]:
        """Return what happened, by heading, for the report."""
        done = dict(sorted(self._harms.done.items()))
        headings: dict[str, Mapping[str, Any]] = {"what was done to the systems": done}
        if self._harms.missed:
            headings["what could not be done to them"] = dict(self._harms.missed)
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
