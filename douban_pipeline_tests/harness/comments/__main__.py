"""``make bench-comments``: how fast comments are published, applied in batches, read and scored, on MariaDB and Redis.

The services and a worker run as processes of their own, as they do on a site; the database is one of its own, dropped
afterwards. Each figure is printed beside its target with the machine's load, and ``--json`` writes all of them.
A busy machine makes them small: then look at the processor's milliseconds, which are printed too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url

from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.harness.benchmarks.bench import bench, say
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Say, World
from douban_pipeline_tests.harness.comments import outage, publishing, reading, scoring_speed
from douban_pipeline_tests.harness.comments.loading import COLD, OUTAGE, drop_keys, fill, publish_heat
from douban_pipeline_tests.harness.comments.running import own_redis, running
from douban_pipeline_tests.harness.rig.databases import MARIADB, scratch_database, server_url

PARTS = ("batches", "publishing", "pages", "cold", "outage", "depth", "scoring")
_COLD_COMMENTS = 2000


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything there is; see the options."""

    comments: int = 1_000_000
    events: int = 20_000
    rate: int = 200
    seconds: int = 20
    processes: int = 2
    connections: int = 16
    callers: int = 2_000
    times: int = 200


def measure(
    parts: Collection[str], size: Size, server: URL, redis: str, home: Path, say: Say = lambda _: None
) -> Iterator[Figure]:
    """Measure ``parts`` on a database of its own on ``server``, and on Redis."""
    with scratch_database(server, "comments") as address:
        url = address.render_as_string(hide_password=False)
        engine = open_engine(url)
        try:
            TREE.upgrade(engine)
            if "batches" in parts:
                yield from publishing.measure_batches(engine, size.events)
            if {"publishing", "pages"} & {*parts}:
                say("starting the service and the worker")
                with running(url, redis, home, processes=size.processes) as place:
                    yield from publishing.measure_publishing(place, engine, size.rate, size.seconds)
                    if "pages" in parts:
                        yield from reading.measure_hot(place, size.seconds, size.connections)
                drop_keys(redis, place.prefix)
            if "cold" in parts:
                fill(engine, _COLD_COMMENTS, COLD)
                # A section is hot from its first request, and its page kept until all have been answered.
                kept = {"HOT_PER_SECOND": "1", "LOCAL_MS": "10000"}
                with running(url, redis, home, services=size.processes, settings=kept) as place:
                    yield from reading.measure_cold(place, size.callers)
                drop_keys(redis, place.prefix)
            if "outage" in parts and shutil.which("redis-server"):
                fill(engine, _COLD_COMMENTS, OUTAGE)
                with own_redis(home) as (own, process), running(url, own, home) as place:
                    yield from outage.measure_outage(place, engine, process, size.seconds)
            if "depth" in parts:
                say(f"a section of {size.comments:,} comments")
                section_id = fill(engine, size.comments)
                # Every page is read: none is a copy that the process keeps.
                with running(url, redis, home, settings={"LOCAL_MS": "0"}) as place:
                    publish_heat(engine, redis, place.prefix, section_id)
                    yield from reading.measure_depth(place, engine, section_id, size.comments, size.times)
                drop_keys(redis, place.prefix)
        finally:
            engine.dispose()
    if "scoring" in parts:
        yield from scoring_speed.measure(server, redis, size.comments)


SERVED = Size(comments=200_000, rate=100, seconds=8, times=100)


def served(
    world: World, size: Size = SERVED, parts: Collection[str] = ("publishing", "pages", "depth")
) -> Iterator[Figure]:
    """Publish comments, and read page one and pages far down over HTTP, on a Redis of its own."""
    with own_redis(world.scratch) as (redis, _):
        yield from measure(parts, size, server_url(MARIADB), redis, world.scratch, world.say)


def applied(world: World) -> Iterator[Figure]:
    """Apply events in batches and one by one."""
    return measure(("batches",), Size(events=5_000), server_url(MARIADB), "", world.scratch, world.say)


MEASURES = (
    Measure("comments", "events of comments applied", applied, ()),
    Measure("comments-served", "comments published and read over HTTP", served, ()),
)


def main() -> None:
    """Measure, print each figure beside its target, and write all of them where wanted."""
    usual = Size()
    parser = argparse.ArgumentParser(prog="bench-comments", description=__doc__)
    parser.add_argument("--server", type=make_url, default=server_url(MARIADB), help="MariaDB")
    parser.add_argument("--redis", default=os.environ.get("DOUBAN_TEST_REDIS_URL", "redis://127.0.0.1:6379/13"))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts that are measured")
    parser.add_argument("--comments", type=int, default=usual.comments, help="comments of the large section")
    parser.add_argument("--events", type=int, default=usual.events, help="events that are applied in batches")
    parser.add_argument("--rate", type=int, default=usual.rate, help="comments published a second")
    parser.add_argument("--seconds", type=int, default=usual.seconds)
    parser.add_argument("--processes", type=int, default=usual.processes, help="processes of the service")
    parser.add_argument("--connections", type=int, default=usual.connections)
    parser.add_argument("--callers", type=int, default=usual.callers, help="callers of a cold page")
    parser.add_argument("--times", type=int, default=usual.times, help="pages read in each order, top and far down")
    parser.add_argument("--json", type=Path, help="file for all figures")
    given = vars(parser.parse_args())
    server, redis, only, file = (given.pop(name) for name in ("server", "redis", "only", "json"))
    with tempfile.TemporaryDirectory() as home:
        bench("comments", measure(only, Size(**given), server, redis, Path(home), say), file)


if __name__ == "__main__":
    main()
