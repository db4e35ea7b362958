"""``make bench-comments``: how fast comments are published, applied in batches and read, on MariaDB and Redis.

The service and a worker run as processes of their own, as they do on a site; the database is one of its own,
dropped afterwards. Each figure is printed beside its target, and ``--json`` writes all of them.
A busy machine makes them small.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import sqlalchemy as sa

from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.ids import IdGenerator
from douban_pipeline.comments.review import SafetyReview
from douban_pipeline.comments.store import events, reading, tables
from douban_pipeline.comments.store.counting import count_differences
from douban_pipeline.comments.store.events import EventInput
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.reading import Order, Place
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.types import Actor, EventKind
from douban_pipeline.comments.worker import Worker
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import open_engine
from douban_pipeline.demo.comment_shape import generate

SECRET = "a-secret-of-the-benchmark-0123456789"
HOT, LARGE, BATCHED, SINGLE = 1, 2, 3, 4
"""Objects whose sections are measured."""
TARGETS = {
    "publish to visible, p95 in seconds": "≤ 0.5",
    "events in a batch against one by one": "≥ 10",
    "page one, requests a second": "≥ 1500",
    "page one, p95 in milliseconds": "≤ 20",
    "page far down against page one": "≤ 2",
    "page far down, p95 in milliseconds": "≤ 30",
}


@contextmanager
def database(server: str) -> Iterator[str]:
    """Yield the address of a new database."""
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    name = f"bench_comments_{uuid.uuid4().hex[:10]}"
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} DEFAULT CHARACTER SET utf8mb4")
    try:
        yield engine.url.set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name}")
        engine.dispose()


def fill(engine: sa.Engine, count: int) -> int:
    """Write a section of so many roots as workers would have written them; return its id."""
    now = datetime.now(UTC)
    likes = generate(count).likes.tolist()
    ids = IdGenerator(1023, lambda: now)
    with engine.begin() as connection:
        section_id = ensure_section(connection, 1, LARGE, now, owner_id=1, title="大区")
    for start in range(1, count + 1, 5000):
        floors = range(start, min(start + 5000, count + 1))
        numbers = [ids.next() for _ in floors]
        with engine.begin() as connection:
            connection.execute(
                sa.insert(tables.comment),
                [
                    {
                        "comment_id": number,
                        "section_id": section_id,
                        "publisher_id": 10 + floor % 5000,
                        "floor": floor,
                        "like_count": liked,
                        "length": 12,
                        "created_at": now,
                        "updated_at": now,
                        "meta": {},
                    }
                    for number, floor, liked in zip(numbers, floors, likes[start - 1 :], strict=False)
                ],
            )
            contents = [
                {"comment_id": number, "content": f"第 {floor} 条评论，好看", "content_hash": ""}
                for number, floor in zip(numbers, floors, strict=True)
            ]
            connection.execute(sa.insert(tables.content), contents)
            scores = [
                {"comment_id": number, "section_id": section_id, "heat": liked * 1000, "parts": {}, "decisions": []}
                for number, liked in zip(numbers, likes[start - 1 :], strict=False)
            ]
            connection.execute(sa.insert(tables.score), scores)
    given = {"total_count": count, "root_count": count, "visible_count": count, "floor_seq": count}
    with engine.begin() as connection:
        connection.execute(sa.update(tables.section).where(tables.section.c.section_id == section_id), given)
    return section_id


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that such a share of ``values`` is not above."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure_depth(engine: sa.Engine, section_id: int, count: int, size: int, times: int) -> dict[str, float]:
    """Return how long a page of ids takes at the top and far down, in every order, in milliseconds."""
    figures: dict[str, float] = {}
    far = max(1, int(count * 0.8))
    keys = {Order.NEW: "floor", Order.FLOOR: "floor", Order.LIKES: "like_count"}
    for order in Order:
        column = "heat" if order == Order.HEAT else keys[order]
        table = "cmt_score" if order == Order.HEAT else "cmt_comment"
        direction = "" if order == Order.FLOOR else "DESC"
        with engine.connect() as connection:
            row = connection.exec_driver_sql(
                f"SELECT {column}, comment_id FROM {table} WHERE section_id = {section_id} "
                f"ORDER BY {column} {direction}, comment_id {direction} LIMIT 1 OFFSET {far}"
            ).one()
            deep = Place(int(row[0]), int(row[1]))
            for name, after in (("top", None), ("far", deep)):
                taken = []
                for _ in range(times):
                    begun = time.perf_counter()
                    places = reading.list_roots(connection, section_id, order, after, size)
                    reading.get_comments(connection, [place.comment_id for place in places])
                    taken.append(1000 * (time.perf_counter() - begun))
                figures[f"{order} {name} p50"] = percentile(taken, 0.5)
                figures[f"{order} {name} p95"] = percentile(taken, 0.95)
    return figures


def measure_batches(engine: sa.Engine, count: int) -> dict[str, float]:
    """Return events applied a second, a batch of 500 and one by one: half comments, half likes of them."""
    figures = {}
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
        begun, done = time.perf_counter(), 0
        while turn := worker.turn():
            done += turn
        figures["batch" if batch > 1 else "single"] = done / (time.perf_counter() - begun)
        worker.stop()
        with engine.connect() as connection:
            assert list(count_differences(connection, section)) == []
    return figures


@contextmanager
def processes(url: str, redis_url: str, home: Path) -> Iterator[tuple[str, int]]:
    """Yield the address and process of a service with a worker beside it, both processes of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {
        **os.environ,
        "DOUBAN_PIPELINE_HOME": str(home),
        "DOUBAN_PIPELINE_SYSTEMS": "douban,comments",
        "DOUBAN_PIPELINE_COMMENTS_DATABASE_URL": url,
        "DOUBAN_PIPELINE_COMMENTS_REDIS_URL": redis_url,
        "DOUBAN_PIPELINE_COMMENTS_REDIS_PREFIX": f"bench{uuid.uuid4().hex[:8]}:",
        "DOUBAN_PIPELINE_COMMENTS_TOKEN_SECRET": SECRET,
        "DOUBAN_PIPELINE_COMMENTS_PUBLISH_PER_MINUTE": "0",
        "DOUBAN_PIPELINE_COMMENTS_LIST_SECONDS": "60",
    }
    commands = (("comment-worker",), ("serve", "--port", str(port)))
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "douban_pipeline", *command], cwd=home, env=given, stdout=subprocess.DEVNULL
        )
        for command in commands
    ]
    base = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(trust_env=False) as client:
            for _ in range(300):
                try:
                    if client.get(f"{base}/healthz").status_code == 200:
                        break
                except httpx.TransportError:
                    time.sleep(0.2)
            else:
                raise RuntimeError("the service did not come up")
        yield base, running[1].pid
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(30)


