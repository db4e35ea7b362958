"""What every system works with in one process: database, clock, settings, and the ways to its outside sources.

Knows nothing of Dagster and of no system. A system extends `Platform` by what it has of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, timedelta, tzinfo
from functools import cached_property
from typing import Any, Self

from sqlalchemy import Engine, Table

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.gate import Gate
from douban_pipeline.core.gate_evidence import EMPTY_IN_A_ROW
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.settings_base import SystemSettings

_MARGIN = timedelta(seconds=30)
"""How much longer than the longest call a place at the gate is held: its answer is archived and read there too."""


@dataclass(frozen=True, slots=True)
class SourceLimits:
    """What a source may be asked, over all processes; None is no limit. See `Gate.configure`."""

    requests_per_minute: float
    concurrency: int
    requests_per_day: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None


@dataclass(frozen=True)
class Platform(ABC):
    """The part of a system's services that no system does without; each system's `Services` extends it.

    Attributes:
        engine: The system's database.
        clock: What every time is taken from.
        settings: The system's settings.
    """

    engine: Engine
    clock: Clock
    settings: SystemSettings

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
        """The longest that a call of any source may take."""

    @property
    def zone(self) -> tzinfo:
        """The time zone in whose days the sources' quotas are counted."""
        return UTC

    @property
    def empty_limit(self) -> int:
        """How many empty answers in a row put a source in doubt; see `core.gate_evidence`."""
        return EMPTY_IN_A_ROW

    def source_limits(self) -> Mapping[str, SourceLimits]:
        """Return the limits of the sources that are configured as soon as the gate is used."""
        return {}

    @cached_property
    def archive(self) -> Archive:
        """Every raw answer."""
        return Archive(self.engine, self.archive_table, self.clock)

    @cached_property
    def gate(self) -> Gate:
        """Pacing and breaker of the sources."""
        hold = self.longest_call + _MARGIN
        gate = Gate(self.engine, self.gate_table, self.clock, hold=hold, zone=self.zone, empty_limit=self.empty_limit)
        for source, limits in self.source_limits().items():
            configure_gate(gate, source, limits)
        return gate

    def fetcher(self, source: str, *, seconds: float, **options: Any) -> Fetcher:
        """Return the HTTP client of ``source``, which is closed with these services.

        Args:
            source: Name of the source at the gate and in the archive.
            seconds: Wall-clock limit of a call, and limit of connecting and of each read.
            options: As `Fetcher` has them.
        """
        fetcher = Fetcher(source, self.gate, self.archive, self.clock, timeout=seconds, deadline=seconds, **options)
        return self._opened.enter_context(fetcher)

    @cached_property
    def _opened(self) -> ExitStack:
        return ExitStack()

    def ready(self) -> Self:
        """Return self if the database is set up for this release; a system with tables of its own asks for them here.

        Raises:
            DatabaseError: Its tables are missing or of another version; the message says what to run.
        """
        return self

    def close(self) -> None:
        """Close the HTTP clients and the connections to the database; safe to repeat."""
        self._opened.close()
        self.engine.dispose()


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
