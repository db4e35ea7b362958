"""What tests of reading work with: entries written without polls, and the service with pages and API on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from sqlalchemy import Connection, select

from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import run_transaction
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.feeds.api import google_reader, pages
from douban_pipeline.feeds.api.access import ReaderAccess
from douban_pipeline.feeds.services import FeedsServices, open_services
from douban_pipeline.feeds.store import entries, sources
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.tables import entry
from douban_pipeline.feeds.types import Entry, Source, SourceKind, source_id_for
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.server import configure
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.feeds.stage import HandClock, given_settings

PASSWORD = "a-password-of-a-phone"


class Shelf:
    """Services with sources and entries that tests put there."""

    def __init__(self, services: FeedsServices, clock: HandClock) -> None:
        self.services, self.clock = services, clock

    def source(self, title: str, folder: str | None = None, url: str = "") -> str:
        """Follow a source, at an address of its own by default; return its id."""
        url = url or f"https://{title.encode().hex()}.example/feed.xml"
        given = Source(source_id_for(SourceKind.RSS, url), SourceKind.RSS, url, title=title)
        now = self.services.now()

        def work(connection: Connection) -> None:
            sources.insert_sources(connection, [given], {given.source_id: now + 60}, now)
            sources.update_source(connection, given.source_id, {"folder": folder}, now)

        run_transaction(self.services.engine, work)
        return given.source_id

    def publish(self, source_id: str, *published: Entry) -> list[int]:
        """Store entries as a poll does; return their keys in order."""
        now = self.services.now()
        run_transaction(
            self.services.engine, lambda connection: entries.store_entries(connection, source_id, published, now)
        )
        hashes = [each.guid_hash for each in published]
        query = select(entry.c.guid_hash, entry.c.entry_id).where(
            entry.c.source_id == source_id, entry.c.guid_hash.in_(hashes)
        )
        with self.services.engine.connect() as connection:
            found = dict(connection.execute(query).tuples().all())
        return [found[each] for each in hashes]

    def rows(self) -> Sequence[Any]:
        """Return every entry, by key."""
        with self.services.engine.connect() as connection:
            return connection.execute(select(entry).order_by(entry.c.entry_id)).all()

    def marks(self, *names: str) -> dict[int, tuple[bool, bool]]:
        """Return unread and starred of every entry."""
        return {row.entry_id: (bool(row.unread), bool(row.starred)) for row in self.rows()}


def an_entry(name: str, at: int, **values: Any) -> Entry:
    """Return an entry of this name, published at a moment."""
    given: dict[str, Any] = {"link": f"https://a.example/{name}", "title": f"标题 {name}", "summary": f"摘要 {name}"}
    return Entry(name, published_at=at, **{**given, **values})


@contextmanager
def shelf(home: Path, url: str = "", **values: Any) -> Iterator[Shelf]:
    """Yield a shelf; without ``url`` on a file in ``home``."""
    clock = HandClock()
    settings = given_settings(home, **({"database_url": url} if url else {}), **values)
    services = open_services(settings, clock)
    TREE.upgrade(services.engine)
    try:
        yield Shelf(services, clock)
    finally:
        services.close()


@contextmanager
def served(services: FeedsServices, token: str = "") -> Iterator[str]:
    """Yield the address of the service with the pages and the API."""
    guard = GuessGuard(Counters(services.clock))
    access = ReaderAccess(PASSWORD, guard)
    reader = google_reader.google_reader_router(services, access)
    mounts = [
        Mount("greader", reader, prefix=google_reader.PREFIX, public=[google_reader.PREFIX]),
        Mount("feeds", pages.pages_router(services), prefix=pages.PREFIX),
    ]
    app = create_app(ServeSettings(_env_file=None, token=token), mounts, services.clock, guard)
    server = uvicorn.Server(configure(app, log_level="error", lifespan="off"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
