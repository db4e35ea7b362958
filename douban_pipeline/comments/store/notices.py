"""What users are told: replies, mentions, likes, and what was decided of their comments."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, RowMapping, select, update

from douban_pipeline.comments.store.tables import notice
from douban_pipeline.core.database import chunks

_C = notice.c


def select_notices(
    connection: Connection, user_id: int, before: int | None, most: int, *, unread: bool
) -> list[RowMapping]:
    """Return notices of a user, the newest first.

    Args:
        connection: The database.
        user_id: Whose.
        before: Only older ones than this; None for all.
        most: How many.
        unread: Only those that were not marked as read.
    """
    query = select(notice).where(_C.user_id == user_id).order_by(_C.notice_id.desc()).limit(most)
    if before is not None:
        query = query.where(_C.notice_id < before)
    if unread:
        query = query.where(~_C.seen)
    return list(connection.execute(query).mappings())


def mark_read(connection: Connection, user_id: int, ids: Collection[int], upto: int) -> int:
    """Mark notices of a user as read: some, or all up to a number; return how many were not before."""
    changed = 0
    unread = update(notice).where(_C.user_id == user_id, ~_C.seen)
    for part in chunks(sorted(ids)):
        changed += connection.execute(unread.where(_C.notice_id.in_(part)), {"seen": True}).rowcount
    if upto:
        changed += connection.execute(unread.where(_C.notice_id <= upto), {"seen": True}).rowcount
    return changed
