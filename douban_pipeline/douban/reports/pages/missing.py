"""Live videos without a confirmed Douban id, the most valuable to the site's visitors first.

The value is `review.ordering.value_of`: how often a video was watched, and how recently the CMS changed it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from douban_pipeline.cms.numbers import moment_of, year_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.chain.due.conditions import in_scope
from douban_pipeline.douban.reports.pages.lookup import newest_verdicts
from douban_pipeline.douban.review.reading.ordering import value_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import ShownStatus, shown_status, shown_status_column
from douban_pipeline.douban.store.states import ReviewStatus

_SEARCHED = (ReviewStatus.NOT_FOUND, ReviewStatus.REVIEW)


@dataclass(frozen=True, slots=True)
class MissingVideoCandidate:
    """The best candidate of a video's newest verdict."""

    douban_id: int
    title: str
    year: int | None
    score: float


@dataclass(frozen=True, slots=True)
class MissingVideo:
    """A video without a confirmed id.

    Attributes:
        year: The year in its row.
        hits: How often it was watched.
        updated: When the CMS last changed it (UTC).
        reason: Why it has none, in Chinese.
        looked_at: When it was last visited (UTC).
        visit: When it is visited next (UTC).
        best: The best candidate, if there was any.
    """

    vod_id: int
    title: str
    year: int | None
    hits: int
    updated: datetime | None
    status: ShownStatus
    reason: str
    looked_at: datetime | None
    visit: datetime | None
    best: MissingVideoCandidate | None


@dataclass(frozen=True, slots=True)
class MissingIds:
    """Counts by status as people read it, and the first videos in order of value."""

    by_status: Mapping[ShownStatus, int]
    first: tuple[MissingVideo, ...]

    @property
    def count(self) -> int:
        """Number of videos without a confirmed id."""
        return sum(self.by_status.values())


def missing_ids(services: Services, *, most: int) -> MissingIds:
    """Return the videos without a confirmed id, the first ``most`` in full."""
    by_status: Counter[ShownStatus] = Counter()
    with reading(services.engine) as connection:
        waiting = _waiting(services, connection)
    vod_ids = []
    for vod_id, status in waiting:
        by_status[status] += 1
        vod_ids.append(vod_id)
    del waiting
    first = heapq.nsmallest(most, _places(services, sorted(vod_ids)))
    with reading(services.engine) as connection:
        details = _details(services, connection, [vod_id for _, vod_id in first])
    found = tuple(details[vod_id] for _, vod_id in first if vod_id in details)
    return MissingIds(dict(sorted(by_status.items())), found)


def _waiting(services: Services, connection: Connection) -> Sequence[tuple[int, ShownStatus]]:
    """Return the video id and the status of every live video in scope without a Douban id."""
    video = services.tables.video
    query = select(video.c.vod_id, shown_status_column(video)).where(
        video.c.douban_review_status.in_(_SEARCHED),
        video.c.douban_next_sync_at.is_not(None),
        video.c.vod_douban_id == 0,
        *in_scope(services.tables, services.settings),
    )
    return [(vod_id, ShownStatus(status)) for vod_id, status in connection.execute(query)]


def _places(services: Services, vod_ids: Sequence[int]) -> Iterator[tuple[float, int]]:
    """Yield the sort value of each video, read in chunks: a long read of `mac_vod` would block the site's writes."""
    vod, now = services.cms.vod, services.clock.now()
    for chunk in chunks(vod_ids):
        query = select(vod.c.vod_id, vod.c.vod_hits, vod.c.vod_time).where(vod.c.vod_id.in_(chunk))
        with reading(services.engine) as connection:
            for vod_id, hits, moment in connection.execute(query):
                yield -value_of(hits, moment_of(moment), now), vod_id


def _details(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, MissingVideo]:
    vod, video = services.cms.vod, services.tables.video
    found: dict[int, MissingVideo] = {}
    for chunk in chunks(vod_ids):
        best = _best(services, connection, chunk)
        query = (
            select(vod.c.vod_id, vod.c.vod_name, vod.c.vod_year, vod.c.vod_hits, vod.c.vod_time)
            .add_columns(video.c.douban_review_status, video.c.douban_review_reason)
            .add_columns(video.c.douban_last_sync_at, video.c.douban_next_sync_at)
            .join(video, video.c.vod_id == vod.c.vod_id)
            .where(vod.c.vod_id.in_(chunk))
        )
        for row in connection.execute(query):
            found[row.vod_id] = MissingVideo(
                row.vod_id,
                readable(row.vod_name),
                year_of(row.vod_year),
                row.vod_hits,
                moment_of(row.vod_time),
                shown_status(row._mapping),
                row.douban_review_reason,
                row.douban_last_sync_at,
                row.douban_next_sync_at,
                best.get(row.vod_id),
            )
    return found


def _best(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, MissingVideoCandidate]:
    candidate, newest = services.tables.candidate, newest_verdicts(services, vod_ids)
    query = (
        select(candidate.c.vod_id, candidate.c.douban_id, candidate.c.title, candidate.c.year, candidate.c.score)
        .join(newest, newest.c.verdict_id == candidate.c.verdict_id)
        .where(candidate.c.rank == 1)
    )
    return {row[0]: MissingVideoCandidate(*row[1:]) for row in connection.execute(query)}
