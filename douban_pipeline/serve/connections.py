"""Time limits of a connection: for a request's headers, for its body, and for a client that does not read.

uvicorn limits only how long a connection may be idle between two requests. Without more, whoever sends a byte now and
then keeps a connection, and its memory, for as long as it likes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as HttpProtocol
else:  # the one that uvicorn chooses: httptools where it is installed, else h11
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as HttpProtocol


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Seconds after which a connection is closed.

    Attributes:
        headers: From its opening, or the first byte of a further request, until the headers are complete.
        body: From then until the body is complete. A megabyte in this time is a slow telephone line.
        rest: From the answer to a request until the rest of its body, which nobody reads, has arrived.
        stalled: While the client takes nothing of an answer.
    """

    headers: float = 10.0
    body: float = 30.0
    rest: float = 5.0
    stalled: float = 30.0


class TimedConfig(uvicorn.Config):
    """Configuration of a server whose connections have time limits.

    Args:
        app: The application, or its name.
        limits: The limits.
        options: Further arguments of uvicorn's.
    """

    def __init__(self, app: Any, *, limits: ConnectionLimits | None = None, **options: Any) -> None:
        super().__init__(app, http=TimedProtocol, **options)
        self.connection_limits = limits or ConnectionLimits()


class TimedProtocol(HttpProtocol):
    """A connection that is closed when one of its `ConnectionLimits` has passed; bytes in between do not prolong it."""

    def __init__(self, config: TimedConfig, *given: Any, **named: Any) -> None:
        super().__init__(config, *given, **named)
        self._limits = config.connection_limits
        self._waits_for: tuple[str, object] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with the headers of the first request."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._wait_for("headers")

    def data_received(self, data: bytes) -> None:
        """Read, and see what is missing then."""
        super().data_received(data)
        cycle = self.cycle
        if cycle is None or (cycle.response_complete and not cycle.more_body):
            self._wait_for("headers")
        elif cycle.more_body:
            self._wait_for("rest" if cycle.response_complete else "body")
        else:
            self._wait_for(None)

    def on_response_complete(self) -> None:
        """Wait for the rest of a body; between requests uvicorn's own limit applies."""
        before = self.cycle
        super().on_response_complete()
        if self.cycle is before:
            self._wait_for("rest" if before.more_body else None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._wait_for(None)
        self._unstall()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self._limits.stalled, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that it reads again."""
        self._unstall()
        super().resume_writing()

    def _unstall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _wait_for(self, what: str | None) -> None:
        """Close the connection after the limit of ``what``, unless something else is waited for by then."""
        wanted = (what, self.cycle) if what is not None else None
        if wanted == self._waits_for:
            return
        self._waits_for = wanted
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if what is not None:
            self._deadline = self.loop.call_later(getattr(self._limits, what), self.transport.abort)
