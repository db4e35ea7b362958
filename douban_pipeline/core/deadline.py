"""A wall-clock limit on one HTTP call: read timeouts alone let a source drip for ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any


class Deadline:
    """Cuts a call's connection when its time is over.

    Use it around the call, and give the client its `trace`, so that it knows the connection.

    Args:
        seconds: The time, from entering the block on.

    Attributes:
        passed: Whether the time was over before the block was left.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        """Let the time run."""
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the time."""
        self._timer.cancel()
        with self._lock:
            self._socket = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the socket in use (httpcore's ``trace`` extension)."""
        # Whoever opens it: through a proxy, the connection proper is the TLS inside the tunnel.
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self.watch(info["return_value"])

    def watch(self, stream: Any) -> None:
        """Remember the socket of a connection, an opened or a kept one (httpcore's ``network_stream``)."""
        with self._lock:
            self._socket = stream.get_extra_info("socket")
            if self.passed:
                self._shut()

    def _cut(self) -> None:
        with self._lock:
            self.passed = True
            self._shut()

    def _shut(self) -> None:
        # Shutting down, unlike closing, wakes a blocked read and cannot hit a socket that reuses the number.
        if self._socket is not None:
            with suppress(OSError):
                # Past the TLS layer's own shutdown, which would pull its state from under the reading thread.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
