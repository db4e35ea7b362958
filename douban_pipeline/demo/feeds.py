"""The demo of followed sources: a dozen of all kinds on loopback; a morning of polling is simulated within seconds."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
from rich.console import Console
from sqlalchemy import create_engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import reading
from douban_pipeline.core.language import terminal_language, terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.dagster_kit.in_process import run_job
from douban_pipeline.demo.outcomes import DemoOutcome
from douban_pipeline.demo.stand_ins.feed_server import ACCOUNT, PASSWORD, FeedServer, SourceStandIn
from douban_pipeline.feeds.definitions import build_defs
from douban_pipeline.feeds.poller import Poller
from douban_pipeline.feeds.services import FeedsServices, open_services
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store import stats
from douban_pipeline.feeds.store.tables import source
from douban_pipeline.feeds.store.tables import stats as stats_table
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline.feeds.wording import KINDS, reason_text

HOURS = 8
_HOUR, _DAY = 3600, 86_400
_STEP = 1800
_LIST = {"path": "data.rows", "id": "no", "title": "name", "link": "href", "time": "at"}


class SteppedClock:
    """A simulated clock that advances only by waiting, so that hours pass immediately."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> datetime:
        """Return its time."""
        return datetime.fromtimestamp(self.at, UTC)

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.at += max(seconds, 0.0)


def demo_channels(start: float) -> dict[str, SourceStandIn]:
    """Return the sources of the demo: kinds, habits and faults, with two weeks before ``start`` and a day after it."""

    def every(hours: float, phase: float = 0.0) -> list[float]:
        count = int(15 * 24 / hours)
        return [start - 14 * _DAY + phase * _HOUR + number * hours * _HOUR for number in range(count)]

    return {
        "news": SourceStandIn("rss", every(1.5, 0.4), "快讯"),
        "morning": SourceStandIn("rss", every(24, 3.2), "早报"),
        "evening": SourceStandIn("atom", every(24, 6.1), "晚间影评"),
        "weekly": SourceStandIn("jsonfeed", every(168, 2.0), "一周新片"),
        "blog": SourceStandIn("atom", every(60, 5.0), "导演手记"),
        "videos": SourceStandIn("maccms", every(4, 1.1), "示例资源站"),
        "notices": SourceStandIn("json", every(30, 4.4), "公告"),
        "account": SourceStandIn("werss", every(12, 2.7), "示例公众号"),
        "broken": SourceStandIn("rss", [], "坏掉的源", fault="broken"),
        "gone": SourceStandIn("rss", [], "停更的源", fault="gone"),
        "login": SourceStandIn("rss", [], "要登录的源", fault="unauthorised"),
        "page": SourceStandIn("rss", [], "网页冒充的源", fault="page"),
    }


def run_feeds(home: Path, instance: dg.DagsterInstance, console: Console) -> DemoOutcome:
    """Follow the sources, simulate `HOURS` hours, poll and analyse through Dagster; return the result.

    A repeated run continues where the previous one ended, with the polls due since then.

    Args:
        home: The demo's folder; the tables are in a file in it.
        instance: Dagster's instance.
        console: Where to print.
    """
    now = int(datetime.now(UTC).timestamp())
    clock = SteppedClock(now)
    with _sources(home, now, lambda: clock.at) as (start, reached, server):
        clock.at = reached
        services = open_services(_settings(home, server), clock).ready()
        console.print(terminal_text("sources    {url} (bundled, this machine only)").format(url=server.base))
        if reached == start:
            _follow_all(services, server)
        polls, hits = _totals(services)
        while clock.at < now:
            clock.at = min(clock.at + _STEP, now)
            Poller(services, seconds=60).run()
        well = _through_dagster(services, instance)
        asked, found = (after - earlier for after, earlier in zip(_totals(services), (polls, hits), strict=True))
        _print(services, console, asked, found, now - reached)
        services.close()
    done = (
        terminal_text("{polls} polls of {sources} sources, {hits} found something").format(
            polls=asked, sources=len(server.channels), hits=found
        )
        if asked
        else terminal_text("nothing was due")
    )
    return DemoOutcome(well, done)


