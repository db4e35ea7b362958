"""The service of comments, its worker and a Redis as processes, and callers that are as light as can be."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from douban_pipeline_tests.harness.rig.dagster_stack import HOST, free_port
from douban_pipeline_tests.harness.rig.processes import Process

SECRET = "a-secret-of-the-benchmark-0123456789"
ADMIN = "an-operator-of-the-benchmark-0123"
_START_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Running:
    """The service at ``base``, the worker, and the prefix of their keys in Redis."""

    base: str
    service: Process
    worker: Process
    prefix: str

    def service_seconds(self) -> float:
        """Return the processor time that the service has used, their children's with it."""
        return self.service.usage().cpu_seconds

    def worker_seconds(self) -> float:
        """Return the processor time that the worker has used."""
        return self.worker.usage().cpu_seconds


@contextmanager
def running(
    url: str,
    redis_url: str,
    home: Path,
    *,
    processes: int = 1,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Running]:
    """Yield a service of so many processes with a worker beside it, once it answers.

    ``settings`` are of the comments, such as LOCAL_MS, beside those of every measurement.
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
    port = free_port()
    commands = ("comment-worker",), ("serve", "--port", str(port), "--processes", str(processes))
    with ExitStack() as stack:
        worker, service = [
            stack.enter_context(
                Process(
                    command[0],
                    [sys.executable, "-m", "douban_pipeline", *command],
                    log=home / f"{command[0]}-{prefix.strip(':')}.log",
                    environment=given,
                    directory=home,
                )
            )
            for command in commands
        ]
        base = f"http://{HOST}:{port}"
        service.wait_until(lambda: _answers(base), seconds=_START_SECONDS)
        yield Running(base, service, worker, prefix)


def _answers(base: str) -> bool:
    try:
        return httpx.get(f"{base}/healthz", trust_env=False, timeout=60).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes

    def json(self) -> Any:
        """Return the body, read as JSON."""
        return json.loads(self.body)


class Caller:
    """One connection that is kept; one request at a time."""

    def __init__(self, base: str) -> None:
        self._host, _, port = base.removeprefix("http://").partition(":")
        self._port = int(port)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def connect(self) -> None:
        """Connect, if that is not done; `ask` does it as well.

        Raises:
            OSError: The connection cannot be made.
        """
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and return the answer.

        Raises:
            OSError: The connection cannot be made.
            EOFError: It was cut.
        """
        content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}:{self._port}", "Accept: application/json"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        try:
            await self.connect()
            assert self._reader is not None
            assert self._writer is not None
            self._writer.write("\r\n".join([*lines, "", ""]).encode() + content)
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            return Answer(int(head[9:12]), await self._reader.readexactly(int(length.partition(b":")[2])))
        except (OSError, EOFError):
            self._close()
            raise


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that such a share of ``values`` is not above."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
