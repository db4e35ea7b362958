"""Numbers of the home page: videos by state, what is due today, and what was done.

Each is one query by index, most of them read from the index alone, so that they are counted when the page is opened.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, func, or_, select, true

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.database import reading
from douban_pipeline.douban.chain.due.due_videos import in_scope
from douban_pipeline.douban.reports.health.metrics import due_count, open_tasks
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import ShownStatus, gone_condition, held_in_bulk_condition, status_counts
from douban_pipeline.douban.store.states import ChangeState, DecisionState, ReviewStatus, TaskStatus
from douban_pipeline.matching.codes import LABELS

UNWRITTEN_DAYS = 7
UNDECIDED = (ReviewStatus.NOT_FOUND, ReviewStatus.REVIEW)
_CONFLICTS = tuple(label for label in LABELS.values() if label.endswith("冲突"))
"""Labels with which a review reason's sentences begin where two known facts contradict each other."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of videos, tasks, decisions and writes.

    Attributes:
        total: Videos on the site.
        with_id: Videos with an id in the CMS.
        without_id: Videos without one.
        missing: Videos without one that are not ignored.
        unchecked: Videos that were never searched for, or must be searched for again.
        not_found: Videos for which a search found no subject.
        in_review: Videos that wait for a person.
        held: Videos whose id was cleared in the CMS with many others, which wait for one answer.
        ignored: Videos that are ignored.
        shared: Videos that share their id with other videos.
        conflicts: Videos that wait for a person, with a conflict of title, year, region, director or kind.
        unwritten: Writes of the last `UNWRITTEN_DAYS` days that were refused or in conflict with the CMS.
        locked_ids: Videos with a locked id.
        locked_intros: Videos with a locked synopsis.
        due_now: Videos in scope whose visit is due.
        due_today: Videos in scope whose visit is due before midnight in the site's time zone, including those due now.
        done_today: Tasks that succeeded since midnight.
        failed_today: Tasks that ended as failed since midnight: intros that the fact check refused twice.
        open_tasks: Tasks in the queue.
        decisions: Decisions that are not applied yet.
    """

    total: int
    with_id: int
    without_id: int
    missing: int
    unchecked: int
    not_found: int
    in_review: int
    held: int
    ignored: int
    shared: int
    conflicts: int
    unwritten: int
    locked_ids: int
    locked_intros: int
    due_now: int
    due_today: int
    done_today: int
    failed_today: int
    open_tasks: int
    decisions: int

    def counts(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)


def statistics(services: Services) -> Statistics:
    """Return the current numbers."""
    video, log = services.tables.video, services.tables.log
    now, zone = services.clock.now(), services.settings.zone
    today = day_of(now, zone).date
    start, end = midnight(today, zone), midnight(today + timedelta(days=1), zone)
    with reading(services.engine) as connection:

        def count(*conditions: ColumnElement[bool]) -> int:
            return int(connection.execute(select(func.count()).where(*conditions)).scalar_one())

        def live(*conditions: ColumnElement[bool]) -> int:
            # From an index, less those that were deleted in the CMS.
            return count(*conditions) - count(*conditions, gone)

        gone = gone_condition(services.tables, services.cms)
        statuses = status_counts(connection, services.tables, services.cms)
        held = statuses[ShownStatus.HELD]
        # Of those that wait for an answer the subject is known, and the CMS has none.
        with_id = live(video.c.vod_douban_id > 0) - held
        total = sum(statuses.values())
        finished = finished_tasks(services, connection, start)
        return Statistics(
            total=total,
            with_id=with_id,
            without_id=total - with_id,
            missing=held + live(video.c.douban_review_status.in_(UNDECIDED), video.c.vod_douban_id == 0),
            unchecked=statuses[ShownStatus.UNCHECKED],
            not_found=statuses[ShownStatus.NOT_FOUND],
            in_review=statuses[ShownStatus.REVIEW],
            held=held,
            ignored=statuses[ShownStatus.IGNORED],
            shared=_shared(services, connection, gone),
            conflicts=count(
                video.c.douban_review_status == ReviewStatus.REVIEW,
                video.c.douban_next_sync_at.is_not(None),
                or_(*(video.c.douban_review_reason.contains(f"{label}：", autoescape=True) for label in _CONFLICTS)),
            ),
            unwritten=count(
                log.c.state.in_((ChangeState.CONFLICT, ChangeState.REFUSED)),
                log.c.prepared_at >= now - timedelta(days=UNWRITTEN_DAYS),
            ),
            locked_ids=live(video.c.douban_id_locked == true()),
            locked_intros=live(video.c.intro_locked == true()),
            due_now=due_count(connection, services),
            due_today=count(video.c.douban_next_sync_at < end, *in_scope(services.tables, services.settings)),
            done_today=finished[TaskStatus.SUCCESS],
            failed_today=finished[TaskStatus.FAIL],
            open_tasks=sum(item.count for item in open_tasks(connection, services)),
            decisions=_decisions(services, connection),
        )


def _shared(services: Services, connection: Connection, gone: ColumnElement[bool]) -> int:
    video, size = services.tables.video, func.count().label("size")
    query = select(video.c.vod_douban_id, size).where(video.c.vod_douban_id > 0).group_by(video.c.vod_douban_id)
    shared = dict(connection.execute(query.having(size > 1)).tuples().all())
    deleted = dict(connection.execute(query.where(or_(gone, held_in_bulk_condition(video)))).tuples().all())
    sizes = (count - deleted.get(douban_id, 0) for douban_id, count in shared.items())
    return sum(count for count in sizes if count > 1)


def finished_tasks(services: Services, connection: Connection, since: datetime) -> Counter[str]:
    """Return how many tasks ended since a moment, by status."""
    task = services.tables.task
    query = select(task.c.status, func.count()).where(task.c.finished_at >= since).group_by(task.c.status)
    return Counter(dict(connection.execute(query).tuples().all()))


def _decisions(services: Services, connection: Connection) -> int:
    decision = services.tables.decision
    query = select(func.count()).where(decision.c.state.in_((DecisionState.PENDING, DecisionState.QUEUED)))
    return int(connection.execute(query).scalar_one())
