"""The status of a video as people read it: a video never searched for differs from one that was not found.

`mac_douban_video.douban_review_status` has the plan's four values, and NOT_FOUND is also where every video starts and
where one is put back to be searched for anew. Whoever shows, counts or filters statuses asks here.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, case, func, or_, select

from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.videos import OPENED_AGAIN


class ShownStatus(enum.StrEnum):
    """The status that people read, and name in filters."""

    UNCHECKED = "UNCHECKED"
    """No search for it counts: there was none yet, or something happened since that made it open again."""
    NOT_FOUND = "NOT_FOUND"
    """A search found no subject that fits."""
    REVIEW = "REVIEW"
    CONFIRMED = "CONFIRMED"
    IGNORED = "IGNORED"


def shown_status(state: Mapping[Any, Any]) -> ShownStatus:
    """Return the status of a video; ``state`` holds at least status, reason and `douban_last_sync_at` of its row."""
    status = ShownStatus(state["douban_review_status"])
    never = state["douban_last_sync_at"] is None or state["douban_review_reason"] in OPENED_AGAIN
    return ShownStatus.UNCHECKED if status is ShownStatus.NOT_FOUND and never else status


def shown_status_column(video: Table) -> ColumnElement[str]:
    """Return `shown_status` as an expression over our state table."""
    unchecked = and_(video.c.douban_review_status == ReviewStatus.NOT_FOUND, _never_checked(video))
    return case((unchecked, ShownStatus.UNCHECKED.value), else_=video.c.douban_review_status)


def status_condition(video: Table, statuses: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that a video has one of ``statuses``, as people read them; found by the status's index."""
    status = video.c.douban_review_status
    stored = {ReviewStatus.NOT_FOUND if each == ShownStatus.UNCHECKED else each for each in statuses}
    wanted = status.in_(sorted(stored))
    told_apart = {ShownStatus.UNCHECKED, ShownStatus.NOT_FOUND} & set(statuses)
    if len(told_apart) != 1:
        return wanted
    never = _never_checked(video)
    return and_(wanted, or_(status != ReviewStatus.NOT_FOUND, never if ShownStatus.UNCHECKED in told_apart else ~never))


def status_counts(connection: Connection, tables: OwnTables) -> dict[ShownStatus, int]:
    """Return how many live videos have each status; one that was deleted in the CMS has no next visit."""
    video = tables.video
    live = video.c.douban_next_sync_at.is_not(None)
    # From the index alone; only what is open has to be looked at.
    query = select(video.c.douban_review_status, func.count()).where(live).group_by(video.c.douban_review_status)
    found = dict.fromkeys(ShownStatus, 0) | {
        ShownStatus(status): count for status, count in connection.execute(query).tuples()
    }
    unchecked = select(func.count()).where(live, status_condition(video, [ShownStatus.UNCHECKED]))
    found[ShownStatus.UNCHECKED] = connection.execute(unchecked).scalar_one()
    found[ShownStatus.NOT_FOUND] -= found[ShownStatus.UNCHECKED]
    return found


def _never_checked(video: Table) -> ColumnElement[bool]:
    return or_(video.c.douban_last_sync_at.is_(None), video.c.douban_review_reason.in_(sorted(OPENED_AGAIN)))
