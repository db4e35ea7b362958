"""CPU seconds of processes that come and go, sampled while a measure waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

_SAMPLE_SECONDS = 0.5
_DATABASES = ("mariadbd", "mysqld")


@dataclass(slots=True)
class CpuUse:
    """CPU seconds so far; what a process used after its last sample is not among them.

    Attributes:
        processes: What is sampled.
        machine: Busy CPU seconds of the whole machine since it started, whoever used them.
        database: Those of the database server.
    """

    processes: Callable[[], Sequence[psutil.Process]]
    machine: float = 0.0
    database: float = 0.0
    _by_process: dict[tuple[int, float], float] = field(default_factory=dict)

    @property
    def ours(self) -> float:
        """CPU seconds of all processes that were ever sampled."""
        return sum(list(self._by_process.values()))

    def sample(self) -> None:
        """Look at what each process used by now."""
        for process in self.processes():
            times = _times(process)
            if times is not None:
                self._by_process[process.pid, process.create_time()] = times
        self.database = sum(filter(None, map(_times, _databases())))
        busy = psutil.cpu_times()
        self.machine = sum(busy) - busy.idle - getattr(busy, "iowait", 0.0) - getattr(busy, "guest", 0.0)


@contextmanager
def sampled_cpu(processes: Callable[[], Sequence[psutil.Process]]) -> Iterator[CpuUse]:
    """Sample ``processes`` on a thread of its own during the block."""
    use, ended = CpuUse(processes), threading.Event()

    def follow() -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            use.sample()

    thread = threading.Thread(target=follow, name="cpu", daemon=True)
    thread.start()
    try:
        yield use
    finally:
        ended.set()
        thread.join()


def _databases() -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["name"]) if process.info["name"] in _DATABASES]


def _times(process: psutil.Process) -> float | None:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)
