"""Measures how fast feeds are chosen, booked and polled: ``python -m douban_pipeline_tests.harness.feeds.speed``.

On a SQLite file of its own, or on the database that ``--url`` names, which must be empty; sources are on loopback.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from rich.console import Console
from sqlalchemy import Engine, insert, update

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import open_engine, run_transaction
from douban_pipeline.demo.stand_ins.feed_server import Channel, FeedServer
from douban_pipeline.feeds.following import SourceRequest, follow
from douban_pipeline.feeds.polling import Poller
from douban_pipeline.feeds.scheduler import get_due_sources, update_source_stats
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store.entries import store_entries
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.polls import add_poll
from douban_pipeline.feeds.store.tables import stats
from douban_pipeline.feeds.types import Entry, PollOutcome, PollRecord

MANY = 100_000
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Times:
    """How long the same thing took time after time, in milliseconds.

    Attributes:
        p50, p95: By the clock.
        cpu: Of this process, the median.
    """

    p50: float
    p95: float
    cpu: float


def measure_choosing(engine: Engine) -> Times:
    """Choose what is due among 100,000 sources."""
    now = int(time.time())
    random = np.random.default_rng(1)
    due = random.integers(now - 3600, now + 86_400, MANY)
    rows = [{"source_id": f"s{number:06}", "next_due_at": int(at)} for number, at in enumerate(due)]
    with engine.begin() as connection:
        for start in range(0, MANY, 10_000):
            connection.execute(insert(stats), rows[start : start + 10_000])
    took, busy = [], []
    with engine.connect() as connection:
        for _ in range(200):
            began, cpu = time.perf_counter(), time.process_time()
            get_due_sources(connection, now, limit=20)
            took.append(time.perf_counter() - began)
            busy.append(time.process_time() - cpu)
    return _times(took, busy)


def measure_booking(engine: Engine, polls: int = 500) -> Times:
    """Book polls: 20 known entries and a new one each, statistics, and the poll itself, in one transaction."""
    now = int(time.time())
    took, busy = [], []
    times = [now - 3600 * number for number in range(20)]
    known = [Entry(f"g{n}", f"http://example.com/{n}", f"t{n}", "", moment) for n, moment in enumerate(times)]
    run_transaction(engine, lambda connection: store_entries(connection, "booked", known, now))
    for number in range(polls):
        fresh = Entry(f"n{number}", f"http://example.com/n{number}", "new", "", now - number)
        began, cpu = time.perf_counter(), time.process_time()
        with engine.begin() as connection:
            store_entries(connection, "booked", [fresh, *known[:19]], now)
            update_source_stats(connection, "booked", "rss", True, "", now=now)
            add_poll(connection, PollRecord("booked", "example.com", now, PollOutcome.HIT, 200, new=1))
        took.append(time.perf_counter() - began)
        busy.append(time.process_time() - cpu)
    return _times(took, busy)


def measure_run(home: Path, url: str, sources: int, console: Console) -> None:
    """Poll ``sources`` on loopback in one run, at 50 requests a second."""
    settings = FeedsSettings(
        home=home,
        database_url=url,
        allow_private=True,
        requests_per_minute=3000,
        host_concurrency=8,
        workers=8,
        run_minutes=25,
    )
    times = [time.time() - 3600 * hour for hour in range(20, 0, -1)]
    names = [f"c{number}" for number in range(sources)]
    with FeedServer(time.time, {name: Channel("rss", times, name) for name in names}) as server:
        services = open_services(settings, SystemClock())
        for start in range(0, sources, 1000):
            requests = [SourceRequest(url=server.url(name)) for name in names[start : start + 1000]]
            follow(services, requests, dry_run=False)
        with services.engine.begin() as connection:
            connection.execute(update(stats).where(stats.c.source_id.like("rss-%")).values(next_due_at=0))
            connection.execute(update(stats).where(stats.c.source_id.like("s%")).values(next_due_at=2**40))
        process = psutil.Process()
        began, cpu = time.perf_counter(), time.process_time()
        memory = [process.memory_info().rss / _MEGABYTE]
        total = 0
        for _ in range(10):
            report = Poller(services, seconds=1500).run(most=sources // 10)
            total += report.polled
            memory.append(process.memory_info().rss / _MEGABYTE)
            problems = dict(report.problems)
            if problems:
                console.print(problems)
        seconds = time.perf_counter() - began
        services.close()
    console.print(
        f"{total} sources polled in {seconds:.0f} s ({total / seconds:.1f} a second), "
        f"{1000 * (time.process_time() - cpu) / max(total, 1):.1f} ms CPU each, server included"
    )
    console.print(f"memory after each tenth, MB: {', '.join(f'{each:.0f}' for each in memory)}")
    console.print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _times(took: Sequence[float], busy: Sequence[float]) -> Times:
    p50, p95 = np.percentile(np.array(took) * 1000, [50, 95])
    return Times(float(p50), float(p95), float(np.percentile(np.array(busy) * 1000, 50)))


def _show(console: Console, what: str, times: Times) -> None:
    console.print(f"{what}: p50 {times.p50:.2f} ms, p95 {times.p95:.2f} ms; CPU of this process p50 {times.cpu:.2f} ms")


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="", help="an empty database; a SQLite file by default")
    parser.add_argument("--sources", type=int, default=5000)
    given = parser.parse_args()
    console = Console(width=120, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        url = given.url or f"sqlite:///{folder}/feeds.sqlite"
        engine = open_engine(url)
        TREE.upgrade(engine)
        console.print(engine.dialect.name)
        _show(console, f"choosing the due among {MANY:,}", measure_choosing(engine))
        _show(console, "bookkeeping of one poll", measure_booking(engine))
        engine.dispose()
        if given.sources:
            measure_run(Path(folder), url, given.sources, console)


if __name__ == "__main__":
    main()
