"""A source that says what a test tells it to say, over real HTTP on loopback, and the rooms that call it."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Engine

from douban_pipeline.core.archive import Archive
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.gate import Gate, GateStatus
from douban_pipeline.core.http import Fetcher
from douban_pipeline.douban.store.tables import OwnTables, own_tables
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

HOLD = timedelta(seconds=60)


@dataclass(frozen=True)
class Say:
    """One scripted answer, after ``wait`` seconds; ``hang`` never answers, ``drip`` sends bytes without end."""

    body: bytes | str | dict[str, Any] | list[Any] = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drip: bool = False
    drip_headers: bool = False
    wait: float = 0.0

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False)).encode()


class Source:
    """A scripted server; the last answer is repeated.

    Attributes:
        asked: Path and query of every request, in order.
        headers: Headers of every request, their names in lower case.
        bodies: Body of every POST.
    """

    def __init__(self) -> None:
        self.script: deque[Say] = deque()
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.released = threading.Event()
        source = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                source.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.do_GET()

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                source.headers.append({name.lower(): value for name, value in self.headers.items()})
                source.asked.append((parts.path, parse_qs(parts.query, keep_blank_values=True)))
                say = source.script[0] if len(source.script) == 1 else source.script.popleft()
                try:
                    self._say(say)
                except OSError:
                    self.close_connection = True

            def _say(self, say: Say) -> None:
                if say.hang:
                    source.released.wait(30)
                    return
                source.released.wait(say.wait)
                if say.drip_headers:
                    self.wfile.write(b"HTTP/1.0 200 OK\r\nX-Slow: ")
                    while not source.released.wait(0.02):
                        self.wfile.write(b"a")
                    return
                self.send_response(say.status)
                for name, value in say.headers.items():
                    self.send_header(name, value)
                body = say.encoded()
                if not say.drip:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                while say.drip and not source.released.wait(0.02):
                    self.wfile.write(b" ")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/douban.php"

    def says(self, *answers: Say | dict[str, Any] | list[Any] | str | bytes) -> None:
        self.script = deque(item if isinstance(item, Say) else Say(item) for item in answers)

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@dataclass
class House:
    """The ground floor of one test, on one database."""

    engine: Engine
    tables: OwnTables
    clock: FakeClock
    gate: Gate
    archive: Archive
    fetcher: Callable[..., Fetcher]

    def status(self, source: str = "douban") -> GateStatus:
        (found,) = (status for status in self.gate.status() if status.source == source)
        return found


@pytest.fixture
def source() -> Iterator[Source]:
    scripted = Source()
    yield scripted
    scripted.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def build_house(url: str, clock: FakeClock) -> Iterator[House]:
    engine = open_engine(url)
    tables = own_tables("mac_")
    tables.metadata.create_all(engine, tables=[tables.gate, tables.snapshot])
    gate = Gate(engine, tables, clock, rng=Random(7), hold=HOLD, zone=ZoneInfo("Asia/Shanghai"))
    for name in ("douban", "searxng", "douban_suggest", "bocha", "openrouter"):
        gate.configure(name, requests_per_minute=60, concurrency=2)
    archive = Archive(engine, tables, clock)
    opened: list[Fetcher] = []

    def fetcher(name: str = "douban", **options: Any) -> Fetcher:
        options = {"timeout": 5.0, "rng": Random(3), **options}
        opened.append(Fetcher(name, gate, archive, clock, **options))
        return opened[-1]

    yield House(engine, tables, clock, gate, archive, fetcher)
    for one in opened:
        one.close()
    engine.dispose()


@pytest.fixture
def house(sqlite_url: str, clock: FakeClock) -> Iterator[House]:
    """The ground floor on SQLite."""
    yield from build_house(sqlite_url, clock)


@pytest.fixture
def any_house(database_url: str, clock: FakeClock) -> Iterator[House]:
    """The ground floor on each engine in turn."""
    yield from build_house(database_url, clock)
