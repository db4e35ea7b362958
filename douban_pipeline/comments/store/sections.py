"""Sections: found or made by what they belong to, and read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select
from sqlalchemy.exc import IntegrityError

from douban_pipeline.comments.store import tables


def find_section(connection: Connection, kind: int, object_id: int) -> RowMapping | None:
    """Return the section of an object, None where there is none."""
    query = select(tables.section).where(tables.section.c.type == kind, tables.section.c.object_id == object_id)
    return connection.execute(query).mappings().one_or_none()


def get_section(connection: Connection, section_id: int) -> RowMapping | None:
    """Return a section, None where there is none."""
    query = select(tables.section).where(tables.section.c.section_id == section_id)
    return connection.execute(query).mappings().one_or_none()


def ensure_section(
    connection: Connection,
    kind: int,
    object_id: int,
    now: datetime,
    *,
    owner_id: int = 0,
    title: str = "",
    settings: Mapping[str, Any] | None = None,
) -> int:
    """Return the id of an object's section; it is made where there is none."""
    found = find_section(connection, kind, object_id)
    if found is not None:
        return int(found["section_id"])
    row = {
        "type": kind,
        "object_id": object_id,
        "owner_id": owner_id,
        "title": title[:300],
        "settings": dict(settings or {}),
        "pinned": [],
        "created_at": now,
        "active_at": now,
    }
    try:
        with connection.begin_nested():
            done = connection.execute(insert(tables.section), row)
            assert done.inserted_primary_key is not None
            return int(done.inserted_primary_key[0])
    except IntegrityError:  # somebody made it in this moment
        return ensure_section(connection, kind, object_id, now)
