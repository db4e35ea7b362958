"""Judging again what was not found while the search itself found nothing."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Table, case, func, select, update

from douban_pipeline.core.database import chunks, reading, run_statement
from douban_pipeline.core.gate_evidence import DoubtWindow
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.videos import OPENED_AGAIN, SEARCH_DOUBTED

SOONEST = timedelta(minutes=5)
LONGEST = timedelta(hours=12)
"""Visits are spread over so long at most, a minute a video: well within a day, and not all at once."""


@dataclass(frozen=True, slots=True)
class FalseMiss:
    """A video that was not found, by answers that prove nothing.

    Attributes:
        vod_id: The video.
        judged_at: When (UTC).
        visit_at: When it is visited again (UTC).
    """

    vod_id: int
    judged_at: datetime
    visit_at: datetime


def revisit_doubted(services: Services) -> list[FalseMiss]:
    """Visit again, within a day, what was not found by searches that were in doubt; each doubt once.

    A doubt that the first known title settled was none: nothing is visited again.
    """
    found: list[FalseMiss] = []
    for status in services.gate.status():
        for window in status.doubts:
            proven = window.end is not None or status.state is not GateState.CLOSED
            if proven and not window.revisited:
                found += revisit(services, window, sources={status.source}, dry_run=False)
                services.gate.mark_revisited(status.source, window.start)
    return found


def revisit(services: Services, window: DoubtWindow, *, sources: Collection[str], dry_run: bool) -> list[FalseMiss]:
    """Visit again what was not found in ``window`` and still is not; return it, the oldest verdict first.

    Args:
        services: Database and clock.
        window: When it was judged; an open one ends now.
        sources: Only verdicts based on an answer of one of these searches.
        dry_run: Change nothing.
    """
    now = services.clock.now()
    with reading(services.engine) as connection:
        judged = _not_found(connection, services, window, window.end or now, sources)
    span = min(LONGEST, timedelta(minutes=max(len(judged), 1)))
    missed = [FalseMiss(vod_id, at, now + SOONEST + span * _spread(vod_id)) for vod_id, at in judged]
    video = services.tables.video
    reason, visit = video.c.douban_review_reason, video.c.douban_next_sync_at
    for item in () if dry_run else missed:
        open_still = (video.c.vod_id == item.vod_id, video.c.douban_review_status == ReviewStatus.NOT_FOUND)
        again = (
            update(video)
            .where(*open_still)
            .values(
                # What made it open again since the verdict says more.
                douban_review_reason=case((reason.in_(sorted(OPENED_AGAIN)), reason), else_=SEARCH_DOUBTED),
                douban_next_sync_at=case((visit > item.visit_at, item.visit_at), else_=visit),
            )
        )
        run_statement(services.engine, again)
    return missed


def _not_found(
    connection: Connection, services: Services, window: DoubtWindow, end: datetime, sources: Collection[str]
) -> list[tuple[int, datetime]]:
    """Return the videos whose newest verdict is of the window, says that nothing was found, and used a source."""
    verdict, video, snapshot = services.tables.verdict, services.tables.video, services.tables.snapshot
    query = (
        select(verdict.c.verdict_id, verdict.c.vod_id, verdict.c.created_at, verdict.c.snapshots)
        .join(video, video.c.vod_id == verdict.c.vod_id)
        .where(
            verdict.c.created_at >= window.start,
            verdict.c.created_at <= end,
            verdict.c.verdict == ReviewStatus.NOT_FOUND,
            video.c.douban_review_status == ReviewStatus.NOT_FOUND,
            video.c.douban_next_sync_at.is_not(None),
        )
        .order_by(verdict.c.created_at, verdict.c.verdict_id)
    )
    rows = connection.execute(query).all()
    newest: dict[int, int] = {}
    answered: set[int] = set()
    for some in chunks(rows):
        latest = select(verdict.c.vod_id, func.max(verdict.c.verdict_id)).group_by(verdict.c.vod_id)
        newest.update(
            connection.execute(latest.where(verdict.c.vod_id.in_({row.vod_id for row in some}))).tuples().all()
        )
        answered |= _of_sources(connection, snapshot, {number for row in some for number in row.snapshots}, sources)
    return [
        (row.vod_id, row.created_at)
        for row in rows
        if newest[row.vod_id] == row.verdict_id and not answered.isdisjoint(row.snapshots)
    ]


def _of_sources(
    connection: Connection, snapshot: Table, snapshot_ids: Collection[int], sources: Collection[str]
) -> set[int]:
    """Return those of some answers that one of ``sources`` gave."""
    found: set[int] = set()
    for some in chunks(sorted(snapshot_ids)):
        given = select(snapshot.c.snapshot_id).where(snapshot.c.snapshot_id.in_(some), snapshot.c.source.in_(sources))
        found.update(connection.execute(given).scalars())
    return found


def _spread(vod_id: int) -> float:
    """Return a number from 0 to 1 that is the video's own."""
    return zlib.crc32(str(vod_id).encode()) / 0xFFFFFFFF
