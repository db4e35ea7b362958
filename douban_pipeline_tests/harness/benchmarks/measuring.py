"""What a measure is, and what it finds: figures with a target, beside what the libraries alone can do."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select

from douban_pipeline.core.database import reading
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import load_settings

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


@dataclass
class World:
    """What a measure is given: a library of ``size`` videos made from ``seed``, and an empty folder ``scratch``.

    ``say`` tells the person who waits what is being done. A measure that needs no library has size 0 and no services.
    """

    size: int
    seed: int
    scratch: Path
    say: Say

    @cached_property
    def services(self) -> Services:
        """The pipeline on the library, by the settings of this process's environment."""
        return open_services(load_settings())


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that is measured, in a process of its own.

    Attributes:
        name: What `--only` calls it; `--only comments` names those that begin with ``comments-``, too.
        meaning: What it does, in a sentence.
        run: Does it, and leaves the library as it was; its further parameters are what `--set` sets.
        sizes: Which libraries it is done on; empty for one that needs none but is done once.
    """

    name: str
    meaning: str
    run: Callable[..., Iterable[Figure]]
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
    """How long the same thing took, time after time, in milliseconds."""

    milliseconds: list[float] = field(default_factory=list)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Time the block as one more sample."""
        began = time.perf_counter()
        yield
        self.milliseconds.append((time.perf_counter() - began) * 1000)

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


@contextmanager
def bare_cursor(engine: Engine) -> Iterator[Any]:
    """Give a cursor of the driver, and commit at the end."""
    connection = engine.raw_connection()
    try:
        with connection.cursor() as cursor:  # type: ignore[attr-defined]
            yield cursor
        connection.commit()
    finally:
        connection.close()


def bare_insert(engine: Engine, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert ``rows`` by the driver's own `executemany`, which makes one statement of many, and commit.

    ``table`` and ``names`` come from this project's own tables, never from outside.
    """
    places = ", ".join(["%s"] * len(names))
    with bare_cursor(engine) as cursor:
        cursor.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", rows)


@dataclass(frozen=True, slots=True)
class StandingClock:
    """It is always the same moment; nobody waits."""

    moment: datetime

    def now(self) -> datetime:
        """Return the moment."""
        return self.moment

    def sleep(self, seconds: float) -> None:
        """Return at once."""


def when_due(world: World, share: float) -> Services:
    """Return the services at the moment when ``share`` (0 to 1) of the library is due."""
    services, video = world.services, world.services.tables.video
    due = video.c.douban_next_sync_at
    query = select(due).where(due.is_not(None)).order_by(due).offset(max(0, int(share * world.size) - 1)).limit(1)
    with reading(services.engine) as connection:
        moment = connection.execute(query).scalar_one_or_none()
        moment = moment or connection.execute(select(due).order_by(due.desc()).limit(1)).scalar_one()
    return replace(services, clock=StandingClock(moment))
