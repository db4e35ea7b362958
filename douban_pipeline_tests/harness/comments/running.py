"""The processes that are measured: services, a worker, and a Redis of one's own where it is to be killed."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from douban_pipeline_tests.harness.rig.dagster_stack import HOST, free_port
from douban_pipeline_tests.harness.rig.processes import Process, RigError

SECRET = "a-secret-of-the-benchmark-0123456789"
ADMIN = "an-operator-of-the-benchmark-0123"
_START_SECONDS = 180.0


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
    services: Sequence[Process]
    worker: Process
    prefix: str

    def service_seconds(self) -> float:
        """Return the processor time that the services have used, their children's with it."""
        return sum(process.usage().cpu_seconds for process in self.services)

    def worker_seconds(self) -> float:
        """Return the processor time that the worker has used."""
        return self.worker.usage().cpu_seconds


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
        settings: Of the comments, such as LOCAL_MS, beside those of every measurement.
    """
    prefix = f"bench{uuid.uuid4().hex[:8]}:"
    usual = {
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
        "REDIS_PREFIX": prefix,
        "TOKEN_SECRET": SECRET,
        "ADMIN_TOKEN": ADMIN,
        "PUBLISH_PER_MINUTE": "10000",
    }
    given = {
        **os.environ,
        "DOUBAN_PIPELINE_HOME": str(home),
        "DOUBAN_PIPELINE_SYSTEMS": "douban,comments",
        **{f"DOUBAN_PIPELINE_COMMENTS_{name}": value for name, value in {**usual, **(settings or {})}.items()},
    }
    ports = [free_port() for _ in range(services)]
    commands = [("serve", "--port", str(port), "--processes", str(processes)) for port in ports]
    with ExitStack() as stack:
        worker, *others = [
            stack.enter_context(
                Process(
                    command[0],
                    [sys.executable, "-m", "douban_pipeline", *command],
                    log=home / f"{command[0]}-{prefix.strip(':')}.log",
                    environment=given,
                    directory=home,
                )
            )
            for command in (("comment-worker",), *commands)
        ]
        bases = [f"http://{HOST}:{port}" for port in ports]
        for base, service in zip(bases, others, strict=True):
            service.wait_until(lambda base=base: _answers(base), seconds=_START_SECONDS)  # type: ignore[misc]
        yield Running(bases, others, worker, prefix)


def _answers(base: str) -> bool:
    try:
        return httpx.get(f"{base}/healthz", trust_env=False, timeout=60).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


@contextmanager
def own_redis(home: Path) -> Iterator[tuple[str, Process]]:
    """Yield the address of a Redis that may be killed, and its process.

    Raises:
        RigError: No ``redis-server`` is on the path.
    """
    program = shutil.which("redis-server")
    if program is None:
        raise RigError("redis-server is not installed")
    port = free_port()
    command = [program, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(home)]
    with Process("redis", command, log=home / "redis.log", environment=os.environ, directory=home) as process:
        yield f"redis://{HOST}:{port}/0", process
