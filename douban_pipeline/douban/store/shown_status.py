"""The status of a video as people read it: a video never searched for differs from one that was not found.

`mac_douban_video.douban_review_status` has the plan's four values, and NOT_FOUND is also where every video starts and
where one is put back to be searched for anew. Whoever shows, counts or filters statuses asks here.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, case, func, or_, select

from douban_pipeline.cms.maccms import Cms, live_condition
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.videos import CLEARED_IN_BULK, OPENED_AGAIN


class ShownStatus(enum.StrEnum):
    """The status that people read, and name in filters."""

    UNCHECKED = "UNCHECKED"
    """No search for it counts: there was none yet, or something happened since that made it open again."""
    NOT_FOUND = "NOT_FOUND"
    """A search found no subject that fits."""
    REVIEW = "REVIEW"
    CONFIRMED = "CONFIRMED"
    HELD = "HELD"
    """Its id was cleared in the CMS with many others: it waits for one answer about all of them."""
    IGNORED = "IGNORED"


_STORED: Mapping[str, ShownStatus] = {
    ShownStatus.UNCHECKED: ShownStatus.NOT_FOUND,
    ShownStatus.HELD: ShownStatus.REVIEW,
}
"""Statuses that the table does not tell from another, and that one."""


def shown_status(state: Mapping[Any, Any]) -> ShownStatus:
    """Return the status of a video; ``state`` holds at least status, reason and `douban_last_sync_at` of its row."""
    status = ShownStatus(state["douban_review_status"])
    if status is ShownStatus.REVIEW and state["douban_review_reason"] == CLEARED_IN_BULK:
        return ShownStatus.HELD
    never = state["douban_last_sync_at"] is None or state["douban_review_reason"] in OPENED_AGAIN
    return ShownStatus.UNCHECKED if status is ShownStatus.NOT_FOUND and never else status


def shown_status_column(video: Table) -> ColumnElement[str]:
    """Return `shown_status` as an expression over our state table."""
    unchecked = and_(video.c.douban_review_status == ReviewStatus.NOT_FOUND, _never_checked(video))
    held = held_in_bulk_condition(video)
    return case(
        (unchecked, ShownStatus.UNCHECKED.value), (held, ShownStatus.HELD.value), else_=video.c.douban_review_status
    )


def status_condition(video: Table, statuses: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that a video has one of ``statuses``, as people read them; found by the status's index."""
    chosen = set(statuses)
    stored = {str(_STORED.get(each, each)) for each in chosen}
    wanted = video.c.douban_review_status.in_(sorted(stored))
    # What a row says beside its status is looked up only where it matters.
    split = any((part in chosen) != (whole in chosen) for part, whole in _STORED.items())
    return and_(wanted, shown_status_column(video).in_(sorted(chosen))) if split else wanted


def held_in_bulk_condition(video: Table) -> ColumnElement[bool]:
    """Return the condition that a video waits for an answer about ids that were cleared in the CMS in bulk."""
    status = video.c.douban_review_status == ReviewStatus.REVIEW
    return and_(status, video.c.douban_review_reason == CLEARED_IN_BULK)


def gone_condition(tables: OwnTables, cms: Cms) -> ColumnElement[bool]:
    """Return the condition that a video was deleted in the CMS, or lies in its recycle bin.

    Such a video has no next visit; neither have ignored ones and those that wait for an answer, so that it is asked for
    by its key in the CMS. A scalar subquery, for MariaDB reads the whole table for an ``EXISTS``.
    """
    video, vod = tables.video, cms.vod
    in_cms = select(vod.c.vod_id).where(vod.c.vod_id == video.c.vod_id, live_condition(cms)).correlate(video)
    return and_(video.c.douban_next_sync_at.is_(None), in_cms.scalar_subquery().is_(None))


def status_counts(connection: Connection, tables: OwnTables, cms: Cms) -> dict[ShownStatus, int]:
    """Return how many videos of the CMS have each status."""
    status, size = tables.video.c.douban_review_status, func.count()
    gone = gone_condition(tables, cms)

    def counted(query: Select[tuple[str, int]]) -> dict[str, int]:
        return dict(connection.execute(query.group_by(status)).tuples().all())

    # From an index alone, less those that have to be looked up.
    every = select(status, size)
    deleted = counted(every.where(gone))
    found = dict.fromkeys(ShownStatus, 0) | {
        ShownStatus(name): count - deleted.get(name, 0) for name, count in counted(every).items()
    }
    for name, whole in _STORED.items():
        part = ShownStatus(name)
        of_part = select(size).where(status_condition(tables.video, [part]))
        found[part] = connection.execute(of_part).scalar_one() - connection.execute(of_part.where(gone)).scalar_one()
        found[whole] -= found[part]
    return found


def _never_checked(video: Table) -> ColumnElement[bool]:
    return or_(video.c.douban_last_sync_at.is_(None), video.c.douban_review_reason.in_(sorted(OPENED_AGAIN)))
