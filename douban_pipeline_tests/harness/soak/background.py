"""What goes on beside the soak itself, on a thread of its own."""

from __future__ import annotations

import threading
from abc import abstractmethod
from typing import Self

from douban_pipeline_tests.harness.rig.parts import Part


class Background(Part):
    """Goes on while it is used as a context manager; `go_on` looks at `ended` between its acts.

    Attributes:
        ended: Set when it is to end.

    Args:
        name: The thread's name.
        patience: Seconds that the act under way has to come to its end.
    """

    def __init__(self, name: str, patience: float) -> None:
        self.ended = threading.Event()
        self._patience = patience
        self._thread = threading.Thread(target=self.go_on, name=name, daemon=True)

    @abstractmethod
    def go_on(self) -> None:
        """Act until it is `ended`."""

    def start(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End, after the act under way."""
        self.ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._patience)
