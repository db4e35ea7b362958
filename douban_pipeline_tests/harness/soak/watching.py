"""Watching a soak: what the services use, what waits, what the gates let through; every few seconds, into a file."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import GateUnreadable
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ChangeState, ReviewStatus
from douban_pipeline_tests.harness.rig.processes import Process
from douban_pipeline_tests.harness.soak.background import Background
from douban_pipeline_tests.harness.soak.slopes import DESCRIPTORS, MEMORY, Growth, Point, growth_of

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
class Sample:
    """One look.

    Attributes:
        at: Seconds after the beginning.
        services: What each service holds that runs.
        tasks: Tasks by status.
        videos: Videos by review status.
        due: Videos that are due.
        changes: Logged changes by state.
        runs: Runs by status.
        gates: State of each gate.
        granted: Calls that each gate let through so far.
        disk_mb: Size of the scratch folder.
        missed: Why what the database tells is missing; empty when it is there.
    """

    at: float
    services: dict[str, Held] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    videos: dict[str, int] = field(default_factory=dict)
    due: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    gates: dict[str, str] = field(default_factory=dict)
    granted: dict[str, int] = field(default_factory=dict)
    disk_mb: float = 0.0
    missed: str = ""

    @property
    def queue(self) -> int:
        """Tasks that wait or are at work."""
        return self.tasks.get("PENDING", 0) + self.tasks.get("RUNNING", 0)

    @property
    def confirmed(self) -> int:
        """Videos with a confirmed subject."""
        return self.videos.get(ReviewStatus.CONFIRMED, 0)

    @property
    def written(self) -> int:
        """Changes that stand or stood in the CMS."""
        return self.changes.get(ChangeState.APPLIED, 0) + self.changes.get(ChangeState.REVERTED, 0)

    @property
    def open_gates(self) -> list[str]:
        """Sources whose breaker is not closed."""
        return [source for source, state in self.gates.items() if state != GateState.CLOSED]


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
    """Takes samples on a thread of its own while it is used as a context manager.

    Attributes:
        samples: What was seen so far, oldest first.
        breakers: What the breakers did.

    Args:
        processes: The services, by name.
        services: The pipeline's ground floor.
        instance: Dagster's.
        scratch: Folder whose size is told.
        out: File that gets each sample as a line of JSON.
        clock: Seconds, from any beginning.
    """

    def __init__(
        self,
        processes: Mapping[str, Process],
        services: Services,
        instance: dg.DagsterInstance,
        scratch: Path,
        out: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("watcher", patience=30)
        self._processes, self._services, self._instance = dict(processes), services, instance
        self._scratch, self._out, self._clock = scratch, out, clock
        self._began = clock()
        self.samples: list[Sample] = []
        self.breakers = Breakers()

    @property
    def last(self) -> Sample:
        """The last sample in which the database told its part, or an empty one."""
        return next((sample for sample in reversed(self.samples) if not sample.missed), Sample(0.0))

    def look(self) -> Sample:
        """Take one sample and keep it."""
        sample = Sample(round(self._clock() - self._began, 1), disk_mb=_size_mb(self._scratch))
        for name, process in self._processes.items():
            held = held_by(process)
            if held is not None:
                sample.services[name] = held
        try:
            self._ask(sample)
        except (SQLAlchemyError, GateUnreadable, OSError) as error:
            sample.missed = type(error).__name__
        self.samples.append(sample)
        return sample

    def _ask(self, sample: Sample) -> None:
        tables, now = self._services.tables, self._services.clock.now()
        counted = {
            "tasks": tables.task.c.status,
            "videos": tables.video.c.douban_review_status,
            "changes": tables.log.c.state,
        }
        with reading(self._services.engine) as connection:
            for name, column in counted.items():
                rows = connection.execute(select(column, func.count()).group_by(column))
                setattr(sample, name, {str(value): count for value, count in rows})
            due = select(func.count()).select_from(tables.video).where(tables.video.c.douban_next_sync_at <= now)
            sample.due = connection.execute(due).scalar_one()
        for gate in self._services.gate.status():
            sample.gates[gate.source], sample.granted[gate.source] = gate.state.value, gate.granted
            self.breakers.see(gate.source, gate.state.value, gate.changed_by)
        for status in dg.DagsterRunStatus:
            count = self._instance.get_runs_count(dg.RunsFilter(statuses=[status]))
            if count:
                sample.runs[status.value] = count

    def go_on(self) -> None:
        """Take samples until the end."""
        with self._out.open("a") as lines:
            while not self.ended.wait(INTERVAL_SECONDS):
                try:
                    lines.write(json.dumps(asdict(self.look())) + "\n")
                    lines.flush()
                except Exception as error:  # noqa: BLE001 (a look that fails must not end the watch)
                    lines.write(json.dumps({"at": self._clock() - self._began, "error": repr(error)}) + "\n")

    def growths(self) -> dict[str, tuple[Growth, str]]:
        """Return how what each service holds grew, with its unit, by ``service memory`` and ``service descriptors``."""
        found: dict[str, tuple[Growth, str]] = {}
        for name in self._processes:
            memory, descriptors = longest_life(self.samples, name)
            found[f"{name} memory"] = growth_of(memory, MEMORY), "MB"
            found[f"{name} descriptors"] = growth_of(descriptors, DESCRIPTORS), "fds"
        return found


def longest_life(samples: list[Sample], service: str) -> tuple[list[Point], list[Point]]:
    """Return memory and descriptors of ``service`` in the longest of its lives: one that was killed began anew."""
    lives: dict[int, list[tuple[float, Held]]] = {}
    for sample in samples:
        held = sample.services.get(service)
        if held is not None:
            lives.setdefault(held.pid, []).append((sample.at, held))
    longest = max(lives.values(), key=lambda life: life[-1][0] - life[0][0], default=[])
    return [(at, held.memory_mb) for at, held in longest], [(at, float(held.descriptors)) for at, held in longest]


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


def _size_mb(folder: Path) -> float:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return round(total / 1e6, 1)


def disk_growth(samples: list[Sample]) -> dict[str, Any]:
    """Return by how much the scratch folder grew, in MB, and how many MB an hour that is."""
    if len(samples) < 2:
        return {"first_mb": 0.0, "last_mb": 0.0, "mb_per_hour": 0.0}
    first, last = samples[0], samples[-1]
    hours = (last.at - first.at) / 3600
    growth = last.disk_mb - first.disk_mb
    return {
        "first_mb": first.disk_mb,
        "last_mb": last.disk_mb,
        "mb_per_hour": round(growth / hours, 1) if hours else 0.0,
    }
