"""How fast comments are published, applied in batches and read, on MariaDB and a Redis of its own.

The service and a worker run as processes of their own, as they do on a site; the database is one of its own, dropped
afterwards. A busy machine makes figures small: then look at the processor's milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.ids import IdGenerator
from douban_pipeline.comments.review import SafetyReview
from douban_pipeline.comments.store import events, tables
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.types import Actor, EventKind
from douban_pipeline.comments.worker import Worker
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import open_engine
from douban_pipeline_tests.harness.benchmarks.comment_service import (
    SECRET,
    Caller,
    Running,
    percentile,
    running,
)
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Measure, Target, World
from douban_pipeline_tests.harness.rig.databases import MARIADB, scratch_database
from douban_pipeline_tests.harness.rig.own_servers import own_redis

HOT, BATCHED, SINGLE = 1, 2, 3
"""Objects whose sections are measured."""
_USERS = 50


def measure_batches(engine: sa.Engine, count: int) -> Iterator[Figure]:
    """Measure events applied a second, a batch of 500 and one by one: half comments, half likes of them."""
    rates, cpu = list[float](), list[float]()
    for object_id, batch, number in ((BATCHED, 500, count), (SINGLE, 1, max(50, count // 20))):
        now = datetime.now(UTC)
        ids = IdGenerator(1000 + object_id, lambda: datetime.now(UTC))
        with engine.begin() as connection:
            section = ensure_section(connection, 1, object_id, now)
            given: list[EventInput] = []
            for each in range(number // 2):
                comment, actor = ids.next(), Actor(f"u:{each + 1}", each + 1)
                payload = {"content": f"第 {each} 条"}
                given.append(EventInput(section, EventKind.PUBLISH, actor, f"{object_id}p{each}", comment, payload))
                given.append(EventInput(section, EventKind.VOTE, actor, f"{object_id}v{each}", comment, {"value": 1}))
            events.append(connection, given, now)
        worker = Worker(engine, SystemClock(), f"bench@here:{object_id}", SafetyReview(), batch=batch)
        begun, used, done = time.perf_counter(), time.process_time(), 0
        while turn := worker.turn():
            done += turn
        rates.append(done / (time.perf_counter() - begun))
        cpu.append(1000 * (time.process_time() - used) / done)
        worker.stop()
        with engine.connect() as connection:
            assert list(count_differences(connection, section)) == []
    yield Figure("events applied", rates[0], "/s", None, rates[1], "one by one")
    yield Figure("an event's CPU of the worker", cpu[0], "ms", None, cpu[1], "one by one")
    yield Figure("events in a batch against one by one", rates[0] / rates[1], "", Target(least=10))


def tokens(users: int = _USERS) -> list[str]:
    """Return tokens of so many users, for an hour."""
    expires = datetime.now(UTC) + timedelta(hours=1)
    return [make_token(user, SECRET, expires, name=f"用户{user}") for user in range(1, users + 1)]


def measure_publishing(
    place: Running, engine: sa.Engine, rate: int, seconds: int, connections: int = 50
) -> Iterator[Figure]:
    """Publish at a rate into one section, and measure how long comments take from request to applied."""
    with engine.begin() as connection:
        section = ensure_section(connection, 1, HOT, datetime.now(UTC))
    asyncio.run(_publish(place, rate, 1, connections))  # what a process does once is not measured
    _await_applied(engine)
    before = place.service_seconds(), place.worker_seconds()
    sent, answers, taken = asyncio.run(_publish(place, rate, seconds, connections))
    applied = _await_applied(engine)
    service, worker = place.service_seconds() - before[0], place.worker_seconds() - before[1]
    lags = [applied[number].timestamp() - at for number, at in sent.items()]
    with engine.connect() as connection:
        assert list(count_differences(connection, section)) == [], "floors without gap or double, counters exact"
    yield Figure("comments published", len(sent) / taken, "/s")
    yield Figure("from publishing to visible, p50", percentile(lags, 0.5), "s")
    yield Figure("from publishing to visible, p95", percentile(lags, 0.95), "s", Target(most=0.5))
    yield Figure("from publishing to answered, p95", percentile(answers, 0.95), "s")
    yield Figure("publishing, the services' CPU", 1000 * service / len(sent), "ms")
    yield Figure("applying, the worker's CPU", 1000 * worker / len(sent), "ms")


async def _publish(
    place: Running, rate: int, seconds: int, connections: int
) -> tuple[dict[int, float], list[float], float]:
    known, sent, answers = tokens(), {}, []
    waiting: asyncio.Queue[int | None] = asyncio.Queue()

    async def visitor() -> None:
        async with Caller(place.base) as caller:
            while (number := await waiting.get()) is not None:
                begun = time.time()
                answer = await caller.ask(
                    "POST",
                    f"/comments/v1/sections/1/{HOT}/comments",
                    {"content": f"第 {number} 条评论，{begun}"},
                    {"Authorization": f"Bearer {known[number % len(known)]}"},
                )
                if answer.status != 202:
                    raise RuntimeError(f"{answer.status}: {answer.body.decode()}")
                sent[int(answer.json()["id"])] = begun
                answers.append(time.time() - begun)

    visitors = [asyncio.create_task(visitor()) for _ in range(connections)]
    begun = time.monotonic()
    for number in range(rate * seconds):
        await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
        waiting.put_nowait(number)
    for _ in visitors:
        waiting.put_nowait(None)
    await asyncio.gather(*visitors)
    return sent, answers, time.monotonic() - begun


def _await_applied(engine: sa.Engine, seconds: float = 120) -> dict[int, datetime]:
    c = tables.event.c
    query = sa.select(c.comment_id, c.applied_at).where(c.kind == EventKind.PUBLISH)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with engine.connect() as connection:
            rows = connection.execute(query).all()
        if all(row.applied_at is not None for row in rows):
            return {row.comment_id: row.applied_at for row in rows}
        time.sleep(0.1)
    raise RuntimeError("comments are not applied")


def measure_hot(place: Running, seconds: int, connections: int) -> Iterator[Figure]:
    """Read page one of the hot section as fast as it goes over kept connections; p95 is of what a caller waits."""
    taken: list[float] = []
    refused: list[int] = []

    async def reader(base: str, until: float) -> None:
        async with Caller(base) as caller:
            while time.monotonic() < until:
                begun = time.perf_counter()
                answer = await caller.ask("GET", f"/comments/v1/sections/1/{HOT}/page?sort=new")
                if answer.status == 200:
                    taken.append(time.perf_counter() - begun)
                else:
                    refused.append(answer.status)

    async def run(until: float) -> None:
        await asyncio.gather(*(reader(place.base, until) for _ in range(connections)))

    asyncio.run(run(time.monotonic() + 2))
    taken.clear()
    refused.clear()
    before = place.service_seconds()
    asyncio.run(run(time.monotonic() + seconds))
    cpu = 1000 * (place.service_seconds() - before) / len(taken)
    yield Figure("page one", len(taken) / seconds, "/s", Target(least=1500))
    yield Figure("page one, p95", 1000 * percentile(taken, 0.95), "ms", Target(most=20))
    yield Figure("page one, refused", len(refused), "")
    yield Figure("page one, the services' CPU", cpu, "ms")


@contextmanager
def _database() -> Iterator[tuple[str, sa.Engine]]:
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
        yield from measure_batches(engine, events)


def published(
    world: World, rate: int = 100, seconds: int = 8, processes: int = 2, connections: int = 16
) -> Iterator[Figure]:
    """Publish comments at a rate, then read page one of their section, over HTTP."""
    with _database() as (url, engine), own_redis(world.scratch) as redis:
        world.say("starting the service and the worker")
        with running(url, redis, world.scratch, processes=processes) as place:
            yield from measure_publishing(place, engine, rate, seconds)
            yield from measure_hot(place, seconds, connections)


MEASURES = (
    Measure("comments-applied", "events of comments applied in batches", applied, ()),
    Measure("comments-published", "comments published and page one read over HTTP", published, ()),
)
