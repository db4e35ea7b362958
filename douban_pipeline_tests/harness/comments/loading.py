"""Large sections in a database, as workers would have written them: generated roots with their replies and texts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from redis import Redis

from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.demo.comment_sample import GeneratedComments, generate

HOT, LARGE, BATCHED, SINGLE, SCORED = 1, 2, 3, 4, 5
"""Objects whose sections are measured."""
_BATCH = 20_000
_COLUMNS = (
    *("comment_id", "parent_id", "root_id", "dialog_id", "floor", "like_count", "dislike_count", "report_count"),
    *("child_visible", "length", "level", "attributes", "created"),
)


def plant(engine: sa.Engine, made: GeneratedComments, object_id: int, now: datetime, *, heat: bool) -> int:
    """Write a section of user 1 with these roots and the replies below them; return its id.

    With ``heat`` the roots have one, by likes alone; without it they are as before the first scoring.
    """
    with engine.begin() as connection:
        section_id = ensure_section(connection, 1, object_id, now, owner_id=1, title="大区")
    roots = _roots(made, object_id, now)
    rows = np.concatenate([roots, _replies(made, roots)])
    source = (
        "JSON_TABLE(:rows, '$[*]' COLUMNS ("
        + ", ".join(f"{name} BIGINT PATH '$[{place}]'" for place, name in enumerate(_COLUMNS))
        + ")) AS j"
    )
    moment = "'1970-01-01' + INTERVAL j.created SECOND"
    copied = ", ".join(_COLUMNS[:-1])
    wanted = [
        f"INSERT INTO cmt_comment ({copied}, child_total, section_id, publisher_id, created_at, updated_at, meta)"
        f" SELECT {copied}, j.child_visible, :section, 10 + j.floor % 5000, {moment}, {moment}, '{{}}' FROM {source}",
        "INSERT INTO cmt_content (comment_id, content, content_hash)"
        f" SELECT j.comment_id, CONCAT('第 ', j.floor, ' 条评论，好看'), '' FROM {source}",
        "INSERT INTO cmt_score (comment_id, section_id, heat, parts, decisions)"
        f" SELECT j.comment_id, :section, {'j.like_count * 1000' if heat else 0}, '{{}}', '[]' FROM {source}"
        " WHERE j.root_id = 0",
    ]
    for start in range(0, len(rows), _BATCH):
        given = {"rows": json.dumps(rows[start : start + _BATCH].tolist()), "section": section_id}
        with engine.begin() as connection:
            for statement in wanted:
                connection.execute(sa.text(statement), given)
    with engine.begin() as connection:
        connection.execute(
            sa.text(
                "UPDATE cmt_section SET total_count = :all, visible_count = :all, root_count = :roots, floor_seq = :all"
                " WHERE section_id = :section"
            ),
            {"all": len(rows), "roots": len(roots), "section": section_id},
        )
        connection.execute(sa.text("ANALYZE TABLE cmt_comment, cmt_content, cmt_score"))
    return section_id


def _roots(made: GeneratedComments, object_id: int, now: datetime) -> np.ndarray[Any, Any]:
    count = len(made.likes)
    nothing = np.zeros(count, dtype=np.int64)
    number = 10_000_000_000 * (object_id + 35_000_000) + np.arange(count)  # ids of August 2026
    created = (now.timestamp() - 3600 * made.age_hours).astype(np.int64)
    votes = (made.likes, made.dislikes, made.reports, made.replies)
    return np.column_stack(
        [number, *[nothing] * 3, np.arange(1, count + 1), *votes, made.length, made.level, made.owner_liked, created]
    )


def _replies(made: GeneratedComments, roots: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return replies: every second one below a root answers the one before it, the others the root itself."""
    below = np.repeat(np.arange(len(roots)), made.replies)
    count = len(below)
    number = roots[-1, 0] + 1 + np.arange(count)
    place = np.arange(count) - np.repeat(np.cumsum(made.replies) - made.replies, made.replies)
    above = np.where(place % 2 == 1, number - 1, roots[below, 0])
    dialog = np.where(place % 2 == 1, number - 1, number)
    shape, nothing = generate(max(count, 1), seed=2), np.zeros(count, dtype=np.int64)
    votes = (shape.likes[:count] // 10, nothing, nothing, nothing)
    floor = len(roots) + 1 + np.arange(count)
    told = (shape.length[:count], shape.level[:count], nothing, roots[below, -1] + 60)
    return np.column_stack([number, above, roots[below, 0], dialog, floor, *votes, *told])


def fill(engine: sa.Engine, count: int, object_id: int = LARGE) -> int:
    """Write a section of so many roots, with replies and a heat; return its id."""
    return plant(engine, generate(count), object_id, datetime.now(UTC), heat=True)


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
