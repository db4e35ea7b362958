"""What an audit looks at: the databases as they were left, and what the rig, the outsiders and the upstream noted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Self

import dagster as dg
from sqlalchemy import Engine, inspect, text

from douban_pipeline.douban.services import Services
from douban_pipeline_tests.harness.soak.journal import NO_ROW, Journal, canonical

_PAGE = 1000


@dataclass
class Snapshot:
    """The videos of a library.

    Attributes:
        columns: All columns of the CMS's table but the key.
        rows: What they held, by video, in the order of ``columns``.
    """

    columns: tuple[str, ...]
    rows: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def take(cls, engine: Engine, prefix: str = "mac_") -> Self:
        """Read the library while nobody writes to it."""
        taken = cls(columns_of(engine, prefix))
        # Most values of a library are alike: each is kept once.
        known: dict[str, str] = {}
        for vod_id, values in stream(engine, prefix, taken.columns):
            taken.rows[vod_id] = tuple(known.setdefault(value, value) for value in values)
        return taken

    def value(self, vod_id: int, column: str) -> str:
        """Return what a column of a video held; `values.NO_ROW` where there was no such video."""
        row = self.rows.get(vod_id)
        return NO_ROW if row is None else row[self.columns.index(column)]


def columns_of(engine: Engine, prefix: str) -> tuple[str, ...]:
    """Return the columns of the CMS's table of videos, without the key, as they stand in it."""
    found = (column["name"] for column in inspect(engine).get_columns(f"{prefix}vod"))
    return tuple(name for name in found if name != "vod_id")


def stream(engine: Engine, prefix: str, columns: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield every video with what its ``columns`` hold, by key."""
    names = ", ".join(f"`{name}`" for name in columns)
    query = text(f"SELECT vod_id, {names} FROM `{prefix}vod` WHERE vod_id > :last ORDER BY vod_id LIMIT :page")
    last = 0
    while True:
        with engine.connect() as connection:
            page = connection.execute(query, {"last": last, "page": _PAGE}).all()
        for vod_id, *values in page:
            yield vod_id, tuple(map(canonical, columns, values))
        if len(page) < _PAGE:
            return
        last = page[-1][0]


SOURCES: Mapping[str, str] = {
    "douban": "douban",
    "search": "searxng",
    "suggest": "douban_suggest",
    "bocha": "bocha",
    "llm": "openrouter",
    "reading": "openrouter",
}
"""Gates of the replay upstream's endpoints."""

_FAILED = (dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE)


Killed = Literal["run", "database", "code", "daemon", "postgres"]


@dataclass(frozen=True, slots=True)
class Kill:
    """Something that was killed on purpose.

    Attributes:
        until: When it was back; None for what does not come back, as a run.
    """

    at: datetime
    what: Killed
    run_id: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A Dagster run: times in unix seconds, None where it never came so far.

    Attributes:
        error: Class and message of what failed first, empty if nothing did.
    """

    run_id: str
    job: str
    status: str
    tags: Mapping[str, str] = field(default_factory=dict)
    began: float | None = None
    ended: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """What people were told by a message.

    Attributes:
        text: Title and text.
        url: What it links to; empty for nothing.
    """

    at: float
    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What watching says of one process: whether its memory and descriptors stayed flat, and the numbers in words.

    `flat` is None where the time was too short to tell.
    """

    name: str
    flat: bool | None
    summary: str


@dataclass(frozen=True)
class Evidence:
    """All that an audit rests on.

    Attributes:
        services: The ground floor over the database, with the settings that the pipeline ran under.
        journal: What outsiders did.
        initial: The CMS before anything began.
        requests: The replay upstream's log: by endpoint ``times`` and ``keys``, and perhaps ``ended``, in unix
            seconds; see `demo.faults.RequestLog`.
        limits: Requests a minute and at once that each source was allowed, by gate.
        runs: The runs of the Dagster instance.
        kills: What was killed.
        alerts: What people were told.
        usage: Memory and descriptors as they were watched.
        began, ended: First and last moment.
        drain_began: From when on nobody did anything any more, so that what waits must be done.
        drained: Whether the queue came to rest before the end.
    """

    services: Services
    journal: Journal
    initial: Snapshot
    requests: Mapping[str, Mapping[str, Any]]
    limits: Mapping[str, tuple[float, int]]
    runs: Sequence[RunRecord]
    began: datetime
    ended: datetime
    drain_began: datetime
    kills: Sequence[Kill] = ()
    alerts: Sequence[Alert] = ()
    usage: Sequence[Usage] = ()
    drained: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one invariant.

    Attributes:
        invariant: What must hold, in a sentence.
        held: Whether it did.
        checked: How many things were looked at.
        violations: How many of them broke it.
        examples: The first of these, in plain words.
        note: What else is worth telling, of an invariant that held too.
        waiting: How many things may only have waited for their turn when the drain was left.
        system: Whose invariant it is.
    """

    invariant: str
    held: bool
    checked: int
    violations: int
    examples: tuple[str, ...] = ()
    note: str = ""
    waiting: int = 0
    system: str = "douban"

    @property
    def starved(self) -> bool:
        """Whether nothing broke it, and yet it cannot be said to hold: work still waited for its turn."""
        return self.held and self.waiting > 0


def of_the_soak(errors: Sequence[str], acts: int, system: str = "douban") -> Finding:
    """Return whether the soak itself, which took ``acts`` steps, ran without an error: otherwise it proves nothing."""
    broke = "the soak's own code did not break"
    return Finding(broke, not errors, acts, len(errors), tuple(errors[:3]), system=system)


def snapshot_of(services: Services) -> Snapshot:
    """Return the CMS of ``services`` as it stands."""
    return Snapshot.take(services.engine, services.settings.table_prefix)


def location_of_run(run: dg.DagsterRun) -> str:
    """Return the code location that a run's job is of."""
    origin = run.remote_job_origin
    return origin.location_name if origin is not None else ""


def runs_of(instance: dg.DagsterInstance, location: str) -> list[RunRecord]:
    """Return all runs of a location, the oldest first."""
    found = []
    for record in reversed(instance.get_run_records()):
        run = record.dagster_run
        if location_of_run(run) != location:
            continue
        error = "" if run.status is dg.DagsterRunStatus.SUCCESS else _error_of(instance, run.run_id)
        began = record.start_time or record.create_timestamp.astimezone(UTC).timestamp()
        found.append(
            RunRecord(
                run.run_id,
                run.job_name,
                run.status.value,
                dict(run.tags),
                began,
                record.end_time,
                error,
            )
        )
    return found


def _error_of(instance: dg.DagsterInstance, run_id: str) -> str:
    for kind in _FAILED:
        for entry in instance.all_logs(run_id, of_type=kind):
            event = entry.dagster_event
            data = event.event_specific_data if event else None
            error = getattr(data, "error", None)
            summary = []
            while error is not None:
                summary.append(f"{error.cls_name}: {error.message.strip()}")
                error = error.cause
            if summary:
                return " ← ".join(summary)[:1000]
            if event is not None and event.message:
                return str(event.message)[:1000]
    return ""
