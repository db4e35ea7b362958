"""What every system works with in one process: its database and its clock. Knows nothing of Dagster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from sqlalchemy import Engine

from douban_pipeline.core.clock import Clock


@dataclass(frozen=True)
class Platform:
    """The part of a system's services that no system does without; each system's `Services` extends it.

    Attributes:
        engine: The system's database.
        clock: What every time is taken from.
    """

    engine: Engine
    clock: Clock

    def ready(self) -> Self:
        """Return self if the database is set up for this release; a system with tables of its own asks for them here.

        Raises:
            DatabaseError: Its tables are missing or of another version; the message says what to run.
        """
        return self

    def close(self) -> None:
        """Close what was opened."""
        self.engine.dispose()
