"""What tests of feeds work with: a clock that is set by hand, settings, services on a database, and a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.demo.stand_ins.feed_server import FeedServer, SourceStandIn
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn
from douban_pipeline.feeds.poller import Poller, PollReport
from douban_pipeline.feeds.services import FeedsServices, open_services
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.tables import entry, poll, source, stats
from douban_pipeline.feeds.subscriptions import SourceRequest, follow

START = 1_795_000_000
"""A moment in November 2026."""
HOUR, DAY = 3600, 86_400


class HandClock:
    """A clock that stands still until it is set; sleeping moves it on."""

    def __init__(self, at: float = START) -> None:
        self.at = float(at)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    def sleep(self, seconds: float) -> None:
        self.at += max(seconds, 0.0)


def given_settings(home: Path, **values: Any) -> FeedsSettings:
    """Settings of nothing but ``values``, for a server on loopback."""
    chosen: dict[str, Any] = {
        "home": home,
        "allow_private": True,
        "requests_per_minute": 60_000,
        "request_timeout_seconds": 2.0,
        **values,
    }
    return FeedsSettings(_env_file=None, **chosen)


class Stage:
    """Services, their clock and a server whose channels publish by it."""

    def __init__(self, services: FeedsServices, clock: HandClock, server: FeedServer) -> None:
        self.services = services
        self.clock = clock
        self.server = server

    def follow(self, *names: str, **fields: Any) -> list[str]:
        """Follow channels of the server; return their ids, due at once."""
        requests = [SourceRequest(url=self.server.url(name), title=name, **fields) for name in names]
        report = follow(self.services, requests, dry_run=False)
        ids = [each.source_id for each in (*report.added, *report.edited, *report.known)]
        self.make_due(*ids)
        return ids

    def make_due(self, *ids: str) -> None:
        with self.services.engine.begin() as connection:
            where = stats.c.source_id.in_(ids) if ids else stats.c.source_id != ""
            connection.execute(update(stats).where(where).values(next_due_at=0, backoff_until=0))

    def poll(self, **kwargs: Any) -> PollReport:
        return Poller(self.services, seconds=60).run(**kwargs)

    def stats(self, source_id: str) -> dict[str, Any]:
        with self.services.engine.connect() as connection:
            return dict(connection.execute(select(stats).where(stats.c.source_id == source_id)).mappings().one())

    def source(self, source_id: str) -> dict[str, Any]:
        with self.services.engine.connect() as connection:
            return dict(connection.execute(select(source).where(source.c.source_id == source_id)).mappings().one())

    def entries(self, source_id: str) -> list[dict[str, Any]]:
        query = select(entry).where(entry.c.source_id == source_id).order_by(entry.c.entry_id)
        with self.services.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def polls(self, source_id: str) -> list[dict[str, Any]]:
        query = select(poll).where(poll.c.source_id == source_id).order_by(poll.c.poll_id)
        with self.services.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


@contextmanager
def stage(home: Path, channels: dict[str, SourceStandIn], url: str = "", **values: Any) -> Iterator[Stage]:
    """Yield a stage; without ``url`` on a file in ``home``."""
    clock = HandClock()
    settings = given_settings(home, **({"database_url": url} if url else {}), **values)
    with FeedServer(lambda: clock.at, channels) as server:
        services = open_services(settings, clock)
        TREE.upgrade(services.engine)
        try:
            yield Stage(services, clock, server)
        finally:
            services.close()


def hourly(count: int, until: float = START) -> list[float]:
    """Times an hour apart, the last one at ``until``."""
    return [until - HOUR * back for back in range(count - 1, -1, -1)]


def channels(**given: SourceStandIn) -> dict[str, SourceStandIn]:
    """Channels by name, as `stage` wants them."""
    return given


HTML = "text/html; charset=utf-8"


@dataclass
class Site(LoopbackStandIn):
    """A web site: bodies by path, and the headers of the requests it saw."""

    pages: dict[str, bytes | HttpAnswer]
    asked: list[tuple[str, Message]] = field(default_factory=list)
    login: str = ""
    port: int = 0

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the page at a path; 401 without the right Authorization or Cookie, where the site has a login."""
        self.asked.append((target, headers))
        if self.login and self.login not in (headers.get("Authorization"), headers.get("Cookie")):
            return HttpAnswer(401, b"who are you")
        page = self.pages.get(target)
        if page is None:
            return HttpAnswer(404, b"<html>nothing here</html>", HTML)
        if isinstance(page, HttpAnswer):
            return page
        if page.startswith(b"->"):
            return HttpAnswer(301, b"", headers={"Location": page[2:].decode()})
        return HttpAnswer(200, page, HTML if b"<html" in page else "application/rss+xml")
