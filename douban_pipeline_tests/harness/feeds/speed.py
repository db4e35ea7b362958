"""How fast feeds are chosen, booked and polled, on a SQLite file of its own; sources are on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
from sqlalchemy import Engine, insert, update

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import open_engine, run_transaction
from douban_pipeline.demo.stand_ins.feed_server import FeedServer, SourceStandIn
from douban_pipeline.feeds.poller import Poller
from douban_pipeline.feeds.scheduler import get_due_sources, update_source_stats
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store.entries import store_entries
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.polls import add_poll
from douban_pipeline.feeds.store.tables import stats
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline.feeds.types import Entry, PollOutcome, PollRecord
from douban_pipeline_tests.harness.benchmarks.measuring import (
    Figure,
    Measure,
    Samples,
    Target,
    World,
    peak_memory_mb,
    stopwatch,
)

MANY = 100_000
POLLED = 5_000
_POLLS = 500
_TENTHS = 10


def measure_choosing(engine: Engine) -> Iterator[Figure]:
    """Choose what is due among 100,000 sources."""
    now = int(time.time())
    random = np.random.default_rng(1)
    due = random.integers(now - 3600, now + 86_400, MANY)
    rows = [{"source_id": f"s{number:06}", "next_due_at": int(at)} for number, at in enumerate(due)]
    with engine.begin() as connection:
        for start in range(0, MANY, 10_000):
            connection.execute(insert(stats), rows[start : start + 10_000])
    samples = Samples()
    with engine.connect() as connection:
        for _ in range(200):
            with samples.one():
                get_due_sources(connection, now, limit=20)
    yield Figure(f"choosing the due among {MANY:,}, p50", samples.p50, "ms")
    yield Figure(f"choosing the due among {MANY:,}, p95", samples.p95, "ms", Target(most=20))


def measure_booking(engine: Engine) -> Iterator[Figure]:
    """Book polls: 20 known entries and a new one each, statistics, and the poll itself, in one transaction."""
    now = int(time.time())
    samples = Samples()
    times = [now - 3600 * number for number in range(20)]
    known = [Entry(f"g{n}", f"http://example.com/{n}", f"t{n}", "", moment) for n, moment in enumerate(times)]
    run_transaction(engine, lambda connection: store_entries(connection, "booked", known, now))
    with stopwatch() as all_of_them:
        for number in range(_POLLS):
            fresh = Entry(f"n{number}", f"http://example.com/n{number}", "new", "", now - number)
            with samples.one(), engine.begin() as connection:
                store_entries(connection, "booked", [fresh, *known[:19]], now)
                update_source_stats(connection, "booked", "rss", True, "", now=now)
                add_poll(connection, PollRecord("booked", "example.com", now, PollOutcome.HIT, 200, new=1))
    yield Figure("bookkeeping of one poll, p50", samples.p50, "ms", Target(most=20))
    yield Figure("bookkeeping of one poll, p95", samples.p95, "ms")
    yield Figure("bookkeeping of one poll, CPU", 1000 * all_of_them.cpu / _POLLS, "ms")


def measure_run(home: Path, url: str, sources: int = POLLED) -> Iterator[Figure]:
    """Poll ``sources`` on loopback in one run, at 50 requests a second."""
    settings = FeedsSettings(
        home=home,
        database_url=url,
        allow_private=True,
        requests_per_minute=3000,
    )
    times = [time.time() - 3600 * hour for hour in range(20, 0, -1)]
    names = [f"c{number}" for number in range(sources)]
    with FeedServer(time.time, {name: SourceStandIn("rss", times, name) for name in names}) as server:
        services = open_services(settings, SystemClock())
        for start in range(0, sources, 1000):
            requests = [SourceRequest(url=server.url(name)) for name in names[start : start + 1000]]
            follow(services, requests, dry_run=False)
        with services.engine.begin() as connection:
            connection.execute(update(stats).where(stats.c.source_id.like("rss-%")).values(next_due_at=0))
            connection.execute(update(stats).where(stats.c.source_id.like("s%")).values(next_due_at=2**40))
        process, memory, total = psutil.Process(), list[float](), 0
        with stopwatch() as watch:
            for _ in range(_TENTHS):
                memory.append(process.memory_info().rss / 1e6)
                total += Poller(services, seconds=1500).run(most=sources // _TENTHS).polled
        services.close()
    grown = process.memory_info().rss / 1e6
    yield Figure("sources polled in one run", total / watch.wall, "/s", note=f"{total:,} in {watch.wall:.0f} s")
    yield Figure("a poll, CPU", 1000 * watch.cpu / max(total, 1), "ms", note="the server on loopback included")
    yield Figure("most memory", peak_memory_mb(), "MB", note=f"from {memory[1]:.0f} to {grown:.0f} MB")


def _chosen_and_booked(world: World) -> Iterator[Figure]:
    url = f"sqlite:///{world.scratch / 'feeds.sqlite'}"
    engine = open_engine(url)
    TREE.upgrade(engine)
    world.say(f"the due among {MANY:,} sources, and the bookkeeping of polls")
    yield from measure_choosing(engine)
    yield from measure_booking(engine)
    engine.dispose()


def _polled(world: World) -> Iterator[Figure]:
    url = f"sqlite:///{world.scratch / 'polled.sqlite'}"
    engine = open_engine(url)
    TREE.upgrade(engine)
    engine.dispose()
    world.say(f"{POLLED:,} sources on loopback")
    yield from measure_run(world.scratch, url)


MEASURES = (
    Measure("feeds", "what followed sources cost: choosing and booking", _chosen_and_booked, ()),
    Measure("feeds-run", f"{POLLED:,} sources polled in one run", _polled, ()),
)
