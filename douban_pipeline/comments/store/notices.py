"""Stores notices of users: replies, mentions, likes, and decisions on their comments."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, RowMapping, select, update

from douban_pipeline.comments.store.tables import notice
from douban_pipeline.core.database import chunks

_C = notice.c


def select_notices(
    connection: Connection, user_id: int, before: int | None, most: int, *, unread: bool
) -> list[RowMapping]:
    """Return notices of a user, newest first.

    Args:
        connection: Connection to the database.
        user_id: Id of the user.
        before: Exclusive upper bound of notice ids; None for none.
        most: Maximum number of notices.
        unread: Whether only unread ones are returned.
    """
    query = select(notice).where(_C.user_id == user_id).order_by(_C.notice_id.desc()).limit(most)
    if before is not None:
        query = query.where(_C.notice_id < before)
    if unread:
        query = query.where(~_C.seen)
    return list(connection.execute(query).mappings())


def mark_read(connection: Connection, user_id: int, ids: Collection[int], upto: int) -> int:
    """Mark notices of a user as read, by id or all up to an id; return how many were unread."""
    changed = 0
    unread = update(notice).where(_C.user_id == user_id, ~_C.seen)
    for part in chunks(sorted(ids)):
        changed += connection.execute(unread.where(_C.notice_id.in_(part)), {"seen": True}).rowcount
    if upto:
        changed += connection.execute(unread.where(_C.notice_id <= upto), {"seen": True}).rowcount
    return changed
