"""The processes that are measured: services, a worker, and a Redis of one's own where it is to be killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

SECRET = "a-secret-of-the-benchmark-0123456789"
ADMIN = "an-operator-of-the-benchmark-0123"


@dataclass(frozen=True, slots=True)
class Running:
    """What runs.

    Attributes:
        bases: Addresses of the services.
        services: Their processes.
        worker: The worker's.
        prefix: Of keys in Redis.
    """

    bases: Sequence[str]
    services: Sequence[psutil.Process]
    worker: psutil.Process
    prefix: str

    def service_seconds(self) -> float:
        """Return the processor time that the services have used, their children's with it."""
        return sum(cpu_seconds(process) for process in self.services)

    def worker_seconds(self) -> float:
        """Return the processor time that the worker has used."""
        return cpu_seconds(self.worker)


def cpu_seconds(process: psutil.Process) -> float:
    """Return the processor time that a process and its children have used."""
    family = [process, *process.children(recursive=True)]
    return float(sum(used.user + used.system for used in (each.cpu_times() for each in family)))


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(
    url: str,
    redis_url: str,
    home: Path,
    *,
    services: int = 1,
    processes: int = 1,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Running]:
    """Yield services with a worker beside them, each a process of its own, once they answer.

    Args:
        url: The database.
        redis_url: Redis.
        home: Folder for their files.
        services: How many services, on a port each.
        processes: How many processes each of them has.
        settings: Of the comments, such as LIST_SECONDS, beside those of every measurement.
    """
    prefix = f"bench{uuid.uuid4().hex[:8]}:"
    usual = {
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
        "REDIS_PREFIX": prefix,
        "TOKEN_SECRET": SECRET,
        "ADMIN_TOKEN": ADMIN,
        "PUBLISH_PER_MINUTE": "10000",
        "LIST_SECONDS": "60",
    }
    given = {
        **os.environ,
        "DOUBAN_PIPELINE_HOME": str(home),
        "DOUBAN_PIPELINE_SYSTEMS": "douban,comments",
        **{f"DOUBAN_PIPELINE_COMMENTS_{name}": value for name, value in {**usual, **(settings or {})}.items()},
    }
    ports = [free_port() for _ in range(services)]
    serve = [("serve", "--port", str(port), "--processes", str(processes)) for port in ports]
    with ExitStack() as stack:
        started = [
            stack.enter_context(_process([sys.executable, "-m", "douban_pipeline", *command], home, given))
            for command in (("comment-worker",), *serve)
        ]
        bases = [f"http://127.0.0.1:{port}" for port in ports]
        for base in bases:
            _await(base)
        worker, *others = (psutil.Process(each.pid) for each in started)
        yield Running(bases, others, worker, prefix)


@contextmanager
def _process(
    command: Sequence[str], home: Path, given: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=home, env=given, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _await(base: str) -> None:
    with httpx.Client(trust_env=False, timeout=60) as client:
        until = time.monotonic() + 180
        while time.monotonic() < until:
            try:
                if client.get(f"{base}/healthz").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.2)
    raise RuntimeError("the service did not come up")


@contextmanager
def own_redis(home: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yield the address of a Redis that may be killed, and its process.

    Raises:
        FileNotFoundError: No ``redis-server`` is on the path.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise FileNotFoundError("redis-server is not installed")
    port = free_port()
    command = [program, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(home)]
    with _process(command, home) as process:
        yield f"redis://127.0.0.1:{port}/0", process
