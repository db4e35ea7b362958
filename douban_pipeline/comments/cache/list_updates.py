"""Updates lists in Redis after events: lists get the current state of the database, never the content of a message."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Engine, select

from douban_pipeline.comments.cache.lists import ListChange, ListName, RedisLists
from douban_pipeline.comments.event_handlers.state import PendingEvent
from douban_pipeline.comments.store import tables
from douban_pipeline.comments.store.comment_lists import CommentPlace, Order, list_replies, list_roots
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.core.database import chunks, reading

_TRIES = 3
_AT_ONCE = 20
_MOST_MISSED = 50_000
"""Maximum number of lists recorded as having missed an update. Beyond that Redis has been unavailable for so long that
they expire, or the next sweep replaces them."""


class ListFollower:
    """Updates the lists in Redis from the database; idempotent.

    Args:
        by_events: Whether events update lists; False where the binary log does, see `cache.binlog`.
    """

    def __init__(self, engine: Engine, lists: RedisLists, *, by_events: bool = True) -> None:
        self._engine, self._lists, self._by_events = engine, lists, by_events
        self._missed: set[ListName] = set()

    def follow(self, applied: Sequence[PendingEvent]) -> None:
        """Update the existing lists for comments that events touched."""
        sections: dict[int, set[int]] = {}
        for event in applied if self._by_events else ():
            if event.touched and not event.refusal:
                sections.setdefault(event.section_id, set()).update(event.touched)
        for section_id, touched in sections.items():
            self.follow_section(section_id, sorted(touched))

    def follow_section(self, section_id: int, touched: Sequence[int]) -> None:
        """Update the existing lists of a section for some of its comments."""
        changes: list[ListChange] = []
        gone: list[int] = []
        warm: list[tuple[int, int]] = []
        c, score = tables.comment.c, tables.score.c
        with reading(self._engine) as connection:
            # The serial first: data read after it is of that serial or later.
            serial = connection.execute(
                select(tables.section.c.event_seq).where(tables.section.c.section_id == section_id)
            ).scalar_one()
            for part in chunks(touched):
                query = (
                    select(c.comment_id, c.root_id, c.status, c.floor, c.like_count, score.heat)
                    .outerjoin(tables.score, score.comment_id == c.comment_id)
                    .where(c.comment_id.in_(part))
                )
                for row in connection.execute(query):
                    shown = row.status == CommentStatus.NORMAL
                    if not shown:
                        gone.append(row.comment_id)
                    keys = {Order.FLOOR: row.floor}
                    if not row.root_id:
                        keys |= {Order.NEW: row.floor, Order.LIKES: row.like_count}
                        if shown:
                            warm.append((row.heat or 0, row.comment_id))
                    for order, key in keys.items():
                        place = CommentPlace(key, row.comment_id) if shown else None
                        changes.append(ListChange(ListName(section_id, order, row.root_id), row.comment_id, place))
        missed: set[ListName] = set()
        if changes and not self._lists.follow(section_id, serial, changes):
            missed.update(change.name for change in changes)
        if changes and not self._lists.follow_heat(section_id, warm, gone):
            missed.add(ListName(section_id, Order.HEAT))
        if len(self._missed) < _MOST_MISSED:
            self._missed |= missed

    def work(self) -> int:
        """Rebuild requested lists, a few at a time; return their number.

        Lists that missed an update while Redis was unavailable are dropped first; otherwise they would stay incomplete
        until they expire.
        """
        missed = set(self._missed)
        if missed and self._lists.drop(missed):
            self._missed -= missed
        done = 0
        while done < _AT_ONCE and (name := self._lists.asked()) is not None:
            self.rebuild(name)
            done += 1
        return done

    def rebuild(self, name: ListName) -> bool:
        """Build a list from the database and publish it; return whether that succeeded.

        It is published only if the section has no newer serial; otherwise it is read again.
        """
        if self._lists.exists(name):
            return True
        for _ in range(_TRIES):
            with reading(self._engine) as connection:
                serial = connection.execute(
                    select(tables.section.c.event_seq).where(tables.section.c.section_id == name.section_id)
                ).scalar()
                if serial is None:
                    return False
                most = self._lists.most
                if name.root_id:
                    places = list_replies(connection, name.root_id, name.section_id, None, most)
                else:
                    places = list_roots(connection, name.section_id, name.order, None, most)
            done = self._lists.publish(name, serial, places, ended=len(places) < most)
            if done is not False:
                return bool(done)
        return False
