"""What a measure is, and what it finds: figures with a target, beside what the libraries alone can do."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from douban_pipeline.douban.services import Services

SMALL, LARGE = 170_000, 1_700_000
"""Videos of the two libraries."""
Say = Callable[[str], None]
"""Tells the person who waits what is being done."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should keep to.

    Attributes:
        most: It should not be more; None where there is no such limit.
        least: It should not be less.
        growth: How often the small library's figure the large one's may be.
    """

    most: float | None = None
    least: float | None = None
    growth: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that was measured.

    Attributes:
        name: What, in a few words; the same in every library, so that growth can be told.
        value: The number.
        unit: ``s``, ``ms``, ``MB`` (10⁶ bytes), ``/s``, ``%`` or empty for a count.
        target: What it should keep to, if anything.
        baseline: The best that the libraries alone did at the same work, in the same unit.
        against: What that baseline is.
        note: What a reader has to know to read the number.
    """

    name: str
    value: float
    unit: str
    target: Target | None = None
    baseline: float | None = None
    against: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """What a measure is given.

    Attributes:
        services: The pipeline on the generated library, in a database of its own.
        size: Videos in it.
        seed: What the library was generated from.
        scratch: An empty folder, gone afterwards.
        say: Tells the person who waits what is being done.
    """

    services: Services
    size: int
    seed: int
    scratch: Path
    say: Say


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that is measured, in a process of its own.

    Attributes:
        name: What `--only` calls it.
        meaning: What it does, in a sentence.
        run: Does it, and leaves the database as it was.
        sizes: Which libraries it is done on; empty for one that needs none but is done once.
    """

    name: str
    meaning: str
    run: Callable[[World], Iterable[Figure]]
    sizes: tuple[int, ...] = (SMALL, LARGE)


@dataclass(slots=True)
class Stopwatch:
    """Wall-clock and CPU seconds of this process."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Time the block."""
    watch = Stopwatch()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield watch
    finally:
        watch.wall, watch.cpu = time.perf_counter() - wall, time.process_time() - cpu


@dataclass(slots=True)
class Samples:
    """How long the same thing took, time after time, in milliseconds.

    Attributes:
        clock: What seconds are read from: `time.thread_time` leaves out the time in which others had the processor.
    """

    milliseconds: list[float] = field(default_factory=list)
    clock: Callable[[], float] = time.perf_counter

    @contextmanager
    def one(self) -> Iterator[None]:
        """Time the block as one more sample."""
        began = self.clock()
        yield
        self.milliseconds.append((self.clock() - began) * 1000)

    @property
    def p50(self) -> float:
        """The median."""
        return statistics.median(self.milliseconds)

    @property
    def p95(self) -> float:
        """The value that 95 % of the samples do not exceed (nearest rank)."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, -(-len(ordered) * 95 // 100) - 1)]


def peak_memory_mb() -> float:
    """Return the most memory this process ever held, in MB; ask before a baseline that holds more."""
    # Not getrusage: what it tells of a process that another one started is at least what that one ever held.
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024 / 1e6
