"""A way to a server that can be cut and mended."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class Line:
    """A way to a server that can be cut: what it was asked on is closed, and nobody is let in any more."""

    target: tuple[str, int]
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    ends: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port = int(self.listener.getsockname()[1])

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.target)
                self.ends += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_carry, args=(source, sink), daemon=True).start()

    def mend(self) -> None:
        """Let connections in again, at the same port."""
        self.listener, self.ends = socket.create_server(("127.0.0.1", self.port)), []
        self.start()

    def cut(self) -> None:
        for end in (self.listener, *self.ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            sink.sendall(part)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
