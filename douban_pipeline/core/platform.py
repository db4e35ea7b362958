"""What every system needs in one process: database, clock, settings and clients of its outside sources.

Does not depend on Dagster or on any system. A system's services extend `Platform`, or `SourcePlatform` if it has
outside sources.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, timedelta, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Engine, Table

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.gate import Gate
from douban_pipeline.core.gate_base import BaseGate
from douban_pipeline.core.gate_evidence import EMPTY_IN_A_ROW
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.other_databases import OtherDatabases
from douban_pipeline.core.settings_base import SystemSettings

if TYPE_CHECKING:
    from douban_pipeline.core.http import Fetcher

_MARGIN = timedelta(seconds=30)
"""How much longer than the longest call a gate's place is held: the answer is archived and parsed in it, too."""


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """Limits of a source over all processes; None is no limit. See `Gate.configure`."""

    requests_per_minute: float
    concurrency: int
    requests_per_day: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None


@dataclass(frozen=True)
class Platform(ABC):
    """The services that every system needs.

    Attributes:
        engine: The system's database.
        clock: Source of the current time.
        settings: The system's settings.
    """

    engine: Engine
    clock: Clock
    settings: SystemSettings

    @property
    @abstractmethod
    def tree(self) -> MigrationTree:
        """The migrations of the system's own tables."""

    @property
    def shown_url(self) -> str:
        """URL of the system's database, without the password."""
        return self.engine.url.render_as_string(hide_password=True)

    @cached_property
    def others(self) -> OtherDatabases:
        """Databases of other systems' tables and of the CMS; closed together with these services."""
        others = OtherDatabases(self.engine)
        self._opened.callback(others.close)
        return others

    @cached_property
    def _opened(self) -> ExitStack:
        return ExitStack()

    def ready(self, *, makes_file: bool = True) -> Self:
        """Return self if the database is set up for this release; a new file in HOME is set up automatically.

        Args:
            makes_file: Whether it may be; a command that only shows something makes none.

        Raises:
            DatabaseError: The tables are missing or of another version; the message says what to run.
        """
        self.tree.ensure(self.engine, makes_file=makes_file)
        return self

    def close(self) -> None:
        """Close what was opened and the connections to the database; safe to repeat."""
        self._opened.close()
        self.engine.dispose()


@dataclass(frozen=True)
class SourcePlatform(Platform):
    """The services of a system that asks outside sources: their pacing, and the archive of their answers."""

    @property
    @abstractmethod
    def archive_table(self) -> Table:
        """The table of the archive."""

    @property
    @abstractmethod
    def gate_table(self) -> Table:
        """The table of the gates."""

    @property
    @abstractmethod
    def longest_call(self) -> timedelta:
        """The maximum duration of a call to any source."""

    @property
    def zone(self) -> tzinfo:
        """The time zone of the days in which the sources' quotas are counted."""
        return UTC

    @property
    def empty_limit(self) -> int:
        """How many empty answers in a row make a source doubted; see `core.gate_evidence`."""
        return EMPTY_IN_A_ROW

    def source_limits(self) -> Mapping[str, SourceLimits]:
        """Return the limits of the sources that are configured when the gate is first used."""
        return {}

    @cached_property
    def archive(self) -> Archive:
        """The archive of raw answers."""
        return Archive(self.engine, self.archive_table, self.clock)

    @cached_property
    def gate(self) -> Gate:
        """Pacing and breaker of the sources."""
        hold = self.longest_call + _MARGIN
        gate = Gate(self.engine, self.gate_table, self.clock, hold=hold, zone=self.zone, empty_limit=self.empty_limit)
        for source, limits in self.source_limits().items():
            configure_gate(gate, source, limits)
        return gate

    def fetcher(self, source: str, *, seconds: float, gate: BaseGate | None = None, **options: Any) -> Fetcher:
        """Return an HTTP client for ``source``, which is closed together with these services.

        Args:
            source: Name of the source at the gate and in the archive.
            seconds: Wall-clock limit of a call, and timeout for connecting and for each read.
            gate: Another gate than the one that all processes share, for questions that leave no trace: their answers
                are not archived either.
            options: Further arguments of `Fetcher`.
        """
        # Imported here, as are the clients: a page or a command that asks no source does without httpx.
        from douban_pipeline.core.http import Fetcher

        kept: tuple[BaseGate, Archive | None] = (gate, None) if gate is not None else (self.gate, self.archive)
        fetcher = Fetcher(source, *kept, self.clock, timeout=seconds, deadline=seconds, **options)
        return self._opened.enter_context(fetcher)


def configure_gate(gate: Gate, source: str, limits: SourceLimits) -> None:
    """Set the limits of ``source`` at the gate."""
    gate.configure(
        source,
        limits.requests_per_minute,
        limits.concurrency,
        requests_per_day=limits.requests_per_day,
        tokens_per_minute=limits.tokens_per_minute,
        tokens_per_day=limits.tokens_per_day,
    )
