"""Watching a soak, every few seconds, into a file: what waits, what the gates let through, and whether memory grows."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

import psutil
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.errors import GateUnreadable
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.services import Services
from douban_pipeline_tests.harness.rig.processes import Process
from douban_pipeline_tests.harness.soak.evidence import Usage
from douban_pipeline_tests.harness.soak.life import Background

WARM_UP = 1 / 3
"""Share of a process's life that is not judged: modules are loaded, pools and caches fill."""
WARM_UP_MINUTES = 12.0
"""And at least so much of it: daemon and code server that hold +4 and +32 MB/h after 20 minutes showed +77 and +117
after nine."""
LEAST_MINUTES = 8.0
"""A stretch shorter than this is told but not judged: a few MB of noise would be a steep slope."""
_BUCKETS = 60

Point = tuple[float, float]
"""Seconds, and what was used then."""


@dataclass(frozen=True, slots=True)
class Limit:
    """When growth is a leak."""

    per_hour: float
    least: float


MEMORY = Limit(per_hour=40.0, least=8.0)
"""MB. A service that leaks this much an hour needs a restart a day; less is hardly to be told in half an hour."""
DESCRIPTORS = Limit(per_hour=20.0, least=6.0)
"""Open files and sockets; some come and go with the requests under way."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How what a process uses went, after its warm-up."""

    minutes: float
    per_hour: float
    first: float
    last: float
    noise: float
    flat: bool | None

    def summary(self, unit: str) -> str:
        """Return it in a sentence."""
        what = {True: "flat", False: "GROWS", None: "too short to judge"}[self.flat]
        return (
            f"{what}: {self.first:.1f} → {self.last:.1f} {unit} in {self.minutes:.1f} min "
            f"({self.per_hour:+.1f} {unit}/h, noise ±{self.noise:.1f})"
        )


def growth_of(points: Sequence[Point], limit: Limit, *, least_minutes: float = LEAST_MINUTES) -> Growth:
    """Return how ``points``, oldest first, grow after the warm-up.

    It is a leak if the slope and the growth both exceed ``limit``, and the growth is more than the noise explains.
    """
    settled = _settled(points)
    if len(settled) < 3:
        value = settled[-1][1] if settled else 0.0
        return Growth(0.0, 0.0, value, value, 0.0, None)
    seconds = settled[-1][0] - settled[0][0]
    slope, start = theil_sen(thinned(settled, _BUCKETS))
    noise = median(abs(value - (start + slope * at)) for at, value in settled)
    first, last = start + slope * settled[0][0], start + slope * settled[-1][0]
    steep = slope * 3600 > limit.per_hour and last - first > max(limit.least, 3 * noise)
    long_enough = seconds / 60 >= least_minutes
    return Growth(seconds / 60, slope * 3600, first, last, noise, not steep if long_enough else None)


def _settled(points: Sequence[Point]) -> list[Point]:
    if not points:
        return []
    life = points[-1][0] - points[0][0]
    begins = points[0][0] + max(WARM_UP * life, WARM_UP_MINUTES * 60)
    return [point for point in points if point[0] >= begins]


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Return at most ``most`` points, each the median of neighbours."""
    size = math.ceil(len(points) / most)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(median(at for at, _ in group), median(value for _, value in group)) for group in groups]


def theil_sen(points: Sequence[Point]) -> tuple[float, float]:
    """Return slope and value at 0 of the line through ``points``: the median of all slopes, and of what is left.

    Nearly a third of the points may be anywhere without moving it. Points at one moment have no slope.
    """
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] != a[0]]
    slope = median(slopes) if slopes else 0.0
    return slope, median(value - slope * at for at, value in points)


INTERVAL_SECONDS = 5.0
_RUN_WORKER = "multiprocessing.spawn"
"""Part of the command line of a process that the code server makes to execute a run: it comes and goes, and says
nothing of its parent."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a service holds: memory in MB (10⁶ bytes), descriptors; `pid` tells one life of it from the next."""

    pid: int
    memory_mb: float
    descriptors: int


@dataclass(slots=True)
class Breakers:
    """How often the breaker of each source opened, and who closed it again."""

    opened: Counter[str] = field(default_factory=Counter)
    closed_alone: Counter[str] = field(default_factory=Counter)
    closed_by_hand: Counter[str] = field(default_factory=Counter)
    _before: dict[str, str] = field(default_factory=dict)

    def see(self, source: str, state: str, changed_by: str) -> None:
        """Take note of a gate as it is now."""
        before = self._before.get(source, GateState.CLOSED)
        if before == GateState.CLOSED and state != GateState.CLOSED:
            self.opened[source] += 1
        if before != GateState.CLOSED and state == GateState.CLOSED:
            (self.closed_by_hand if changed_by else self.closed_alone)[source] += 1
        self._before[source] = state


class Watcher(Background):
    """Looks at processes and gates on a thread of its own while it is used as a context manager."""

    def __init__(self, processes: Mapping[str, Process], services: Services) -> None:
        super().__init__("watcher", patience=30)
        self._processes, self._services = dict(processes), services
        self._lives: dict[tuple[str, int], list[tuple[float, Held]]] = {}
        self.breakers = Breakers()

    def look(self) -> None:
        """Take note of what there is now."""
        for name, process in self._processes.items():
            held = held_by(process)
            if held is not None:
                self._lives.setdefault((name, held.pid), []).append((time.monotonic(), held))
        with suppress(SQLAlchemyError, GateUnreadable, OSError):  # something is down
            for gate in self._services.gate.status():
                self.breakers.see(gate.source, gate.state.value, gate.changed_by)

    def go_on(self) -> None:
        """Look again and again until the end."""
        while not self.ended.wait(INTERVAL_SECONDS):
            self.look()

    def usage(self) -> list[Usage]:
        """Return how memory and descriptors of each went in its longest life: one that was killed began anew."""
        found = []
        for name in self._processes:
            lives = [life for (whose, _), life in self._lives.items() if whose == name]
            longest = max(lives, key=lambda life: life[-1][0] - life[0][0], default=[])
            for what, unit, limit, points in (
                ("memory", "MB", MEMORY, [(at, held.memory_mb) for at, held in longest]),
                ("descriptors", "fds", DESCRIPTORS, [(at, float(held.descriptors)) for at, held in longest]),
            ):
                growth = growth_of(points, limit)
                found.append(Usage(f"{name} {what}", growth.flat is not False, growth.summary(unit)))
        return found


def held_by(process: Process) -> Held | None:
    """Return what a service holds with its helpers, without the processes that execute runs; None if it is down."""
    memory, descriptors, workers = 0, 0, set()
    family = process.family()
    for member in family:
        try:
            with member.oneshot():
                if member.ppid() in workers or _RUN_WORKER in " ".join(member.cmdline()):
                    workers.add(member.pid)
                    continue
                memory += member.memory_info().rss
                descriptors += member.num_fds()
        except psutil.Error:
            continue
    return Held(family[0].pid, round(memory / 1e6, 2), descriptors) if family else None
