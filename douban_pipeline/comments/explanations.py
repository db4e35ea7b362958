"""Explains why comments stand where visitors are served them; nothing is written.

What is explained is the score that the served order uses, part by part as it was stored. Counts are read now: where the
score of now differs from the one that is used, the explanation says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, func, or_, select

from douban_pipeline.comments.cache.lists import RedisLists
from douban_pipeline.comments.heat.explanation import Facts, Neighbour, ServedRank, explain, explain_pinned
from douban_pipeline.comments.heat.ranking import columns_to_read, rank
from douban_pipeline.comments.scoring import policies
from douban_pipeline.comments.scoring.columns import read_columns
from douban_pipeline.comments.scoring.scores import TOLERANCE
from douban_pipeline.comments.store.comment_lists import CommentPlace, shown_ids
from douban_pipeline.comments.store.sections import get_section
from douban_pipeline.comments.store.tables import comment, score
from douban_pipeline.comments.types import CommentStatus, SectionStatus
from douban_pipeline.core.errors import ProblemsError

_AROUND = 6
"""Members of a list that are read on either side of a comment to find its neighbours: pinned and just hidden comments
are passed over."""


@dataclass(frozen=True, slots=True)
class ServedPlace:
    """Where a comment stands in the order by heat.

    Attributes:
        number: Its place, counted from 1.
        upper: The comment before it; None for the first.
        lower: The comment after it; None for the last.
    """

    number: int
    total: int
    own: CommentPlace
    upper: CommentPlace | None
    lower: CommentPlace | None


class ServedOrder:
    """The order by heat of one section, as its pages are read.

    Args:
        lists: The lists; None where no Redis is configured.
    """

    def __init__(
        self, connection: Connection, lists: RedisLists | None, section_id: int, pinned: Collection[int]
    ) -> None:
        self._connection, self._lists, self._section_id = connection, lists, section_id
        self._pinned = sorted(pinned)

    def place_of(self, comment_id: int) -> ServedPlace | None:
        """Return where a comment stands; None if it is pinned, not shown, or not of this section."""
        if comment_id in self._pinned or comment_id not in shown_ids(self._connection, [comment_id]):
            return None
        listed = self._ranks([comment_id, *self._pinned])
        if listed is None:
            return self._place_in_tables(comment_id)
        ranks, count = listed
        own, *others = ranks
        if own is None:
            return None
        before = [rank for rank in others if rank is not None]
        start = max(own - _AROUND, 0)
        around = self._page(start, own - start + _AROUND + 1)
        at = next((position for position, each in enumerate(around) if each.comment_id == comment_id), None)
        if at is None:  # it moved a moment ago
            return None
        shown = shown_ids(self._connection, [each.comment_id for each in around]) - set(self._pinned)
        upper = [each for each in around[:at] if each.comment_id in shown]
        lower = [each for each in around[at + 1 :] if each.comment_id in shown]
        return ServedPlace(
            own - sum(rank < own for rank in before) + 1,
            count - len(before),
            around[at],
            upper[-1] if upper else None,
            lower[0] if lower else None,
        )

    def total(self) -> int:
        """Return the number of comments in the order."""
        listed = self._ranks(self._pinned)
        if listed is None:
            query = self._roots().with_only_columns(func.count())
            return self._connection.execute(query).scalar_one()
        return listed[1] - sum(rank is not None for rank in listed[0])

    def _ranks(self, ids: Sequence[int]) -> tuple[list[int | None], int] | None:
        """Return the positions of comments in the published list, and its length; None where pages do not read it."""
        lists = self._lists
        if lists is None:
            return None
        found = lists.attempt(lambda: lists.heat.ranks(self._section_id, ids))
        return found if found is not None and found[1] else None

    def _page(self, offset: int, most: int) -> list[CommentPlace]:
        lists, of = self._lists, self._section_id
        found = lists.attempt(lambda: lists.heat.from_rank(of, offset, most)) if lists is not None else None
        return [CommentPlace(*each) for each in found or ()]

    def _roots(self) -> Select[tuple[int]]:
        query = select(score.c.comment_id).join(comment, comment.c.comment_id == score.c.comment_id)
        return query.where(
            score.c.section_id == self._section_id,
            comment.c.status == CommentStatus.NORMAL,
            score.c.comment_id.not_in(self._pinned),
        )

    def _place_in_tables(self, comment_id: int) -> ServedPlace | None:
        c = score.c
        heat = self._connection.execute(select(c.heat).where(c.comment_id == comment_id)).scalar()
        if heat is None:
            return None
        above = or_(c.heat > heat, (c.heat == heat) & (c.comment_id > comment_id))
        below = or_(c.heat < heat, (c.heat == heat) & (c.comment_id < comment_id))
        number = self._connection.execute(self._roots().with_only_columns(func.count()).where(above)).scalar_one()
        return ServedPlace(
            number + 1,
            self.total(),
            CommentPlace(heat, comment_id),
            self._next(above, c.heat, c.comment_id),
            self._next(below, c.heat.desc(), c.comment_id.desc()),
        )

    def _next(self, where: ColumnElement[bool], *order: ColumnElement[int]) -> CommentPlace | None:
        query = self._roots().with_only_columns(score.c.heat, score.c.comment_id).where(where).order_by(*order)
        row = self._connection.execute(query.limit(1)).one_or_none()
        return None if row is None else CommentPlace(row.heat, row.comment_id)


def explain_comment(
    connection: Connection,
    lists: RedisLists | None,
    section_id: int,
    comment_id: int,
    weights: Mapping[str, Any],
) -> tuple[int | None, list[str]]:
    """Return a root's place in the served order by heat, and the explanation of it in Chinese sentences.

    A pinned comment has no place in the order; of one that is in no list there is nothing to explain: no sentences.

    Raises:
        ProblemsError: There is no such section, or a rule cannot be applied.
    """
    section = _section(connection, section_id)
    if section["status"] == SectionStatus.HIDDEN:
        return None, ["评论区已隐藏，读者看不到其中的评论。"]
    pinned = [int(number) for number in section["pinned"]]
    on_top = shown_ids(connection, pinned)
    if comment_id in on_top:
        return None, explain_pinned([number for number in pinned if number in on_top].index(comment_id) + 1)
    at = ServedOrder(connection, lists, section_id, pinned).place_of(comment_id)
    if at is None:
        return None, []
    listed = [each for each in (at.own, at.upper, at.lower) if each is not None]
    stored = _stored(connection, [each.comment_id for each in listed])
    facts = _facts(connection, section, comment_id, stored.get(comment_id), weights)
    return at.number, explain(_served_rank(at, stored), facts)


def _section(connection: Connection, section_id: int) -> RowMapping:
    found = get_section(connection, section_id)
    if found is None:
        raise ProblemsError([f"没有编号为 {section_id} 的评论区"])
    return found


def _stored(connection: Connection, ids: Sequence[int]) -> dict[int, RowMapping]:
    query = select(score).where(score.c.comment_id.in_(ids), score.c.score_at.is_not(None))
    return {row["comment_id"]: row for row in connection.execute(query).mappings()}


def _served_rank(at: ServedPlace, stored: Mapping[int, RowMapping]) -> ServedRank:
    def neighbour(place: CommentPlace) -> Neighbour:
        row = stored.get(place.comment_id)
        # A sweep publishes its list before it stores the parts: those of another score explain nothing.
        return Neighbour(place.key, row["parts"] if row is not None and row["heat"] == place.key else None)

    own = stored.get(at.own.comment_id)
    return ServedRank(
        at.number,
        at.total,
        neighbour(at.own),
        neighbour(at.upper) if at.upper is not None else None,
        neighbour(at.lower) if at.lower is not None else None,
        tuple(own["decisions"]) if own is not None else (),
        own["variant"] if own is not None else "",
    )


def _facts(
    connection: Connection, section: RowMapping, comment_id: int, row: RowMapping | None, weights: Mapping[str, Any]
) -> Facts:
    """Return the comment's columns of now, and whether they and the rules still give the stored score."""
    policy = policies.policy_of(connection, section["section_id"], weights)
    swept = section["scored_at"] is not None
    at = section["scored_at"] if swept else section["created_at"]
    columns = read_columns(connection, section["section_id"], columns_to_read(policy), at, only=comment_id)
    ranking = rank(columns.ids, columns.read, policy)
    heat = int(ranking.heat[0])
    same = row is not None and abs(heat - row["heat"]) < TOLERANCE and policy.variant == row["variant"]
    counted = {name for name, hit in ranking.recalled.counted.items() if hit[0]}
    same = same and row is not None and counted == set(row["decisions"])
    values = {name: column[0] for name, column in columns.read.items()}
    return Facts(values, policy, ranking.recalled, heat, swept, same)
