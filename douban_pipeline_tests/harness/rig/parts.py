"""What parts of the rig have in common: they are started, used for a while, and stopped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Part(ABC):
    """Something that is started and stopped, usable as a context manager."""

    @abstractmethod
    def start(self) -> Self:
        """Start it, and wait until it is of use."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it; safe to repeat, and after a start that failed half way."""

    def __enter__(self) -> Self:
        """Start it; what was begun is stopped if the rest does not start."""
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()
