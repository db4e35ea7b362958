"""Reads lists and comments from the database with keyset pagination, so that every page costs the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Literal

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Executable,
    Row,
    and_,
    bindparam,
    case,
    select,
    union_all,
)

from douban_pipeline.comments.store import tables
from douban_pipeline.comments.types import CommentStatus, Vote
from douban_pipeline.core.database import chunks

_C = tables.comment.c


class Order(StrEnum):
    """Orders in which comments are listed."""

    NEW = "new"
    """By time, newest first."""
    FLOOR = "floor"
    """By time, oldest first."""
    LIKES = "likes"
    HEAT = "heat"


@dataclass(frozen=True, slots=True)
class CommentPlace:
    """Position of a comment in an order: its sort key, and its id as tie-break."""

    key: int
    comment_id: int


@dataclass(frozen=True, slots=True)
class CommentView:
    """One comment as read from the database, shown or not.

    Attributes:
        root_status: Status of its root, its own for a root; None where there is no root any more.
        above_id: Author of the comment that it answers, where that is another than its root and is NORMAL; else None.
        above_meta: The `meta` of that comment.
    """

    comment_id: int
    section_id: int
    publisher_id: int
    parent_id: int
    root_id: int
    dialog_id: int
    floor: int
    child_visible: int
    like_count: int
    dislike_count: int
    report_count: int
    status: CommentStatus
    status_rank: int
    status_actor: str
    attributes: int
    level: int
    created_at: datetime
    meta: Mapping[str, Any]
    content: str
    root_status: int | None
    above_id: int | None
    above_meta: Mapping[str, Any] | None

    @property
    def is_shown(self) -> bool:
        """Whether its own status and its root's are NORMAL."""
        return self.status == self.root_status == CommentStatus.NORMAL


_ROOT, _ABOVE = tables.comment.alias("root"), tables.comment.alias("above")
_ELSEWHERE: dict[str, ColumnElement[Any]] = {
    "content": tables.content.c.content,
    "root_status": case((_C.root_id == 0, _C.status), else_=_ROOT.c.status),
    "above_id": _ABOVE.c.publisher_id,
    "above_meta": _ABOVE.c.meta,
}
_VIEWS = (
    select(*(_ELSEWHERE[name] if name in _ELSEWHERE else _C[name] for name in CommentView.__dataclass_fields__))
    .join(tables.content, tables.content.c.comment_id == _C.comment_id)
    .outerjoin(_ROOT, _ROOT.c.comment_id == _C.root_id)
    .outerjoin(
        _ABOVE,
        and_(_ABOVE.c.comment_id == _C.parent_id, _C.parent_id != _C.root_id, _ABOVE.c.status == CommentStatus.NORMAL),
    )
)
"""Everything that a page shows of comments, in one statement: a page is read thousands of times a minute."""
_BY_ID = _VIEWS.where(_C.comment_id.in_(bindparam("ids", expanding=True)))


def list_roots(
    connection: Connection, section_id: int, order: Order, after: CommentPlace | None, most: int
) -> list[CommentPlace]:
    """Return the places of the shown roots of a section that follow a place.

    Args:
        after: The last place of the previous page; None for the first page.
        most: Maximum number of places.
    """
    if order == Order.HEAT:
        return _by_heat(connection, section_id, after, most)
    return _following(connection, order, section_id, after, most)


def list_replies(
    connection: Connection, root_id: int, section_id: int, after: CommentPlace | None, most: int
) -> list[CommentPlace]:
    """Return the places of replies to a root whose own status is NORMAL, oldest first."""
    return _following(connection, Order.FLOOR, section_id, after, most, root_id)


def list_dialog(connection: Connection, dialog_id: int, after: CommentPlace | None, most: int) -> list[CommentPlace]:
    """Return the places of the replies of a dialog, oldest first."""
    query = select(_C.comment_id.label("key"), _C.comment_id).where(
        _C.dialog_id == dialog_id, _C.status == CommentStatus.NORMAL
    )
    if after is not None:
        query = query.where(_C.comment_id > after.comment_id)
    return [CommentPlace(*row) for row in connection.execute(query.order_by(_C.comment_id).limit(most)).tuples()]


_SECTION: BindParameter[int] = bindparam("section")
_UNDER: BindParameter[int] = bindparam("under")
_KEY: BindParameter[int] = bindparam("key")
_NUMBER: BindParameter[int] = bindparam("number")
_MOST: BindParameter[int] = bindparam("most")
_Part = Literal["first", "equal", "after"]
"""Which part of an order: from its beginning; from a place on, what has the same key, and what has a later one."""


@cache
def _statement(order: Order, part: _Part) -> Executable:
    """Return the statement for a part of an order; made once, it is compiled once."""
    if order == Order.HEAT:
        key, number = tables.score.c.heat, tables.score.c.comment_id
        query = select(key, number).where(tables.score.c.section_id == _SECTION)
    else:
        key, number = _C.like_count if order == Order.LIKES else _C.floor, _C.comment_id
        query = select(key, number).where(
            _C.section_id == _SECTION, _C.root_id == _UNDER, _C.status == CommentStatus.NORMAL
        )
    if part == "equal":
        query = query.where(key == _KEY, number < _NUMBER)
    elif part == "after":
        query = query.where(key > _KEY if order == Order.FLOOR else key < _KEY)
    if order in (Order.NEW, Order.FLOOR):  # no two comments have one floor
        return query.order_by(key if order == Order.FLOOR else key.desc()).limit(_MOST)
    return query.order_by(key.desc(), number.desc()).limit(_MOST)


