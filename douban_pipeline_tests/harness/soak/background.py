"""What goes on beside the soak itself, on a thread of its own."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import Counter
from random import Random
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


class Acting(Background):
    """Takes a `step` at random intervals until the end.

    Attributes:
        rng: Where chance comes from.
        acts: How often it did what.
        errors: What broke in the soak's own code; there should be nothing.

    Args:
        name: The thread's name.
        rng: Where chance comes from.
        rhythm: Least and most seconds between two steps.
        outages: Errors of a step that are counted as the act ``outage``: something it needs was down.
        outage: What such a step is counted as.
        patience: Seconds that the step under way has to come to its end.
        source: Put before the text of an error, to tell whose it is.
    """

    def __init__(
        self,
        name: str,
        rng: Random,
        *,
        rhythm: tuple[float, float],
        outages: tuple[type[Exception], ...],
        outage: str,
        patience: float,
        source: str = "",
    ) -> None:
        super().__init__(name, patience)
        self.rng = rng
        self.acts: Counter[str] = Counter()
        self.errors: list[str] = []
        self._rhythm, self._outages, self._outage, self._source = rhythm, outages, outage, source

    @abstractmethod
    def step(self) -> str:
        """Do something, and return what, in words."""

    def go_on(self) -> None:
        """Take steps until the end."""
        while not self.ended.wait(self.rng.uniform(*self._rhythm)):
            try:
                self.acts[self.step()] += 1
            except self._outages:
                self.acts[self._outage] += 1
            except Exception as error:  # noqa: BLE001 (reported: a soak that broke proves nothing)
                self.errors.append(f"{self._source}{type(error).__name__}: {error}")