@contextmanager
def serve_sources(home: Path, now: Callable[[], float], *, werss: bool) -> Iterator[dict[str, str]]:
    """Serve the demo's sources, and follow them if not yet followed; yield the environment variables for them.

    An installation has one WeRSS: without ``werss`` it is simulated elsewhere, and no account of this one is followed.
    """
    with _sources(home, int(now()), now) as (start, reached, server):
        settings = _settings(home, server)
        if reached == start:
            services = open_services(settings).ready()
            _follow_all(services, server, werss=werss)
            services.close()
        names = ("profile", "werss_url", "werss_username", "werss_password")
        values = (settings.profile, server.base, ACCOUNT, PASSWORD)
        given = dict(zip(names, values, strict=True)) if werss else {"profile": settings.profile}
        yield {settings.variable(name): value for name, value in given.items()}


@contextmanager
def _sources(home: Path, moment: int, now: Callable[[], float]) -> Iterator[tuple[int, int, FeedServer]]:
    """Serve the sources of an earlier demo, or new ones; yield start and current time of the demo, and the server."""
    path = home / "feeds.sqlite"
    before = _earlier(path, moment)
    if before is None:
        for ending in ("", "-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
    start, reached, port = before or (moment - HOURS * _HOUR, moment - HOURS * _HOUR, 0)
    with FeedServer(now, demo_channels(start), port=port) as server:
        yield start, reached, server


def _settings(home: Path, server: FeedServer) -> FeedsSettings:
    return FeedsSettings.load(
        home=home,
        database_url=f"sqlite:///{home / 'feeds.sqlite'}",
        allow_private=True,
        requests_per_minute=60_000,
        werss_url=server.base,
        werss_username=ACCOUNT,
        werss_password=PASSWORD,
    )


def _follow_all(services: FeedsServices, server: FeedServer, *, werss: bool = True) -> None:
    wanted = {name: each for name, each in server.channels.items() if werss or each.form != "werss"}
    follow(services, [_request(server, name, each) for name, each in wanted.items()], dry_run=False)


def _earlier(path: Path, now: int) -> tuple[int, int, int] | None:
    """Return start, current time and port of an earlier demo's sources; None if it cannot be continued.

    It can be continued while the sources publish and their port is free.
    """
    if not path.exists():
        return None
    engine = create_engine(f"sqlite:///{path}")
    try:
        with engine.connect() as connection:
            start, some_url = connection.execute(select(func.min(source.c.created_at), func.min(source.c.url))).one()
            reached = connection.execute(select(func.max(stats_table.c.last_check_at))).scalar()
    except SQLAlchemyError:  # of another release, or interrupted while it was created
        return None
    finally:
        engine.dispose()
    port = urlsplit(some_url or "").port
    if not start or not reached or not port or not start <= reached <= now < start + _DAY:
        return None
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return None
    return start, reached, port


def _totals(services: FeedsServices) -> tuple[int, int]:
    with reading(services.engine) as connection:
        rows = stats.with_sources(connection)
    return sum(row.check_count for row in rows), sum(row.hit_count for row in rows)


def _request(server: FeedServer, name: str, channel: SourceStandIn) -> SourceRequest:
    if channel.form == "werss":
        return SourceRequest("werss", title=channel.title, mp_id=name)
    kind = channel.form if channel.form in ("maccms", "json") else "rss"
    options = _LIST if kind == "json" else {}
    return SourceRequest(kind, server.url(name), channel.title, options=options)


def _through_dagster(services: FeedsServices, instance: dg.DagsterInstance) -> bool:
    repository = build_defs(settings=services.settings, resource_overrides={"services": services}).get_repository_def()
    results = [run_job(repository, instance, job) for job in ("poll_feeds", "review_feeds")]
    return all(result.success for result in results)


def _print(services: FeedsServices, console: Console, polls: int, hits: int, seconds: int) -> None:
    heads = (
        terminal_text("source"),
        terminal_text("kind"),
        terminal_text("polls"),
        terminal_text("hits"),
        terminal_text("next poll", "demo"),
        terminal_text("why"),
    )
    table = Table(*heads, title=terminal_text("Followed sources"), title_justify="left")
    with reading(services.engine) as connection:
        rows = stats.with_sources(connection)
    zone = services.settings.zone
    for row in sorted(rows, key=lambda each: each.next_due_at):
        due = "—" if row.state != "active" else f"{datetime.fromtimestamp(row.next_due_at, zone):%H:%M}"
        why = reason_text(row.why, row._asdict())
        table.add_row(
            row.title,
            KINDS.get(row.kind, row.kind) if terminal_language() == "zh" else row.kind,
            str(row.check_count),
            str(row.hit_count),
            due,
            why,
        )
    console.print(table)
    console.print(
        terminal_text("{polls} polls in {hours} hours of the sources' time, {hits} found something").format(
            polls=polls, hours=f"{seconds / _HOUR:.1f}", hits=hits
        )
    )
