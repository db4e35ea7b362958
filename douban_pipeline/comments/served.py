"""The order by heat as visitors are served it: the published list where there is one, else the tables.

Pinned comments stand before it and are in no page of it, so they take no place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select

from douban_pipeline.comments.cache.lists import RedisLists
from douban_pipeline.comments.store.comment_lists import CommentPlace, shown_ids
from douban_pipeline.comments.store.tables import comment, score
from douban_pipeline.comments.types import CommentStatus

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

    def comment_at(self, number: int) -> int | None:
        """Return the comment at a place, counted from 1; None if there is none."""
        listed = self._ranks(self._pinned)
        if listed is None:
            query = self._roots().order_by(score.c.heat.desc(), score.c.comment_id.desc())
            return self._connection.execute(query.offset(number - 1).limit(1)).scalar()
        offset = number - 1
        for rank in sorted(rank for rank in listed[0] if rank is not None):
            offset += rank <= offset
        found = self._page(offset, 1)
        return found[0].comment_id if found else None

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
