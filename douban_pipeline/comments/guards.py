"""Invariants of comments: predicates over the database and the lists, each of which yields its violations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from sqlalchemy import Connection, and_, func, select

from douban_pipeline.comments.cache.lists import ListName, RedisLists
from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.store.comment_lists import Order, shown_ids
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.events import oldest_pending
from douban_pipeline.comments.store.tables import comment, event, moderation, score, section
from douban_pipeline.comments.types import IMPORTED, EventState, Rank
from douban_pipeline.core.clock import Clock

VISIBLE_WITHIN = timedelta(seconds=2)
"""Time within which a comment has to be visible, according to the plan."""
LONGEST_WAIT = timedelta(seconds=30)
"""Waiting time of an event after which no worker is assumed to be running."""
SETTLED = timedelta(minutes=1)
"""Time within which a change has to have reached every list."""
SECTIONS = 20
"""Number of sections that a check recounts, most recently active ones first."""
PAGE = 100
"""Number of places of a list that are compared."""
MEASURED = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CommentBreach:
    """One violation of an invariant.

    Attributes:
        section_id: Id of the section; 0 for none in particular.
    """

    section_id: int
    what: str


def latest_sections(connection: Connection, most: int = SECTIONS) -> list[int]:
    """Return the most recently active sections."""
    query = select(section.c.section_id).order_by(section.c.active_at.desc(), section.c.section_id).limit(most)
    return list(connection.execute(query).scalars())


def miscounted(connection: Connection) -> Iterator[CommentBreach]:
    """Yield counters that differ from their rows, in the latest sections without pending events."""
    waiting = select(event.c.section_id).where(event.c.state == EventState.PENDING).distinct()
    busy = set(connection.execute(waiting).scalars())
    for section_id in latest_sections(connection):
        if section_id not in busy:
            for what in count_differences(connection, section_id):
                yield CommentBreach(section_id, what)


def hidden_in_lists(
    connection: Connection, heat: HeatLists | None, lists: RedisLists | None, clock: Clock
) -> Iterator[CommentBreach]:
    """Yield comments that are still among the first of a list long after they were hidden."""
    settled = clock.now() - SETTLED
    for section_id in latest_sections(connection):
        for name, listed in _first_of_lists(section_id, heat, lists).items():
            hidden = listed - shown_ids(connection, listed)
            late = select(comment.c.comment_id).where(comment.c.comment_id.in_(hidden), comment.c.updated_at < settled)
            for number in sorted(connection.execute(late).scalars()) if hidden else ():
                yield CommentBreach(section_id, f"评论 {number} 已隐藏，却仍在列表 {name} 中")


def _first_of_lists(section_id: int, heat: HeatLists | None, lists: RedisLists | None) -> dict[str, set[int]]:
    """Return the first comments of a section's lists, by name of the list; empty and missing lists are left out."""
    found: dict[str, set[int]] = {}
    if heat is not None:
        found["heat"] = {number for _, number in heat.page(section_id, None, PAGE) or ()}
    if lists is not None:
        for order in (Order.NEW, Order.LIKES):
            page = lists.page(ListName(section_id, order), None, PAGE)
            found[order.value] = {place.comment_id for place in page.places} if page is not None else set()
    return {name: listed for name, listed in found.items() if listed}


def differing_lists(connection: Connection, lists: HeatLists | None) -> Iterator[CommentBreach]:
    """Yield lists that are not sorted, or whose first comments have a different heat in the tables."""
    if lists is None:
        return
    for section_id in latest_sections(connection):
        page = lists.page(section_id, None, PAGE) or []
        if any(later >= earlier for earlier, later in pairwise(page)):
            yield CommentBreach(section_id, "热度列表的次序有误")
        stored = _heat(connection, [number for _, number in page])
        wrong = [number for heat, number in page if stored.get(number) != heat]
        if wrong:
            yield CommentBreach(section_id, f"热度列表中 {len(wrong)} 条的热度与数据库不同，如评论 {wrong[0]}")


def _heat(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    query = select(score.c.comment_id, score.c.heat).where(score.c.comment_id.in_(ids))
    return {row.comment_id: row.heat for row in connection.execute(query)}


def late_events(connection: Connection, clock: Clock) -> Iterator[CommentBreach]:
    """Yield violations where events wait too long for a worker, or took too long to be applied."""
    since = oldest_pending(connection)
    if since is not None and clock.now() - since > LONGEST_WAIT:
        waited = (clock.now() - since).total_seconds()
        yield CommentBreach(0, f"最早的事件已等待 {waited:.0f} 秒；请查看 comment-worker 是否在运行")
    waits = waits_of_events(connection, clock)
    if waits:
        slow = waits[int(0.95 * (len(waits) - 1))]
        if slow > VISIBLE_WITHIN.total_seconds():
            yield CommentBreach(0, f"近一小时 5% 的事件超过 {slow:.1f} 秒才生效，目标 {VISIBLE_WITHIN.seconds} 秒")


def waits_of_events(connection: Connection, clock: Clock, most: int = 10_000) -> list[float]:
    """Return the seconds that events of the last hour took to be applied, ascending; of the ``most`` latest events.

    Imported comments are left out: they come in thousands, and nobody waits for them.
    """
    query = select(event.c.created_at, event.c.applied_at, event.c.request_key)
    query = query.order_by(event.c.event_id.desc()).limit(most)
    since = clock.now() - MEASURED
    return sorted(
        (row.applied_at - row.created_at).total_seconds()
        for row in connection.execute(query)
        if row.applied_at is not None and row.created_at > since and not row.request_key.startswith(IMPORTED)
    )


def overturned_audits(connection: Connection) -> Iterator[CommentBreach]:
    """Yield comments whose status differs from the last audit decision on them."""
    last = (
        select(moderation.c.comment_id, func.max(moderation.c.moderation_id).label("last"))
        .where(moderation.c.new_rank == Rank.AUDIT, ~moderation.c.undone)
        .group_by(moderation.c.comment_id)
        .subquery()
    )
    query = (
        select(comment.c.comment_id, comment.c.section_id, comment.c.status, moderation.c.new_status)
        .join(last, last.c.comment_id == comment.c.comment_id)
        .join(moderation, moderation.c.moderation_id == last.c.last)
        .where(and_(comment.c.status != moderation.c.new_status))
        .order_by(comment.c.comment_id)
    )
    for row in connection.execute(query):
        what = f"评论 {row.comment_id} 的状态是 {row.status}，审核定为 {row.new_status}"
        yield CommentBreach(row.section_id, what)
