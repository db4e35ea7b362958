"""What every system has in a soak: a life on a thread of its own, harms that can be done to it, a drain, an audit."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, ClassVar, Self

import psutil

from douban_pipeline_tests.harness.rig.processes import Part
from douban_pipeline_tests.harness.soak.evidence import Finding, Kill
from douban_pipeline_tests.harness.soak.ground import Ground, location_of
from douban_pipeline_tests.harness.soak.harms import OUTAGES, Harm


class Background(Part):
    """Goes on while it is used as a context manager; `go_on` looks at `ended` between its acts."""

    def __init__(self, name: str, patience: float) -> None:
        self.ended = threading.Event()
        self._patience = patience
        self._thread = threading.Thread(target=self.go_on, name=name, daemon=True)

    @abstractmethod
    def go_on(self) -> None:
        """Act until it is `ended`."""

    def start(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End, after the act under way."""
        self.ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._patience)


class Acting(Background):
    """Takes a `step` at random intervals until the end."""

    def __init__(
        self,
        name: str,
        rng: Random,
        *,
        rhythm: tuple[float, float],
        outages: tuple[type[Exception], ...],
        outage: str,
        patience: float,
        source: str = "",
    ) -> None:
        super().__init__(name, patience)
        self.rng = rng
        self.acts: Counter[str] = Counter()
        self.errors: list[str] = []
        self._rhythm, self._outages, self._outage, self._source = rhythm, outages, outage, source

    @abstractmethod
    def step(self) -> str:
        """Do something, and return what, in words."""

    def go_on(self) -> None:
        """Take steps until the end."""
        while not self.ended.wait(self.rng.uniform(*self._rhythm)):
            try:
                self.acts[self.step()] += 1
            except self._outages:
                self.acts[self._outage] += 1
            except Exception as error:  # noqa: BLE001 (reported: a soak that broke proves nothing)
                self.errors.append(f"{self._source}{type(error).__name__}: {error}")


DOWN = "could not: something was down"


class SystemLife(Acting):
    """One system in a soak: `prepare` before Dagster is started, `begin` after it, then `step` again and again."""

    name: ClassVar[str]
    rhythm: ClassVar[tuple[float, float]]
    drain_seconds: float = 420.0
    pauses: ClassVar[bool] = False
    """Whether it must do nothing while the database is down."""
    every: ClassVar[Mapping[str, float]] = {}
    """Minutes between two of a harm, where they are others than `harms.EVERY_MINUTES`; see `harms.plan`."""

    def __init__(self, ground: Ground, rng: Random) -> None:
        super().__init__(
            f"life of {self.name}",
            rng,
            rhythm=self.rhythm,
            outages=OUTAGES,
            outage=DOWN,
            patience=90,
            source=f"{self.name}: ",
        )
        self.ground = ground
        self.pause = threading.Lock()
        """Held while nobody must do anything."""

    @abstractmethod
    def prepare(self) -> Mapping[str, str]:
        """Start what is outside of the system, make its tables, and return the variables of its processes."""

    def begin(self) -> None:
        """Start the processes that it has beside Dagster's."""

    def harms(self) -> Mapping[str, Harm]:
        """Return what can be done to it, by what it is called; every one happens at least once."""
        return {f"run of {self.name} killed": self._kill_run, f"code server of {self.name} killed": self._kill_code}

    def _kill_run(self) -> bool:
        workers = self.ground.stack.run_workers(location_of(self.name), starting=True)
        if not workers:
            return False
        run_id = self.rng.choice(sorted(workers))
        try:
            workers[run_id].kill()
        except psutil.NoSuchProcess:
            return False
        self.ground.kills.append(Kill(datetime.now(UTC), "run", run_id))
        return True

    def _kill_code(self) -> bool:
        return self.ground.restart("code", self.ground.stack.codes[location_of(self.name)])

    def heal(self) -> None:
        """From now on nothing ails any more."""

    @abstractmethod
    def settled(self) -> bool:
        """Do what is left to do, and return whether nothing waits any more; asked again every few seconds."""

    @abstractmethod
    def audit(self) -> list[Finding]:
        """Return what became of each of its invariants."""

    def finish(self) -> None:
        """Note what is left, once Dagster's daemon and all runs have stopped."""

    def summary(self) -> dict[str, Any]:
        """Return what the report says of it beside its acts."""
        return {}

    def close(self) -> None:
        """Let go of everything but what the ground keeps; safe to repeat."""
