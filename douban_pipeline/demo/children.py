"""Child processes that are started and stopped together, including their own children."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from douban_pipeline.core.language import terminal_text

GRACE_SECONDS = 5.0
"""Seconds from the signal that asks processes to end to the one that kills them."""


class Children:
    """Starts processes, and stops them at the end of the block.

    Each leads its own session, so that a signal from the terminal reaches only this process, and so that the children
    of a child can be found by their process group after the child has ended.

    Args:
        directory: Their working directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        """Return itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all of them and their children."""
        self.stop()

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a process."""
        self._running[name] = subprocess.Popen(  # noqa: S603 (our own interpreter, no shell)
            command, cwd=self._directory, stdin=subprocess.DEVNULL, start_new_session=True
        )

    def ended(self) -> str:
        """Return which of them has ended unexpectedly; empty while all run."""
        for name, process in self._running.items():
            status = process.poll()
            if status is not None:
                return terminal_text("{name} ended with the status {status}").format(name=name, status=status)
        return ""

    def wait(self, end: threading.Event, pause: float = 0.5) -> None:
        """Wait until ``end`` is set.

        Raises:
            ChildProcessError: One of them ended unexpectedly.
            KeyboardInterrupt: ``end`` was set.
        """
        while not end.wait(pause):
            if found := self.ended():
                raise ChildProcessError(found)
        raise KeyboardInterrupt

    def stop(self, grace: float | None = None) -> None:
        """Stop all of them and their children, first asked to end, then killed; safe to repeat.

        Asked by SIGTERM: at a SIGINT Dagster's parent waits for children that have it too, and prints "Aborted!".

        Args:
            grace: Seconds to wait before they are killed; `GRACE_SECONDS` by default.
        """
        for process in self._running.values():
            _signal_group(process.pid, signal.SIGTERM)
        self._wait_for_groups(GRACE_SECONDS if grace is None else grace)
        for process in self._running.values():
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
        self._running.clear()

    def _wait_for_groups(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for process in self._running.values():
                process.poll()  # a child that is not polled remains a zombie, and its group continues to exist
            if not any(_signal_group(process.pid, 0) for process in self._running.values()):
                return
            time.sleep(0.1)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; return whether the group exists."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
