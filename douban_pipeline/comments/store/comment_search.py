"""Search of comments for operators, whatever their status; moderation history and stored heat of a comment."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Text, func, select, type_coerce

from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.comment_lists import CommentView, get_comments
from douban_pipeline.comments.store.moderator_tables import address
from douban_pipeline.comments.store.search_index import comments_waiting, comments_with, rarest, searched_form
from douban_pipeline.comments.trust import network_of
from douban_pipeline.comments.types import CMS_ACTOR, CommentStatus

_C = tables.comment.c
_MOST_READ = 5000
"""Approximate maximum of texts that one page reads; the next page continues from there."""
_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Search criteria; those not given do not restrict the search.

    Attributes:
        address: Address that it was sent from, or its network as `trust.subject_of` writes it.
        reason: Why it waits or was reported: one of `REASONS`, or the reason of a report.
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
    address: str = ""
    reason: str = ""

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
        if self.address:
            found.append(_C.comment_id.in_(_sent_from(self.address)))
        if self.reason:
            found.append(_because(self.reason))
        return found


def _sent_from(given: str) -> Select[tuple[int]]:
    """Return the query of comments sent from an address, or from a network that is in one network of the table."""
    a = address.c
    network = ipaddress.ip_network(given, strict=False)
    stored = network_of(str(network.network_address))
    query = select(a.comment_id)
    if network.version == 4 and network.prefixlen == 16:
        return query.where(a.network.startswith(f"{str(network.network_address).rsplit('.', 2)[0]}."))
    query = query.where(a.network == stored)
    if "/" not in given:
        return query.where(a.address == given)
    if network.version == 6 and network.prefixlen == 64:
        groups = str(network.network_address.exploded).split(":")[:4]
        beginning = ":".join(group.lstrip("0") or "0" for group in groups)
        return query.where(a.address.startswith(f"{beginning}:", autoescape=True))
    return query


REASONS = {
    "words": "含词语",
    "links": "个链接",
    "section": "先审后发",
    "newcomer": "新用户的前",
    "watched": "受关注",
    "flood": "游客发言突增",
}
"""What a comment's own reasons contain, by name; see `review`."""
_ACTORS = {"model": "model", "cms": CMS_ACTOR}
"""Who sent a comment to review, by name."""


def _because(reason: str) -> ColumnElement[bool]:
    if words := REASONS.get(reason):
        return type_coerce(_C.meta, Text).contains(words)
    if reason in _ACTORS:
        m = tables.moderation.c
        return _C.comment_id.in_(select(m.comment_id).where(m.actor == _ACTORS[reason], m.undone.is_(False)))
    r = tables.report.c
    return _C.comment_id.in_(select(r.comment_id).where(r.reason == reason, r.withdrawn.is_(False)))


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


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What the rows of moderators say besides the comments."""

    sections: dict[int, RowMapping]
    addresses: dict[int, str]
    reports: dict[int, dict[str, int]]
    edits: dict[int, int]


def row_facts(connection: Connection, views: Sequence[CommentView]) -> RowFacts:
    """Return the facts about some comments."""
    ids = [view.comment_id for view in views]
    s, r, e = tables.section.c, tables.report.c, tables.edit.c
    of_sections = select(tables.section).where(s.section_id.in_({view.section_id for view in views}))
    sections = {row["section_id"]: row for row in connection.execute(of_sections).mappings()}
    sent = select(address.c.comment_id, address.c.address).where(address.c.comment_id.in_(ids))
    counted = select(r.comment_id, r.reason, func.count()).where(r.comment_id.in_(ids), r.withdrawn.is_(False))
    reports: dict[int, dict[str, int]] = {}
    for number, reason, count in connection.execute(counted.group_by(r.comment_id, r.reason)):
        reports.setdefault(number, {})[reason] = count
    edited = select(e.comment_id, func.count()).where(e.comment_id.in_(ids)).group_by(e.comment_id)
    addresses, edits = (dict(connection.execute(query).tuples().all()) for query in (sent, edited))
    return RowFacts(sections, addresses, reports, edits)


def earlier_texts(connection: Connection, comment_id: int) -> list[RowMapping]:
    """Return the texts that a comment's edits replaced, with the time of each edit, oldest first."""
    e = tables.edit.c
    query = select(e.content, e.created_at).where(e.comment_id == comment_id).order_by(e.edit_id)
    return list(connection.execute(query).mappings())
