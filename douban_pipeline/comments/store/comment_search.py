"""Search of comments for operators, whatever their status; moderation history and stored heat of a comment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select

from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.comment_lists import CommentView, get_comments
from douban_pipeline.comments.store.search_index import comments_waiting, comments_with, rarest, searched_form
from douban_pipeline.comments.types import CommentStatus

_C = tables.comment.c
_MOST_READ = 5000
"""Approximate maximum of texts that one page reads; the next page continues from there."""
_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Search criteria; those not given do not restrict the search.

    Attributes:
        text: Text that the comment contains.
        user_id: Its author.
        section_id: Its section.
        status: Its own status.
        type: Type of the object that its section belongs to.
        object_id: That object.
        since: Earliest time of publishing.
        until: Time before which it was published.
        reports: Least number of reports.
        before: Exclusive upper bound of ids: the ``before`` of the previous page.
    """

    text: str = ""
    user_id: int = 0
    section_id: int = 0
    status: CommentStatus | None = None
    before: int = 0
    type: int = 0
    object_id: int = 0
    since: datetime | None = None
    until: datetime | None = None
    reports: int = 0

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions on a comment's row, all but its text and its place among the pages."""
        found = []
        if self.user_id:
            found.append(_C.publisher_id == self.user_id)
        if self.section_id:
            found.append(_C.section_id == self.section_id)
        if self.status is not None:
            found.append(_C.status == self.status)
        if self.type or self.object_id:
            s = tables.section.c
            of_type = [s.type == self.type] if self.type else []
            of_object = [s.object_id == self.object_id] if self.object_id else []
            found.append(_C.section_id.in_(select(s.section_id).where(*of_type, *of_object)))
        if self.since is not None:
            found.append(_C.created_at >= self.since)
        if self.until is not None:
            found.append(_C.created_at < self.until)
        if self.reports:
            found.append(_C.report_count >= self.reports)
        return found


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Comments found, with their current state in the database.

    Attributes:
        comments: The comments, newest first.
        before: Where the next page begins; None if there is none. A page may hold fewer comments than requested and
            still be followed by another: see `_MOST_READ`.
    """

    comments: list[CommentView]
    before: int | None


def search_comments(connection: Connection, asked: SearchRequest, most: int) -> SearchPage:
    """Return at most ``most`` matching comments, whatever their status, newest first.

    Width and case are ignored. The index yields candidates, whose texts are then read and compared. Texts not in the
    index yet are read too and, where the searched text has no two adjacent characters, so are all comments that match
    the other criteria.
    """
    form = searched_form(asked.text)
    queries = [select(_C.comment_id)]
    if form:
        pairs = rarest(connection, form)
        queries = [comments_with(pairs), comments_waiting()] if pairs else queries
    found: list[CommentView] = []
    before, size, read = asked.before, most, 0
    while read < _MOST_READ:
        ids = _newest(connection, queries, asked, before, size)
        views = get_comments(connection, ids)
        for number in ids:
            view = views.get(number)
            if view is not None and form in searched_form(view.content):
                found.append(view)
                if len(found) == most:
                    return SearchPage(found, number)
        if len(ids) < size:
            return SearchPage(found, None)
        before, read, size = ids[-1], read + size, min(2 * size, _READ_AT_ONCE)
    return SearchPage(found, before)


def _newest(
    connection: Connection, queries: Sequence[Select[tuple[int]]], asked: SearchRequest, before: int, most: int
) -> list[int]:
    """Return the greatest ids below ``before`` that any of ``queries`` finds and that match the other criteria."""
    found: set[int] = set()
    for query in queries:
        [number] = query.selected_columns
        # Author, section and status are the current ones of the comment.
        given = query if number.table is tables.comment else query.join(tables.comment, _C.comment_id == number)
        given = given.where(*asked.conditions())
        if before:
            given = given.where(number < before)
        found.update(connection.execute(given.order_by(number.desc()).limit(most)).scalars())
    return sorted(found, reverse=True)[:most]


def select_moderation(connection: Connection, comment_id: int) -> list[RowMapping]:
    """Return the moderation entries of a comment, oldest first."""
    query = select(tables.moderation).where(tables.moderation.c.comment_id == comment_id)
    return list(connection.execute(query.order_by(tables.moderation.c.moderation_id)).mappings())


def batch_comments(connection: Connection, batch: str) -> list[int]:
    """Return the comments of a batch of decisions that can still be undone."""
    c = tables.moderation.c
    query = select(c.comment_id).where(c.batch == batch, c.undone.is_(False)).order_by(c.comment_id)
    return list(connection.execute(query).scalars())


def sections_of(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """Return the section of each comment, by comment id."""
    query = select(_C.comment_id, _C.section_id).where(_C.comment_id.in_(ids))
    return {row.comment_id: row.section_id for row in connection.execute(query)}


def stored_heat(connection: Connection, comment_id: int) -> dict[str, Any] | None:
    """Return the stored score of a root; None for a comment without a score."""
    score = tables.score.c
    own = connection.execute(select(tables.score).where(score.comment_id == comment_id)).mappings().one_or_none()
    if own is None:
        return None
    return {
        "score": own["score"],
        "heat": own["heat"],
        "parts": own["parts"],
        "decisions": own["decisions"],
        "variant": own["variant"],
        "version": own["version"],
        "score_at": own["score_at"].isoformat() if own["score_at"] is not None else None,
    }
