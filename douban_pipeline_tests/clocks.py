"""Clocks for tests: time that moves only when somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.managers import BaseManager

START = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)


class FakeClock:
    """A clock whose `sleep` moves its time on at once. Safe to share between threads.

    Attributes:
        sleeps: Every wait in seconds, in order.
    """

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._lock = threading.Lock()
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        """Return the present moment."""
        with self._lock:
            return self._now

    def sleep(self, seconds: float) -> None:
        """Move time on by ``seconds``; 0 or less is no wait."""
        if seconds > 0:
            with self._lock:
                self.sleeps.append(seconds)
                self._now += timedelta(seconds=seconds)

    def advance(self, **parts: float) -> None:
        """Let time pass (arguments of `timedelta`) without anybody waiting."""
        with self._lock:
            self._now += timedelta(**parts)


class SharedClock:
    """Virtual time for several threads: it moves only when every one of them waits, to the earliest waking.

    One thread runs at a time, so that a race is played out in an order that follows from the times alone. Served by
    a `ClockManager`, it is the time of several processes: each is one thread of the server.

    Args:
        start: The first moment.
        threads: How many take part from the beginning, each of them by `enter`; `run` counts its own.
    """

    def __init__(self, start: datetime = START, threads: int = 0) -> None:
        self._now = start
        self._turn = threading.Condition()
        self._waking: dict[int, datetime] = {}
        self._threads = threads
        self._running: int | None = None

    def now(self) -> datetime:
        """Return the present moment."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Wait until ``seconds`` of virtual time have passed; only for threads that take part."""
        with self._turn:
            self._wait(self._now + timedelta(seconds=max(seconds, 0)))

    def enter(self) -> None:
        """Wait for the first turn of a thread that takes part."""
        self.sleep(0)

    def leave(self) -> None:
        """Let the others go on without the thread whose turn it is; anybody may say so of one that died."""
        with self._turn:
            self._threads -= 1
            self._running = None
            self._next()

    def run(self, works: list[Callable[[], None]]) -> None:
        """Run ``works``, a thread each, to their end; the first error of any is raised."""
        errors: list[BaseException] = []
        self._threads = len(works)

        def play(work: Callable[[], None]) -> None:
            try:
                self.enter()
                work()
            except BaseException as error:  # noqa: BLE001 (handed to the caller)
                errors.append(error)
            finally:
                self.leave()

        threads = [threading.Thread(target=play, args=(work,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
            assert not thread.is_alive(), "virtual time stands still"
        if errors:
            raise errors[0]

    def _wait(self, until: datetime) -> None:
        me = threading.get_ident()
        self._waking[me] = until
        if self._running == me:
            self._running = None
        self._next()
        self._turn.wait_for(lambda: self._running == me)

    def _next(self) -> None:
        if self._running is None and self._waking and len(self._waking) == self._threads:
            chosen = min(self._waking, key=self._waking.__getitem__)
            self._now = max(self._now, self._waking.pop(chosen))
            self._running = chosen
            self._turn.notify_all()


class ClockManager(BaseManager):
    """Serves a `SharedClock` to other processes, one thread of the server for each thread that asks."""


ClockManager.register("SharedClock", SharedClock, exposed=("now", "sleep", "enter", "leave"))
