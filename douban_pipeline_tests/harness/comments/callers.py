"""Callers of a service over kept connections, as light as can be: what is measured is the service, not its callers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self


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
