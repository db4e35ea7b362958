"""A large section in a database, as workers would have written it."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import sqlalchemy as sa
from redis import Redis

from douban_pipeline.comments.ids import IdGenerator
from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.demo.comment_sample import generate

HOT, LARGE, BATCHED, SINGLE, COLD, OUTAGE = 1, 2, 3, 4, 5, 6
"""Objects whose sections are measured."""


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
