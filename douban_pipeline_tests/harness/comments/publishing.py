"""How long a comment takes from its request until it can be seen, and what batches of events gain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.ids import IdGenerator
from douban_pipeline.comments.review import SafetyReview
from douban_pipeline.comments.store import events, tables
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.types import Actor, EventKind
from douban_pipeline.comments.worker import Worker
from douban_pipeline.core.clock import SystemClock
from douban_pipeline_tests.harness.benchmarks.measuring import Figure, Target
from douban_pipeline_tests.harness.comments.callers import Caller, percentile
from douban_pipeline_tests.harness.comments.loading import BATCHED, HOT, SINGLE
from douban_pipeline_tests.harness.comments.running import SECRET, Running

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
    """Return when each comment was asked for, how long answers took, and how long all of it did."""
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
    """Return when comments were applied, once all are."""
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
