"""Time as a value that is handed in, so that no rule and no test depends on the real clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the time is, and how to wait."""

    def now(self) -> datetime:
        """Return the present moment, timezone-aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds`` (0 or less returns at once)."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Block the calling thread for ``seconds``."""
        if seconds > 0:
            time.sleep(seconds)