async def measure_publishing(base: str, engine: sa.Engine, rate: int, seconds: int) -> dict[str, float]:
    """Publish at a rate into one section; return how long comments took from the request until they were applied."""
    with engine.begin() as connection:
        section = ensure_section(connection, 1, HOT, datetime.now(UTC))
    expires = datetime.now(UTC) + timedelta(hours=1)
    tokens = [make_token(user, SECRET, expires, name=f"用户{user}") for user in range(1, 51)]
    sent: dict[int, float] = {}
    answers: list[float] = []
    limits = httpx.Limits(max_connections=50)
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=30, limits=limits) as client:

        async def publish(number: int) -> None:
            begun = time.time()
            answer = await client.post(
                f"/comments/v1/sections/1/{HOT}/comments",
                json={"content": f"第 {number} 条评论"},
                headers={"Authorization": f"Bearer {tokens[number % len(tokens)]}"},
            )
            answer.raise_for_status()
            sent[int(answer.json()["id"])] = begun
            answers.append(time.time() - begun)

        begun, tasks = time.monotonic(), []
        for number in range(rate * seconds):
            await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
            tasks.append(asyncio.create_task(publish(number)))
        await asyncio.gather(*tasks)
        taken = time.monotonic() - begun
    applied: dict[int, datetime] = {}
    c = tables.event.c
    for _ in range(300):
        with engine.connect() as connection:
            query = sa.select(c.comment_id, c.applied_at).where(c.kind == EventKind.PUBLISH, c.applied_at.is_not(None))
            applied = {row.comment_id: row.applied_at for row in connection.execute(query)}
        if sent.keys() <= applied.keys():
            break
        await asyncio.sleep(0.1)
    lags = [applied[number].timestamp() - at for number, at in sent.items()]
    with engine.connect() as connection:
        assert list(count_differences(connection, section)) == [], "floors without gap or double, counters exact"
    return {
        "rate": len(sent) / taken,
        "visible p95": percentile(lags, 0.95),
        "visible p50": percentile(lags, 0.5),
        "answer p95": percentile(answers, 0.95),
    }


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def measure_pages(base: str, service: int, seconds: int, connections: int) -> dict[str, float]:
    """Read page one of the hot section as fast as it goes over kept connections; p95 is of what a caller waits."""
    host, _, port = base.removeprefix("http://").partition(":")
    ask = (
        f"GET /comments/v1/sections/1/{HOT}/page?sort=new HTTP/1.1\r\nHost: {host}:{port}\r\n"
        "Accept: application/json\r\n\r\n"
    ).encode()
    taken: list[float] = []

    async def caller(until: float) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        while time.monotonic() < until:
            begun = time.perf_counter()
            writer.write(ask)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head[:100]
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            taken.append(time.perf_counter() - begun)
        writer.close()

    async def run(until: float) -> None:
        await asyncio.gather(*(caller(until) for _ in range(connections)))

    asyncio.run(run(time.monotonic() + 2))
    taken.clear()
    before = cpu_seconds(service)
    asyncio.run(run(time.monotonic() + seconds))
    each = 1000 * (cpu_seconds(service) - before) / len(taken)
    return {
        "requests a second": len(taken) / seconds,
        "p95": 1000 * percentile(taken, 0.95),
        "milliseconds of the service's processor a request": each,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench-comments")
    parser.add_argument(
        "--server", default=os.environ.get("DOUBAN_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/")
    )
    parser.add_argument("--redis", default=os.environ.get("DOUBAN_TEST_REDIS_URL", "redis://127.0.0.1:6379/13"))
    parser.add_argument("--comments", type=int, default=1_000_000, help="comments of the large section")
    parser.add_argument("--events", type=int, default=20_000, help="events that are applied in batches")
    parser.add_argument("--rate", type=int, default=200, help="comments published a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--json", type=Path, help="file for all figures")
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    with database(given.server) as url, tempfile.TemporaryDirectory() as folder:
        engine = open_engine(url)
        TREE.upgrade(engine)
        figures["batches"] = measure_batches(engine, given.events)
        with processes(url, given.redis, Path(folder)) as (base, service):
            figures["publishing"] = asyncio.run(measure_publishing(base, engine, given.rate, given.seconds))
            figures["pages"] = measure_pages(base, service, given.seconds, given.connections)
        section_id = fill(engine, given.comments)
        figures["depth"] = measure_depth(engine, section_id, given.comments, 20, 200)
        engine.dispose()
    depth = figures["depth"]
    shown = {
        "publish to visible, p95 in seconds": figures["publishing"]["visible p95"],
        "events in a batch against one by one": figures["batches"]["batch"] / figures["batches"]["single"],
        "page one, requests a second": figures["pages"]["requests a second"],
        "page one, p95 in milliseconds": figures["pages"]["p95"],
        "page far down against page one": max(depth[f"{order} far p50"] / depth[f"{order} top p50"] for order in Order),
        "page far down, p95 in milliseconds": max(depth[f"{order} far p95"] for order in Order),
    }
    for name, figure in shown.items():
        print(f"{figure:12.3f}  {TARGETS[name]:>8}  {name}")  # noqa: T201
    for name, group in figures.items():
        print(f"{name}: " + ", ".join(f"{what} {value:.3f}" for what, value in group.items()))  # noqa: T201
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
