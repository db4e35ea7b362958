"""How fast feeds are chosen, booked and polled, on SQLite files of their own; sources are on loopback."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.queues import Queue
from pathlib import Path

import numpy as np
import psutil
from sqlalchemy import Engine, insert, update

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import open_engine, reading
from douban_pipeline.demo.stand_ins.feed_server import FeedServer, SourceStandIn
from douban_pipeline.feeds.cadence_review import review
from douban_pipeline.feeds.intensity import HOUR
from douban_pipeline.feeds.poller import Poller
from douban_pipeline.feeds.sensors import MOST_COUNTED
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.stats import claim, count_due, next_due
from douban_pipeline.feeds.store.tables import stats
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline_tests.harness.benchmarks.measuring import (
    Figure,
    Measure,
    Samples,
    Target,
    World,
    peak_memory_mb,
    stopwatch,
)
from douban_pipeline_tests.harness.feeds.shipped import ReplayClock, ReplayServices, follow_feeds

MANY = 1_000_000
POLLED = 5_000
_BOOKED, _ROUNDS, _FINDING = 400, 4, 20
"""Sources whose polls are booked, how often, and of how many one finds something each time: 5 %, as recorded."""
_TENTHS = 10


def measure_choosing(engine: Engine, sources: int = MANY) -> Iterator[Figure]:
    """Do what the sensor's tick and a claim do among a million sources, of which a 24th part is due."""
    now = int(time.time())
    random = np.random.default_rng(1)
    due = random.integers(now - 3600, now + 86_400, sources)
    with engine.begin() as connection:
        for start in range(0, sources, 10_000):
            some = enumerate(due[start : start + 10_000].tolist(), start)
            connection.execute(insert(stats), [{"source_id": f"s{n:07}", "next_due_at": at} for n, at in some])
    ticks, claims = Samples(), Samples()
    for number in range(50):
        with reading(engine) as connection, ticks.one():
            count_due(connection, now, MOST_COUNTED)
            next_due(connection)
        with claims.one(), engine.begin() as connection:
            claim(connection, now, f"claim {number}", 300, 20)
    yield Figure(f"the sensor's tick among {sources:,} sources, p95", ticks.p95, "ms", Target(most=50))
    yield Figure(f"a claim of 20 among {sources:,} sources, p95", claims.p95, "ms", Target(most=50))


def measure_booking(home: Path, profile: str, sources: int = _BOOKED) -> Iterator[Figure]:
    """Poll sources whose clients answer at once: what is left is what a poll costs beyond HTTP and parsing.

    Of 20 entries each; one poll of twenty finds one more.
    """
    engine = open_engine(f"sqlite:///{home / f'{profile}.sqlite'}")
    TREE.upgrade(engine)
    now = int(time.time())
    clock = ReplayClock(now)
    settings = FeedsSettings(_env_file=None, home=home, profile="budget" if profile == "budget" else "plan")
    known = np.array([now - HOUR * back for back in range(30, 0, -1)], dtype=float)
    ids = [f"rss-{number:05}" for number in range(sources)]
    busy = np.concatenate([known, now + 2.0 * HOUR * np.arange(1, _ROUNDS + 3)])
    feeds = {each: busy if number % _FINDING == 0 else known for number, each in enumerate(ids)}
    services = ReplayServices(engine=engine, clock=clock, settings=settings, feeds=feeds)
    follow_feeds(services, ids, now)
    review(services)
    polled, cpu = 0, 0.0
    for number in range(_ROUNDS + 1):
        clock.at += 2 * HOUR + 1
        with engine.begin() as connection:
            connection.execute(update(stats).values(next_due_at=0))
        with stopwatch() as watch:
            report = Poller(services, seconds=1e9).run()
        if number:  # the first compiles statements
            polled, cpu = polled + report.polled, cpu + watch.cpu
    engine.dispose()
    note = "beyond HTTP and parsing; 1 of 20 polls finds something"
    yield Figure(f"bookkeeping of a poll, profile {profile}, CPU", 1000 * cpu / polled, "ms", Target(most=1), note=note)


def _serve(names: list[str], told: Queue[str]) -> None:
    times = [time.time() - 3600 * hour for hour in range(20, 0, -1)]
    with FeedServer(time.time, {name: SourceStandIn("rss", times, name) for name in names}) as server:
        told.put(server.url(""))
        time.sleep(24 * 3600)


@contextmanager
def _server(names: list[str]) -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    told: Queue[str] = context.Queue()
    process = context.Process(target=_serve, args=(names, told), daemon=True)
    process.start()
    try:
        yield told.get(timeout=60)
    finally:
        process.kill()
        process.join()


def measure_run(home: Path, url: str, sources: int = POLLED) -> Iterator[Figure]:
    """Poll ``sources`` on loopback in ten runs of one process, at 50 requests a second."""
    settings = FeedsSettings(_env_file=None, home=home, database_url=url, allow_private=True, requests_per_minute=3000)
    names = [f"c{number}" for number in range(sources)]
    with _server(names) as base:
        services = open_services(settings, SystemClock())
        for start in range(0, sources, 1000):
            requests = [SourceRequest(url=f"{base}{name}") for name in names[start : start + 1000]]
            follow(services, requests, dry_run=False)
        with services.engine.begin() as connection:
            connection.execute(update(stats).values(next_due_at=0))
        process, memory, total = psutil.Process(), list[float](), 0
        with stopwatch() as watch:
            for _ in range(_TENTHS):
                total += Poller(services, seconds=1500).run(most=sources // _TENTHS).polled
                gc.collect()
                memory.append(process.memory_info().rss / 1e6)
        services.close()
    yield Figure("sources polled in one run", total / watch.wall, "/s", note=f"{total:,} in {watch.wall:.0f} s")
    yield Figure("a poll, CPU", 1000 * watch.cpu / max(total, 1), "ms", note="HTTP and parsing of 20 entries included")
    grown = 100 * (memory[-1] / memory[1] - 1)
    note = f"from {memory[1]:.0f} to {memory[-1]:.0f} MB in {total * 8 // 10:,} polls"
    yield Figure("growth of memory", grown, "%", Target(most=5), note=note)
    yield Figure("most memory", peak_memory_mb(), "MB")


def _chosen_and_booked(world: World, many: int = MANY) -> Iterator[Figure]:
    engine = open_engine(f"sqlite:///{world.scratch / 'feeds.sqlite'}")
    TREE.upgrade(engine)
    world.say(f"the due among {many:,} sources, and the bookkeeping of polls")
    yield from measure_choosing(engine, many)
    engine.dispose()
    for profile in ("plan", "budget"):
        yield from measure_booking(world.scratch, profile)


def _polled(world: World, polled: int = POLLED) -> Iterator[Figure]:
    url = f"sqlite:///{world.scratch / 'polled.sqlite'}"
    engine = open_engine(url)
    TREE.upgrade(engine)
    engine.dispose()
    world.say(f"{polled:,} sources on loopback")
    yield from measure_run(world.scratch, url, polled)


MEASURES = (
    Measure("feeds", "what followed sources cost: choosing and booking", _chosen_and_booked, ()),
    Measure("feeds-run", "sources on loopback polled in one run", _polled, ()),
)
