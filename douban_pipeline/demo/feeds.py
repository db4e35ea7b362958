"""The demo of followed sources: a dozen of all kinds on loopback, a morning of theirs in seconds, and what came."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from rich.console import Console
from rich.table import Table

from douban_pipeline.core.database import reading
from douban_pipeline.demo.feed_server import ACCOUNT, PASSWORD, Channel, FeedServer
from douban_pipeline.feeds.definitions import build_defs
from douban_pipeline.feeds.following import SourceRequest, follow
from douban_pipeline.feeds.polling import Poller
from douban_pipeline.feeds.services import FeedsServices, open_services
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store import stats
from douban_pipeline.feeds.wording import why_text

HOURS = 8
_HOUR, _DAY = 3600, 86_400
_STEP = 1800
_LIST = {"path": "data.rows", "id": "no", "title": "name", "link": "href", "time": "at"}


class SteppedClock:
    """A clock that stands where it is set; waiting moves it on, so that hours pass at once."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> datetime:
        """Return where it stands."""
        return datetime.fromtimestamp(self.at, UTC)

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.at += max(seconds, 0.0)


def demo_channels(start: float) -> dict[str, Channel]:
    """Return the sources of the demo: kinds, habits and faults, with two weeks before ``start`` and a day after it."""

    def every(hours: float, phase: float = 0.0) -> list[float]:
        count = int(15 * 24 / hours)
        return [start - 14 * _DAY + phase * _HOUR + number * hours * _HOUR for number in range(count)]

    return {
        "news": Channel("rss", every(1.5, 0.4), "快讯"),
        "morning": Channel("rss", every(24, 3.2), "早报"),
        "evening": Channel("atom", every(24, 6.1), "晚间影评"),
        "weekly": Channel("jsonfeed", every(168, 2.0), "一周新片"),
        "blog": Channel("atom", every(60, 5.0), "导演手记"),
        "videos": Channel("maccms", every(4, 1.1), "示例资源站"),
        "notices": Channel("json", every(30, 4.4), "公告"),
        "account": Channel("werss", every(12, 2.7), "示例公众号"),
        "broken": Channel("rss", [], "坏掉的源", fault="broken"),
        "gone": Channel("rss", [], "停更的源", fault="gone"),
        "login": Channel("rss", [], "要登录的源", fault="unauthorised"),
        "page": Channel("rss", [], "网页冒充的源", fault="page"),
    }


def run_feeds(home: Path, instance: dg.DagsterInstance, console: Console) -> bool:
    """Follow the sources, let `HOURS` hours pass, poll and analyse through Dagster; return whether all went well.

    Args:
        home: The demo's folder; the tables are made anew in a file in it.
        instance: Dagster's instance.
        console: Where to print.
    """
    path = home / "feeds.sqlite"
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    start = datetime.now(UTC).timestamp() - HOURS * _HOUR
    clock = SteppedClock(start)
    channels = demo_channels(start)
    with FeedServer(lambda: clock.at, channels) as server:
        settings = FeedsSettings.load(
            home=home,
            database_url=f"sqlite:///{path}",
            profile="budget",
            allow_private=True,
            requests_per_minute=60_000,
            host_concurrency=4,
            werss_url=server.base,
            werss_username=ACCOUNT,
            werss_password=PASSWORD,
        )
        services = open_services(settings, clock).ready()
        console.print(f"sources    {server.base} (bundled, this machine only)")
        follow(services, [_request(server, name, each) for name, each in channels.items()], dry_run=False)
        while clock.at < start + HOURS * _HOUR:
            clock.at += _STEP
            Poller(services, seconds=60).run()
        well = _through_dagster(services, instance)
        _print(services, console)
        services.close()
    return well


def _request(server: FeedServer, name: str, channel: Channel) -> SourceRequest:
    if channel.form == "werss":
        return SourceRequest("werss", title=channel.title, mp_id=name)
    kind = channel.form if channel.form in ("maccms", "json") else "rss"
    options = _LIST if kind == "json" else {}
    return SourceRequest(kind, server.url(name), channel.title, options=options)


def _through_dagster(services: FeedsServices, instance: dg.DagsterInstance) -> bool:
    repository = build_defs(settings=services.settings, resource_overrides={"services": services}).get_repository_def()
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    results = [
        repository.get_job(job).execute_in_process(instance=instance, raise_on_error=False, run_config=quiet)
        for job in ("poll_feeds", "review_feeds")
    ]
    return all(result.success for result in results)


def _print(services: FeedsServices, console: Console) -> None:
    table = Table("source", "kind", "polls", "hits", "next look", "why", title="Followed sources", title_justify="left")
    with reading(services.engine) as connection:
        rows = stats.with_sources(connection)
    zone = services.settings.zone
    for row in sorted(rows, key=lambda each: each.next_due_at):
        due = "—" if row.state != "active" else f"{datetime.fromtimestamp(row.next_due_at, zone):%H:%M}"
        why = why_text(row.why, row._asdict())
        table.add_row(row.title, row.kind, str(row.check_count), str(row.hit_count), due, why)
    console.print(table)
    polls = sum(row.check_count for row in rows)
    hits = sum(row.hit_count for row in rows)
    console.print(f"{polls} polls in {HOURS} hours of the sources' time, {hits} found something")
    console.print(f"page       {services.settings.home / 'reports' / 'feeds.html'}", soft_wrap=True)
