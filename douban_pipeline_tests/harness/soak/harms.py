"""Harms that are done again and again, and when: a plan that a seed decides, and doing it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import httpx
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline_tests.harness.rig.processes import RigError

OUTAGES = (RigError, httpx.HTTPError, SQLAlchemyError, DatabaseError, RedisError)
"""Errors of this process's own calls while something is down on purpose; nothing is wrong with the soak by them."""
Harm = Callable[[], bool]
"""Does harm once; False where there is nothing to be harmed yet, so that it is tried again."""

EVERY_MINUTES = 4.0
"""A harm is done so often unless its system says otherwise."""
QUIET_SHARE = 0.12
"""Share of the soak at its end in which nothing new goes wrong, so that all recover while life goes on."""
HUNT_SECONDS = 45.0
"""How long is waited for what is to be harmed, such as a run."""
_FIRST_SECONDS = 15.0


@dataclass(frozen=True, slots=True, order=True)
class PlannedHarm:
    """One harm: so many seconds after the beginning, and which."""

    at: float
    what: str


def plan(kinds: Mapping[str, float], minutes: float, seed: int) -> tuple[PlannedHarm, ...]:
    """Return what goes wrong in a soak of ``minutes``, in order: every kind at least once, none in its last part.

    ``kinds`` says how many minutes lie between two of each; with 0 it happens once and early: a process that was
    started anew is judged from then on.
    """
    rng = Random(f"harms {seed}")
    end = max(minutes * 60 * (1 - QUIET_SHARE), _FIRST_SECONDS + 1)
    found = []
    for kind, every in kinds.items():
        count = max(1, round(minutes / every)) if every else 1
        share = (end - _FIRST_SECONDS) / (count if every else 4)
        found += [PlannedHarm(_FIRST_SECONDS + (number + rng.random()) * share, kind) for number in range(count)]
    return tuple(sorted(found))


class Harms:
    """Does what a plan says, step by step; `step` is called often, by one thread."""

    def __init__(
        self,
        harms: Mapping[str, Harm],
        plan: Sequence[PlannedHarm],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._harms, self._left, self._say, self._clock = harms, list(plan), say, clock
        self._waiting: list[PlannedHarm] = []
        self._began = clock()
        self.done: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    def begin(self) -> None:
        """The plan's time begins now."""
        self._began = self._clock()

    def step(self) -> None:
        """Do what is due, and try again what could not be done yet."""
        while self._left and self._left[0].at <= self.passed:
            self._waiting.append(self._left.pop(0))
        still = []
        for each in self._waiting:
            if self._do(each.what):
                self.done[each.what] += 1
                self._say(each.what)
            elif self.passed < each.at + HUNT_SECONDS:
                still.append(each)
            else:
                self.missed[each.what] += 1
                self._say(f"not done within {HUNT_SECONDS:.0f} s: {each.what}")
        self._waiting = still

    def end(self) -> None:
        """Nothing is harmed any more; what was still waited for is missed."""
        self.missed.update(each.what for each in (*self._waiting, *self._left))
        self._waiting, self._left = [], []

    def _do(self, what: str) -> bool:
        try:
            return self._harms[what]()
        except OUTAGES:
            return False