def _following(
    connection: Connection, order: Order, section_id: int, after: CommentPlace | None, most: int, root_id: int = 0
) -> list[CommentPlace]:
    """Read an order from a place on: the index serves equal keys and later keys separately."""
    parts: list[_Part] = ["first"]
    given = {"section": section_id, "under": root_id}
    if after is not None:
        parts = ["after"] if order in (Order.NEW, Order.FLOOR) else ["equal", "after"]
        given |= {"key": after.key, "number": after.comment_id}
    found: list[CommentPlace] = []
    for part in parts:
        if len(found) < most:
            rows = connection.execute(_statement(order, part), {**given, "most": most - len(found)})
            found += [CommentPlace(*row) for row in rows]
    return found


def _by_heat(connection: Connection, section_id: int, after: CommentPlace | None, most: int) -> list[CommentPlace]:
    """Read by heat, skipping roots that are not shown; their status is looked up page by page."""
    found: list[CommentPlace] = []
    while len(found) < most:
        wanted = most - len(found)
        page = _following(connection, Order.HEAT, section_id, after, wanted)
        shown = shown_ids(connection, [place.comment_id for place in page])
        found += [place for place in page if place.comment_id in shown]
        if len(page) < wanted:
            break
        after = page[-1]
    return found


def shown_ids(connection: Connection, ids: Iterable[int]) -> set[int]:
    """Return those of ``ids`` that are shown: their own status and their root's are NORMAL."""
    query = (
        select(_C.comment_id)
        .outerjoin(_ROOT, _ROOT.c.comment_id == _C.root_id)
        .where(_C.status == CommentStatus.NORMAL)
        .where((_C.root_id == 0) | (_ROOT.c.status == CommentStatus.NORMAL))
    )
    found: set[int] = set()
    for part in chunks(sorted(ids)):
        found.update(connection.execute(query.where(_C.comment_id.in_(part))).scalars())
    return found


def get_comments(connection: Connection, ids: Collection[int]) -> dict[int, CommentView]:
    """Return comments by id, whatever their status; ids that do not exist are missing."""
    found: dict[int, CommentView] = {}
    for part in chunks(sorted(set(ids))):
        found.update((row[0], _view(row)) for row in connection.execute(_BY_ID, {"ids": part}))
    return found


def _view(row: Row[Any]) -> CommentView:
    values = list(row)
    values[_STATUS] = CommentStatus(values[_STATUS])
    return CommentView(*values)


_STATUS = list(CommentView.__dataclass_fields__).index("status")


def preview_replies(
    connection: Connection, section_id: int, roots: Sequence[int], most: int = 3
) -> dict[int, list[CommentView]]:
    """Return the most liked replies under each of ``roots``, at most ``most`` each; their own status is NORMAL."""
    found: dict[int, list[CommentView]] = {}
    for part in chunks(roots, 50):
        given = {f"root{place}": root for place, root in enumerate(part)}
        rows = connection.execute(_preview_statement(len(part)), {**given, "section": section_id, "most": most})
        for view in sorted(map(_view, rows), key=lambda each: (-each.like_count, -each.comment_id)):
            found.setdefault(view.root_id, []).append(view)
    return found


@cache
def _preview_statement(roots: int) -> Executable:
    """Return the statement for the replies below so many roots: the index serves each root by itself."""
    best = (
        select(_C.comment_id)
        .where(_C.section_id == _SECTION, _C.root_id == bindparam(f"root{place}"), _C.status == CommentStatus.NORMAL)
        .order_by(_C.like_count.desc(), _C.comment_id.desc())
        .limit(_MOST)
        .subquery()
        for place in range(roots)
    )
    chosen = union_all(*(select(each) for each in best)).subquery()
    return _VIEWS.join(chosen, chosen.c.comment_id == _C.comment_id)


def liked_by(connection: Connection, ids: Collection[int], voters: Collection[str]) -> dict[int, list[str]]:
    """Return by comment which of the voters like it; comments that none of them likes are missing."""
    c = tables.vote.c
    found: dict[int, list[str]] = {}
    for part in chunks(sorted(voters)):
        query = select(c.comment_id, c.voter).where(c.comment_id.in_(ids), c.voter.in_(part), c.value == Vote.LIKE)
        for row in connection.execute(query):
            found.setdefault(row.comment_id, []).append(row.voter)
    return found


def votes_of(connection: Connection, voter: str, ids: Collection[int]) -> dict[int, Vote]:
    """Return a voter's votes by comment; comments without a vote are missing."""
    found: dict[int, Vote] = {}
    for part in chunks(sorted(ids)):
        query = select(tables.vote.c.comment_id, tables.vote.c.value).where(
            tables.vote.c.comment_id.in_(part), tables.vote.c.voter == voter, tables.vote.c.value != 0
        )
        found.update((row.comment_id, Vote(row.value)) for row in connection.execute(query))
    return found


def own_waiting(connection: Connection, section_id: int, user_id: int, most: int = 5) -> list[int]:
    """Return the ids of a user's newest comments in a section that wait for review; visible to their author only."""
    query = (
        select(_C.comment_id)
        .where(_C.publisher_id == user_id, _C.section_id == section_id, _C.status == CommentStatus.REVIEW)
        .order_by(_C.comment_id.desc())
        .limit(most)
    )
    return list(connection.execute(query).scalars())
