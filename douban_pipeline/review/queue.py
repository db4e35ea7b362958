"""What waits for a person, the most valuable and most doubtful first."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, or_, select

from douban_pipeline.catalog.database import reading
from douban_pipeline.catalog.states import ReviewStatus
from douban_pipeline.catalog.tasks import FAILURES_FOR_A_PERSON
from douban_pipeline.catalog.values import readable
from douban_pipeline.review.candidates import Candidate, newest_candidates
from douban_pipeline.services import Services


@dataclass(frozen=True, slots=True)
class Waiting:
    """A video that waits for a person, and the best candidates of its newest verdict."""

    vod_id: int
    title: str
    year: str
    hits: int
    douban_id: int
    reason: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """The queue: its whole length, by status, and the entries to look at first."""

    length: int
    by_status: dict[str, int]
    first: tuple[Waiting, ...]


def review_queue_of(services: Services, *, most: int, candidates: int = 5) -> ReviewQueue:
    """Return the queue with its ``most`` most pressing entries, each with up to ``candidates`` candidates."""
    video, vod = services.tables.video, services.cms.vod
    waiting = or_(
        video.c.douban_review_status == ReviewStatus.REVIEW,
        video.c.douban_sync_fail_count >= FAILURES_FOR_A_PERSON,
    )
    live = video.c.douban_next_sync_at.is_not(None)
    counts = select(video.c.douban_review_status, func.count()).where(waiting, live)
    query = (
        select(vod.c.vod_id, vod.c.vod_name, vod.c.vod_year, vod.c.vod_hits, video.c.vod_douban_id)
        .add_columns(video.c.douban_review_reason)
        .join(video, video.c.vod_id == vod.c.vod_id)
        .where(waiting, live)
        .order_by(vod.c.vod_hits.desc(), vod.c.vod_time.desc(), vod.c.vod_id)
        .limit(most)
    )
    with reading(services.engine) as connection:
        by_status = {row[0]: row[1] for row in connection.execute(counts.group_by(video.c.douban_review_status))}
        rows = connection.execute(query).mappings().all()
        found = newest_candidates(services, connection, [row["vod_id"] for row in rows], candidates)
    first = tuple(
        Waiting(
            row["vod_id"],
            readable(row["vod_name"]),
            readable(row["vod_year"]),
            row["vod_hits"],
            row["vod_douban_id"],
            row["douban_review_reason"],
            tuple(found.get(row["vod_id"], ())),
        )
        for row in rows
    )
    return ReviewQueue(sum(by_status.values()), by_status, first)
