"""A threaded HTTP/1.1 server for tests and demos that stops immediately, even with open connections."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer

_LARGEST_BODY = 4 << 20
_GOODBYE_SECONDS = 5.0

Respond = Callable[[str, str, bytes, Message], HttpAnswer | None]
"""Maps method, target, body and headers to an answer; ``None`` keeps the client waiting."""


class LoopbackServer(ThreadingHTTPServer):
    """Tracks its connections, so that stopping does not wait for keep-alive connections."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], respond: Respond) -> None:
        """Bind ``address``; ``respond`` answers every request, on the thread of its connection."""
        self.respond = respond
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        # HTTPServer resolves the host's full name here, which may take seconds without a network.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._open.discard(request)
            self._changed.notify_all()

    def hang_up(self) -> None:
        """Close every connection and wait until their threads have ended."""
        with self._changed:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._changed.wait_for(lambda: not self._open, _GOODBYE_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that closes the connection is not an error
            super().handle_error(request, client_address)


class LoopbackStandIn(ABC):
    """Base of simulated upstreams, used as context managers.

    Attributes:
        host: Address to listen on; loopback by default.
        port: Port to listen on; 0 chooses a free one.
    """

    host: str = "127.0.0.1"
    port: int = 0
    _server: LoopbackServer | None = None

    @abstractmethod
    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer to a request; None keeps the client waiting. Called on the thread of the connection."""

    def __enter__(self) -> Self:
        """Start serving.

        Raises:
            OSError: The address cannot be bound.
        """
        self._server = LoopbackServer((self.host, self.port), self.respond)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop immediately, even if clients are waiting for an answer."""
        assert self._server is not None
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()

    @property
    def base(self) -> str:
        """The address of the server, without a trailing slash."""
        assert self._server is not None
        return f"http://{self.host}:{self._server.server_port}"


def authorization(headers: Message) -> str:
    """Return the header Authorization; "" without one."""
    return headers.get("Authorization") or ""


class Handler(BaseHTTPRequestHandler):
    """Passes each request to the server's `respond`; connections are kept alive."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "replay", ""
    disable_nagle_algorithm = True
    wbufsize = -1
    server: LoopbackServer

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _LARGEST_BODY:
            self.close_connection = True
            self._send(json_answer({"error": "too large"}, 413))
            return
        body = self.rfile.read(length)
        answer = self.server.respond(self.command, self.path, body, self.headers)
        if answer is None:
            self.close_connection = True
            self.connection.recv(1)  # returns when the client or `hang_up` closes the connection
            return
        self._send(answer)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815  http.server's names

    def _send(self, answer: HttpAnswer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests are listed at ``/control/requests``."""
