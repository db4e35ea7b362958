"""Making videos due whose verdict would be another, so that the next runs judge them again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import false, update

from douban_pipeline.core.database import transactions
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ReviewStatus

_CHUNK = 500


def make_due(services: Services, vod_ids: Sequence[int]) -> int:
    """Make those of ``vod_ids`` due that still wait for a link; return how many."""
    video, now = services.tables.video, services.clock.now()
    made = 0
    for start in range(0, len(vod_ids), _CHUNK):
        for transaction in transactions(services.engine):
            with transaction as connection:
                changed = connection.execute(
                    update(video)
                    .where(
                        video.c.vod_id.in_(vod_ids[start : start + _CHUNK]),
                        video.c.douban_review_status.in_((ReviewStatus.REVIEW, ReviewStatus.NOT_FOUND)),
                        video.c.douban_id_locked == false(),
                        video.c.douban_next_sync_at > now,
                    )
                    .values(douban_next_sync_at=now)
                )
        made += changed.rowcount
    return made
