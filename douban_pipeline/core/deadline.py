"""A wall-clock limit on one HTTP call: with read timeouts alone a source could send a byte at a time for ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any


class Deadline:
    """Cuts a call's connection when the time is up.

    Use it around the call, and pass its `trace` to the client, which reports the connection to it.

    Args:
        seconds: The limit, counted from entering the block.

    Attributes:
        passed: Whether the time was up before the block was left.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        """Start the timer."""
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the timer."""
        self._timer.cancel()
        with self._lock:
            self._socket = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Store the socket in use (httpcore's ``trace`` extension)."""
        # Of any connection opened: through a proxy, the connection proper is the TLS inside the tunnel.
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self.watch(info["return_value"])

    def watch(self, stream: Any) -> None:
        """Store the socket of a new or reused connection (httpcore's ``network_stream``)."""
        with self._lock:
            self._socket = stream.get_extra_info("socket")
            if self.passed:
                self._shut()

    def _cut(self) -> None:
        with self._lock:
            self.passed = True
            self._shut()

    def _shut(self) -> None:
        # Shutting down, unlike closing, wakes a blocked read and cannot affect a socket that reuses the number.
        if self._socket is not None:
            with suppress(OSError):
                # Bypasses the TLS layer's own shutdown, which would change its state while another thread reads.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
