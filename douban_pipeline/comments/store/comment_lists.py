"""Reads lists and comments from the database with keyset pagination, so that every page costs the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, literal, select, union_all

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
    """One comment as read from the database, shown or not."""

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


_VIEW_COLUMNS = tuple(_C[name] for name in CommentView.__dataclass_fields__ if name != "content")


def list_roots(
    connection: Connection, section_id: int, order: Order, after: CommentPlace | None, most: int
) -> list[CommentPlace]:
    """Return the places of the shown roots of a section that follow a place.

    Args:
        connection: Connection to the database.
        section_id: Id of the section.
        order: The order.
        after: The last place of the previous page; None for the first page.
        most: Maximum number of places.
    """
    if order == Order.HEAT:
        return _by_heat(connection, section_id, after, most)
    if order == Order.LIKES:
        return _by_key(connection, _roots(section_id, _C.like_count), _C.like_count, _C.comment_id, after, most)
    query = _roots(section_id, _C.floor)
    if order == Order.FLOOR:
        return _upwards(connection, query, after, most)
    if after is not None:
        query = query.where(_C.floor < after.key)
    return _places(connection, query.order_by(_C.floor.desc()), most)


def list_replies(
    connection: Connection, root_id: int, section_id: int, after: CommentPlace | None, most: int
) -> list[CommentPlace]:
    """Return the places of replies to a root whose own status is NORMAL, oldest first."""
    query = select(_C.floor, _C.comment_id).where(
        _C.section_id == section_id, _C.root_id == root_id, _C.status == CommentStatus.NORMAL
    )
    return _upwards(connection, query, after, most)


def _upwards(
    connection: Connection, query: Select[tuple[int, int]], after: CommentPlace | None, most: int
) -> list[CommentPlace]:
    if after is not None:
        query = query.where(_C.floor > after.key)
    return _places(connection, query.order_by(_C.floor), most)


def list_dialog(connection: Connection, dialog_id: int, after: CommentPlace | None, most: int) -> list[CommentPlace]:
    """Return the places of the replies of a dialog, oldest first."""
    query = select(_C.comment_id.label("key"), _C.comment_id).where(
        _C.dialog_id == dialog_id, _C.status == CommentStatus.NORMAL
    )
    if after is not None:
        query = query.where(_C.comment_id > after.comment_id)
    return _places(connection, query.order_by(_C.comment_id), most)


def _roots(section_id: int, key: ColumnElement[int]) -> Select[tuple[int, int]]:
    return select(key.label("key"), _C.comment_id).where(
        _C.section_id == section_id, _C.root_id == 0, _C.status == CommentStatus.NORMAL
    )


def _by_key(
    connection: Connection,
    query: Select[tuple[int, int]],
    key: ColumnElement[int],
    number: ColumnElement[int],
    after: CommentPlace | None,
    most: int,
) -> list[CommentPlace]:
    """Read by descending key, then id: two queries, because the index serves equal keys and lower keys separately."""
    found: list[CommentPlace] = []
    if after is not None:
        equal = query.where(key == after.key, number < after.comment_id).order_by(number.desc())
        found = _places(connection, equal, most)
        query = query.where(key < after.key)
    if len(found) < most:
        found += _places(connection, query.order_by(key.desc(), number.desc()), most - len(found))
    return found


def _by_heat(connection: Connection, section_id: int, after: CommentPlace | None, most: int) -> list[CommentPlace]:
    """Read by heat, skipping roots that are not shown; their status is looked up page by page."""
    score = tables.score.c
    query = select(score.heat, score.comment_id).where(score.section_id == section_id)
    found: list[CommentPlace] = []
    while len(found) < most:
        wanted = most - len(found)
        page = _by_key(connection, query, score.heat, score.comment_id, after, wanted)
        shown = shown_ids(connection, [place.comment_id for place in page])
        found += [place for place in page if place.comment_id in shown]
        if len(page) < wanted:
            break
        after = page[-1]
    return found


def _places(connection: Connection, query: Select[tuple[int, int]], most: int) -> list[CommentPlace]:
    return [CommentPlace(int(row[0]), int(row[1])) for row in connection.execute(query.limit(most))]


def shown_ids(connection: Connection, ids: Iterable[int]) -> set[int]:
    """Return those of ``ids`` that are shown: their own status and their root's are NORMAL."""
    found: set[int] = set()
    rows = _statuses(connection, ids)
    roots = _statuses(connection, {root for _, root in rows.values() if root})
    for number, (status, root) in rows.items():
        if status == CommentStatus.NORMAL and (not root or roots.get(root, (None, 0))[0] == CommentStatus.NORMAL):
            found.add(number)
    return found


def _statuses(connection: Connection, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for part in chunks(sorted(ids)):
        query = select(_C.comment_id, _C.status, _C.root_id).where(_C.comment_id.in_(part))
        found.update((row.comment_id, (row.status, row.root_id)) for row in connection.execute(query))
    return found


def get_comments(
    connection: Connection, ids: Collection[int], texts: Mapping[int, str] | None = None
) -> dict[int, CommentView]:
    """Return comments by id, whatever their status; ids that do not exist are missing.

    Args:
        connection: Connection to the database.
        ids: Ids of the comments.
        texts: Texts that are known already and are not read again.
    """
    known = texts or {}
    found: dict[int, CommentView] = {}
    for part in chunks(sorted(set(ids))):
        rows = connection.execute(select(*_VIEW_COLUMNS).where(_C.comment_id.in_(part))).mappings().all()
        missing = [row["comment_id"] for row in rows if row["comment_id"] not in known]
        read = _texts(connection, missing)
        for row in rows:
            number = row["comment_id"]
            content = known[number] if number in known else read[number]
            given: dict[str, Any] = {**row, "status": CommentStatus(row["status"]), "content": content}
            found[number] = CommentView(**given)
    return found


def authors_of(connection: Connection, ids: Collection[int]) -> dict[int, tuple[int, Mapping[str, Any]]]:
    """Return the authors' ids and the `meta` of those of ``ids`` whose own status is NORMAL."""
    found: dict[int, tuple[int, Mapping[str, Any]]] = {}
    for part in chunks(sorted(ids)):
        query = select(_C.comment_id, _C.publisher_id, _C.meta).where(
            _C.comment_id.in_(part), _C.status == CommentStatus.NORMAL
        )
        found.update((row.comment_id, (row.publisher_id, row.meta)) for row in connection.execute(query))
    return found


def _texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    if not ids:
        return {}
    query = select(tables.content.c.comment_id, tables.content.c.content).where(tables.content.c.comment_id.in_(ids))
    return {row.comment_id: row.content for row in connection.execute(query)}


def preview_replies(
    connection: Connection, section_id: int, roots: Sequence[int], most: int = 3
) -> dict[int, list[int]]:
    """Return the ids of the most liked replies under each of ``roots``, at most ``most`` each."""
    found: dict[int, list[int]] = {}
    for part in chunks(roots, 50):
        each = []
        for root in part:
            best = (
                select(literal(root).label("root"), _C.comment_id, _C.like_count)
                .where(_C.section_id == section_id, _C.root_id == root, _C.status == CommentStatus.NORMAL)
                .order_by(_C.like_count.desc(), _C.comment_id.desc())
                .limit(most)
                .subquery()
            )
            each.append(select(best))
        for row in connection.execute(union_all(*each)):
            found.setdefault(int(row.root), []).append(int(row.comment_id))
    return found


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
