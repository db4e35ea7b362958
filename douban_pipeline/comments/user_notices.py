"""Reads notices for their owner: comments that are hidden or deleted are revealed to their author only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from sqlalchemy import Connection, RowMapping, select, update

from douban_pipeline.comments import answers
from douban_pipeline.comments.store import comment_lists as store
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.comment_lists import CommentView
from douban_pipeline.comments.store.tables import notice
from douban_pipeline.comments.text_pieces import pieces
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.core.database import chunks

COUNTED = 100
"""Maximum number of unread notices that are counted; pages show 99+ from there."""
_OWN = ("status", "refused")
"""Kinds of notices about the reader's own comments."""
STATES: dict[CommentStatus, Literal["shown", "waiting", "deleted"]] = {
    CommentStatus.NORMAL: "shown",
    CommentStatus.REVIEW: "waiting",
    CommentStatus.DELETED: "deleted",
}
"""What a comment's author is told of its status."""


def read_notices(
    connection: Connection, user_id: int, before: int | None, size: int, *, unread: bool = False
) -> answers.Notices:
    """Return a page of a user's notices, newest first, and the cursor of the next page.

    A page may have fewer than ``size`` items where comments are gone; it is the last one if ``next`` is None.
    """
    rows = select_notices(connection, user_id, before, size, unread=unread)
    items = list(_items(connection, user_id, rows))
    return {"items": items, "next": str(rows[-1]["notice_id"]) if len(rows) == size else None}


def count_unread(connection: Connection, user_id: int) -> int:
    """Return the number of unread notices that a user would see, at most `COUNTED`."""
    rows = select_notices(connection, user_id, None, COUNTED, unread=True)
    return sum(1 for _ in _items(connection, user_id, rows))


def _items(connection: Connection, user_id: int, rows: Sequence[RowMapping]) -> Iterable[answers.Notice]:
    ids = {row["comment_id"] for row in rows}
    views = store.get_comments(connection, ids)
    shown = store.shown_ids(connection, ids)
    section = tables.section.c
    query = select(section.section_id, section.type, section.object_id, section.title)
    found = connection.execute(query.where(section.section_id.in_({row["section_id"] for row in rows})))
    sections = {row.section_id: row for row in found}
    for row in rows:
        view, own = views.get(row["comment_id"]), row["kind"] in _OWN
        if not own and row["comment_id"] not in shown:
            continue
        if row["kind"] == "like" and (view is None or not view.like_count):
            continue
        place = sections.get(row["section_id"])
        yield {
            "id": str(row["notice_id"]),
            "kind": row["kind"],
            "seen": bool(row["seen"]),
            "at": row["created_at"].isoformat(),
            "by": _by(row, view),
            "section": None
            if place is None
            else {"type": place.type, "object_id": place.object_id, "title": place.title},
            "comment": None if view is None else _comment(view, user_id),
        }


def _by(row: RowMapping, view: CommentView | None) -> answers.Who | None:
    """Return the user who caused a notice; None where the site decided."""
    user = row["actor"].removeprefix("u:")
    if row["kind"] in _OWN or not user.isdecimal():
        return None
    named = view is not None and row["kind"] in ("reply", "mention") and view.publisher_id == int(user)
    name = str(view.meta.get("name") or "") if view is not None and named else ""
    return {"id": user, "name": name or f"用户{user}"}


def _comment(view: CommentView, user_id: int) -> answers.NoticeComment:
    return {
        "id": str(view.comment_id),
        "root": str(view.root_id) if view.root_id else None,
        "pieces": pieces(view.content),
        "likes": view.like_count,
        "status": STATES[view.status] if view.publisher_id == user_id else "shown",
    }


_C = notice.c


def select_notices(
    connection: Connection, user_id: int, before: int | None, most: int, *, unread: bool
) -> list[RowMapping]:
    """Return notices of a user, newest first.

    Args:
        before: Exclusive upper bound of notice ids; None for none.
        most: Maximum number of notices.
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
