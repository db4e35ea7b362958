"""A chat's robot as tests have it: it takes what is posted over real HTTP on loopback, and answers as it is told."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Posted:
    """One request: its path, its query, its headers in lower case, and its body."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body, read."""
        read = json.loads(self.body)
        assert isinstance(read, dict)
        return read


class Robot:
    """The server; `status`, `answer` and `headers` are what it says next, ``hang`` lets it never end its answer."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.status = 200
        self.answer: Any = {"errcode": 0, "code": 0}
        self.headers: dict[str, str] = {}
        self.hang = False
        self._released = threading.Event()
        robot = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                headers = {name.lower(): value for name, value in self.headers.items()}
                robot.posted.append(Posted(parts.path, query, headers, body))
                answer = robot.answer if isinstance(robot.answer, bytes) else json.dumps(robot.answer).encode()
                self.send_response(robot.status)
                for name, value in robot.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer) + 100 * robot.hang))
                self.end_headers()
                self.wfile.write(answer)
                if robot.hang:
                    self.wfile.flush()
                    robot._released.wait(30)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/robot/send?key=0123456789-key"

    def __enter__(self) -> Robot:
        """Use the robot in a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of who waits, and stop."""
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
