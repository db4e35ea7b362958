"""How fast comments are published, applied in batches, read and scored, on MariaDB and a Redis of its own.

The services and a worker run as processes of their own, as they do on a site; the database is one of its own, dropped
afterwards. A busy machine makes figures small: then look at the processor's milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine

from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, World
from douban_pipeline_tests.harness.comments import publishing, reading, scoring_speed
from douban_pipeline_tests.harness.comments.loading import fill, publish_heat
from douban_pipeline_tests.harness.comments.running import own_redis, running
from douban_pipeline_tests.harness.rig.databases import MARIADB, scratch_database, server_url


@contextmanager
def _database() -> Iterator[tuple[str, Engine]]:
    with scratch_database(MARIADB, "comments") as address:
        url = address.render_as_string(hide_password=False)
        engine = open_engine(url)
        try:
            TREE.upgrade(engine)
            yield url, engine
        finally:
            engine.dispose()


def applied(_world: World, events: int = 5_000) -> Iterator[Figure]:
    """Apply events in batches and one by one."""
    with _database() as (_, engine):
        yield from publishing.measure_batches(engine, events)


def published(
    world: World, rate: int = 100, seconds: int = 8, processes: int = 2, connections: int = 16
) -> Iterator[Figure]:
    """Publish comments at a rate, then read page one of their section, over HTTP."""
    with _database() as (url, engine), own_redis(world.scratch) as redis:
        world.say("starting the service and the worker")
        with running(url, redis, world.scratch, processes=processes) as place:
            yield from publishing.measure_publishing(place, engine, rate, seconds)
            yield from reading.measure_hot(place, seconds, connections)


def read(world: World, comments: int = 200_000, times: int = 100) -> Iterator[Figure]:
    """Read pages at the top and far down over HTTP."""
    with _database() as (url, engine), own_redis(world.scratch) as redis:
        world.say(f"a section of {comments:,} comments")
        section_id = fill(engine, comments)
        # Every page is read: none is a copy that the process keeps.
        with running(url, redis, world.scratch, settings={"LOCAL_MS": "0"}) as place:
            publish_heat(engine, redis, place.prefix, section_id)
            yield from reading.measure_depth(place, engine, section_id, comments, times)


def scored(world: World, comments: int = 200_000) -> Iterator[Figure]:
    """Score a large section, and publish its list by heat."""
    with own_redis(world.scratch) as redis:
        yield from scoring_speed.measure(server_url(MARIADB), redis, comments)


MEASURES = (
    Measure("comments-applied", "events of comments applied in batches", applied, ()),
    Measure("comments-published", "comments published and page one read over HTTP", published, ()),
    Measure("comments-read", "pages of a large section read over HTTP", read, ()),
    Measure("comments-scored", "a large section scored, published and stored", scored, ()),
)
