"""What parts of the rig have in common: they are started, used for a while, and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from douban_pipeline.core.settings_base import BASE_PREFIX as PREFIX
from douban_pipeline_tests.harness.rig.waiting import wait_for


class Part(ABC):
    """Something that is started and stopped, usable as a context manager."""

    @abstractmethod
    def start(self) -> Self:
        """Start it, and wait until it is of use."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it; safe to repeat, and after a start that failed half way."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()


STOP_SECONDS = 20.0
_LOG_CHARACTERS = 2_000
_POLL_SECONDS = 0.05


class RigError(Exception):
    """A part of the rig did not start, or died; the message says which, and where its log is."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its children use: resident memory in MB (10⁶ bytes), open file descriptors, CPU seconds."""

    memory_mb: float
    descriptors: int
    cpu_seconds: float
    processes: int


class Process(Part):
    """One process of the rig, and the children it makes."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        directory: Path,
        user: str | None = None,
    ) -> None:
        self.name, self.command, self.log, self._user = name, list(command), log, user
        self._environment, self._directory = dict(environment), directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id.

        Raises:
            RigError: It does not run.
        """
        if self._process is None:
            raise RigError(f"{self.name} was not started")
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """What it ended with, less than 0 for the signal that killed it; None while it runs or was never started."""
        return None if self._process is None else self._process.poll()

    def give(self, environment: Mapping[str, str]) -> None:
        """Give it another environment from its next start on."""
        self._environment = dict(environment)

    def start(self) -> Self:
        """Start it; safe to repeat while it runs."""
        if self.alive:
            return self
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            # A group of its own: Ctrl-C in the terminal is ours to hand on, in the right order.
            self._process = subprocess.Popen(
                self.command,
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self._user,
            )
        return self

    def wait_until(self, ready: Callable[[], bool], *, seconds: float) -> None:
        """Wait until ``ready`` says so.

        Raises:
            RigError: It died before, or the time is over.
        """

        def ended_or_ready() -> bool:
            return not self.alive or ready()

        if wait_for(ended_or_ready, seconds=seconds) is None:
            raise RigError(f"{self.name} is not ready after {seconds:.0f} s: {self.last_words()}")
        if not self.alive:
            raise RigError(f"{self.name} ended by itself: {self.last_words()}")

    def last_words(self) -> str:
        """Return the end of its log, and where the log is."""
        log_end = self.log.read_text(errors="replace")[-_LOG_CHARACTERS:].strip() if self.log.exists() else ""
        return f"{log_end}\n(log: {self.log})"

    def usage(self) -> Usage:
        """Return what it and its children use now; zeros if it does not run."""
        memory, descriptors, cpu, processes = 0, 0, 0.0, 0
        for process in self.family():
            try:
                with process.oneshot():
                    memory += process.memory_info().rss
                    descriptors += process.num_fds()
                    times = process.cpu_times()
                    cpu += times.user + times.system
            except psutil.NoSuchProcess:
                continue
            processes += 1
        return Usage(memory / 1e6, descriptors, cpu, processes)

    def family(self) -> list[psutil.Process]:
        """Return it and all its children that live."""
        if not self.alive:
            return []
        try:
            process = psutil.Process(self.pid)
            return [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def stop(self, *, seconds: float = STOP_SECONDS, by: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to end, and kill what is left of it and its children after ``seconds``; safe to repeat."""
        family = self.family()
        if self._process is not None and self.alive:
            self._process.send_signal(by)
            try:
                self._process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

        def gone() -> bool:
            return not any(map(lives, family))

        if not wait_for(gone, seconds=seconds, poll=_POLL_SECONDS):
            for process in filter(lives, family):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            wait_for(gone, seconds=seconds, poll=_POLL_SECONDS)

    def kill(self) -> None:
        """Kill it alone with -9, as a machine out of memory would; its children live on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def lives(process: psutil.Process) -> bool:
    """Return whether a process still does anything.

    An orphan that has ended may stay in the system's table for long, where process 1 is slow to take note of it.
    """
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def only_these(values: Mapping[str, str]) -> Iterator[None]:
    """Put ``values`` into this process's environment for a while, in place of every setting that is there."""
    before = dict(os.environ)
    for name in list(os.environ):
        if name.startswith(PREFIX):
            del os.environ[name]
    os.environ.update(values)
    try:
        yield
    finally:
        with suppress(KeyError):
            for name in set(os.environ) - set(before):
                del os.environ[name]
        os.environ.update(before)
