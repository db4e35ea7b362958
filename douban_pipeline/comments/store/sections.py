"""Finds, creates and reads sections."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, false, func, insert, select, tuple_
from sqlalchemy.exc import IntegrityError

from douban_pipeline.comments.store import tables
from douban_pipeline.comments.types import CommentStatus, EventKind, SectionStatus
from douban_pipeline.core.database import chunks


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Section, owner and author that an event is about.

    Attributes:
        owner_id: Owner of the section; 0 for nobody.
        publisher_id: Author of the comment; 0 for a guest, and for the section itself.
    """

    section_id: int
    owner_id: int
    publisher_id: int = 0
    status: SectionStatus = SectionStatus.ACTIVE
    deleted: bool = False


def find_section(connection: Connection, kind: int, object_id: int) -> RowMapping | None:
    """Return the section of an object; None where there is none."""
    query = select(tables.section).where(tables.section.c.type == kind, tables.section.c.object_id == object_id)
    return connection.execute(query).mappings().one_or_none()


def find_sections(connection: Connection, objects: Collection[tuple[int, int]]) -> dict[tuple[int, int], Whereabouts]:
    """Return the sections of objects, by (type, id); objects without one are missing."""
    found: dict[tuple[int, int], Whereabouts] = {}
    c = tables.section.c
    for part in chunks(sorted(objects)):
        query = select(c.type, c.object_id, c.section_id, c.owner_id, c.status)
        for row in connection.execute(query.where(tuple_(c.type, c.object_id).in_(part))):
            status = SectionStatus(row.status)
            found[row.type, row.object_id] = Whereabouts(row.section_id, row.owner_id, status=status)
    return found


def whereabouts(connection: Connection, comments: Collection[int]) -> dict[int, Whereabouts]:
    """Return the whereabouts of comments, by id, including comments not applied yet; unknown ones are missing."""
    found: dict[int, Whereabouts] = {}
    section, comment, event = tables.section.c, tables.comment.c, tables.event.c
    root = tables.comment.alias("root")
    gone = (comment.status == CommentStatus.DELETED) | (func.coalesce(root.c.status, 0) == CommentStatus.DELETED)
    applied = (
        select(comment.comment_id, comment.publisher_id.label("publisher"), gone.label("deleted"), *_WHERE)
        .join(tables.section, section.section_id == comment.section_id)
        .outerjoin(root, root.c.comment_id == comment.root_id)
    )
    asked = (
        select(event.comment_id, event.user_id.label("publisher"), false().label("deleted"), *_WHERE)
        .join(tables.section, section.section_id == event.section_id)
        .where(event.kind == EventKind.PUBLISH, event.refusal == "")
    )
    for query, key in ((applied, comment.comment_id), (asked, event.comment_id)):
        for part in chunks(sorted(set(comments) - set(found))):
            for row in connection.execute(query.where(key.in_(part))):
                status = SectionStatus(row.status)
                found[row.comment_id] = Whereabouts(
                    row.section_id, row.owner_id, row.publisher, status, bool(row.deleted)
                )
    return found


_WHERE = (tables.section.c.section_id, tables.section.c.owner_id, tables.section.c.status)


def get_section(connection: Connection, section_id: int) -> RowMapping | None:
    """Return a section; None where there is none."""
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
    """Return the id of an object's section; create the section if there is none."""
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
    except IntegrityError:  # another process created it at the same time
        return ensure_section(connection, kind, object_id, now)
