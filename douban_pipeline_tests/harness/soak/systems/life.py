"""What every further system has in a soak: a life, harms that can be done to it, a drain, and an audit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

import psutil

from douban_pipeline_tests.harness.rig.processes import Process
from douban_pipeline_tests.harness.soak.background import Acting
from douban_pipeline_tests.harness.soak.evidence import Finding
from douban_pipeline_tests.harness.soak.harms import OUTAGES, Harm
from douban_pipeline_tests.harness.soak.systems.ground import Ground

DOWN = "could not: something was down"


class SystemLife(Acting):
    """One system in a soak: `prepare` before Dagster is started, `begin` after it, then `step` again and again.

    Attributes:
        name: The system's, which is its location's too.
        rhythm: Least and most seconds between two steps.

    Args:
        ground: What it stands on.
        rng: What chance there is.
    """

    name: ClassVar[str]
    rhythm: ClassVar[tuple[float, float]]

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

    @abstractmethod
    def prepare(self) -> Mapping[str, str]:
        """Start what is outside of the system, make its tables, and return the variables of its processes."""

    def begin(self) -> None:
        """Start the processes that it has beside Dagster's."""

    def harms(self) -> Mapping[str, Harm]:
        """Return what can be done to it, by what it is called; every one happens at least once."""
        return {f"run of {self.name} killed": self._kill_run, f"code server of {self.name} killed": self._kill_code}

    def _kill_run(self) -> bool:
        workers = self.ground.stack.run_workers(self.name, starting=True)
        if not workers:
            return False
        try:
            workers[self.rng.choice(sorted(workers))].kill()
        except psutil.NoSuchProcess:
            return False
        return True

    def _kill_code(self) -> bool:
        restart(self.ground.stack.codes[self.name])
        return True

    def heal(self) -> None:
        """From now on nothing ails any more."""

    @abstractmethod
    def settled(self) -> bool:
        """Do what is left to do, and return whether nothing waits any more; asked again every few seconds."""

    @abstractmethod
    def audit(self) -> list[Finding]:
        """Return what became of each of its invariants."""

    def summary(self) -> dict[str, Any]:
        """Return what the report says of it beside its acts."""
        return {}

    def close(self) -> None:
        """Let go of everything but what the ground keeps; safe to repeat."""


def restart(process: Process) -> None:
    """Kill a process with -9, and start it again, as what watches over it would."""
    process.kill()
    process.start()
