"""Sections in a database for tests: rows as the worker leaves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, insert

from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.tables import comment, content, impression, score, section
from douban_pipeline.core.database import open_engine

NOW = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
FIRST_ID = 381_000_000_000_000_000


@contextmanager
def comment_tables(url: str) -> Iterator[Engine]:
    """Yield an engine whose database has the tables of comments."""
    engine = open_engine(url)
    TREE.upgrade(engine)
    yield engine
    engine.dispose()


def plant_section(engine: Engine, section_id: int, *, active_at: datetime = NOW, **values: Any) -> None:
    """Write a section."""
    usual = {"type": 1, "object_id": section_id, "settings": {}, "pinned": [], "created_at": active_at}
    with engine.begin() as connection:
        connection.execute(insert(section).values(section_id=section_id, active_at=active_at, **{**usual, **values}))


def plant_comments(engine: Engine, section_id: int, comments: Sequence[dict[str, Any]], *, floor: int = 1) -> list[int]:
    """Write comments of a section with their texts, and an empty score for each root; return their ids, rising.

    ``age_hours``, ``text`` and ``hours`` (pairs of shown and liked, by hours before now) are made columns and rows of.
    """
    ids = [FIRST_ID + section_id * 1_000_000 + floor + number for number in range(len(comments))]
    rows, texts, seen = [], [], []
    for number, (comment_id, given) in enumerate(zip(ids, comments, strict=True)):
        fields = dict(given)
        text = fields.pop("text", "好看")
        created = NOW - timedelta(hours=fields.pop("age_hours", 0))
        for hours, (shown, liked) in fields.pop("hours", {}).items():
            at = (NOW - timedelta(hours=hours)).replace(minute=0)
            seen.append(
                {"comment_id": comment_id, "section_id": section_id, "hour": at, "shown": shown, "liked": liked}
            )
        row = dict.fromkeys(("like_count", "dislike_count", "report_count", "child_visible", "attributes", "status"), 0)
        row |= {"root_id": 0, "publisher_id": 1, "level": 0, "length": len(text), "meta": {}} | fields  # type: ignore[dict-item]
        rows.append(
            {**row, "comment_id": comment_id, "section_id": section_id, "floor": floor + number}
            | {"created_at": created, "updated_at": created}
        )
        texts.append({"comment_id": comment_id, "content": text})
    roots = [row["comment_id"] for row in rows if not row["root_id"]]
    with engine.begin() as connection:
        connection.execute(insert(comment), rows)
        connection.execute(insert(content), texts)
        if roots:
            empty = [{"comment_id": each, "section_id": section_id, "parts": {}, "decisions": []} for each in roots]
            connection.execute(insert(score), empty)
        if seen:
            connection.execute(insert(impression), seen)
    return ids
