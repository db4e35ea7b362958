"""Databases of the benchmark, and a large section in one as workers would have written it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import sqlalchemy as sa
from redis import Redis

from douban_pipeline.comments.ids import IdGenerator
from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.reading import Order, Place, get_comments, list_roots
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.demo.comment_sample import generate
from douban_pipeline_tests.harness.comments.callers import percentile

HOT, LARGE, BATCHED, SINGLE, COLD, OUTAGE = 1, 2, 3, 4, 5, 6
"""Objects whose sections are measured."""


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


def fill(engine: sa.Engine, count: int, object_id: int = LARGE) -> int:
    """Write a section of so many roots as workers would have written them; return its id."""
    now = datetime.now(UTC)
    likes = generate(count).likes.tolist()
    ids = IdGenerator(1023, lambda: now)
    with engine.begin() as connection:
        section_id = ensure_section(connection, 1, object_id, now, owner_id=1, title="大区")
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


def publish_heat(engine: sa.Engine, redis_url: str, prefix: str, section_id: int) -> None:
    """Put a section's list by heat into Redis, as a sweep does."""
    query = sa.text(
        "SELECT heat, comment_id FROM cmt_score WHERE section_id = :section ORDER BY heat DESC, comment_id DESC"
    )
    with engine.connect() as connection:
        rows = connection.execute(query, {"section": section_id}).all()
    found = np.array([tuple(row) for row in rows], dtype=np.int64)
    client = Redis.from_url(redis_url)
    HeatLists(client, prefix).publish(section_id, found[:, 1], found[:, 0], datetime.now(UTC))
    client.close()


def drop_keys(redis_url: str, prefix: str) -> None:
    """Forget what was measured with."""
    client = Redis.from_url(redis_url)
    for key in client.scan_iter(f"{prefix}*", count=1000):
        client.unlink(key)
    client.close()


def measure_listing(engine: sa.Engine, section_id: int, count: int, size: int, times: int) -> dict[str, float]:
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
                    places = list_roots(connection, section_id, order, after, size)
                    get_comments(connection, [place.comment_id for place in places])
                    taken.append(1000 * (time.perf_counter() - begun))
                figures[f"{order} {name} p50"] = percentile(taken, 0.5)
                figures[f"{order} {name} p95"] = percentile(taken, 0.95)
    return figures
