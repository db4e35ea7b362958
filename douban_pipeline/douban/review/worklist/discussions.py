"""Numbers of visitors' comments on videos, from the tables of the comments system."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import BigInteger, Integer, column, select, table
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.column_types import UtcDateTime
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import variable

HOT_FOR = timedelta(days=7)
"""A section is hot if there was activity in it within this time."""
MOST = 5_000
"""Most hot sections that are read at once, the latest first."""
_VIDEO = 1
"""The CMS's number for sections that belong to videos."""

section = table(
    "cmt_section",
    column("type", Integer),
    column("object_id", BigInteger),
    column("visible_count", Integer),
    column("active_at", UtcDateTime),
)
"""The columns of the comments system's table that are read."""

_log = logging.getLogger(__name__)


def hot_comments(services: Services, vod_ids: Collection[int] | None = None) -> dict[int, int]:
    """Return the number of visible comments by video, of videos whose section is hot; only ``vod_ids`` if given.

    The review queue works without the comments: if their database cannot be read, a warning is logged and no video
    counts as discussed.
    """
    settings = services.settings
    if "comments" not in settings.systems:
        return {}
    url, name = settings.comments_tables_url, variable("comments_url")
    try:
        engine = services.others.engine_with(section, url, setting=name)
        if engine is None:
            return {}
        hot = (section.c.type == _VIDEO, section.c.active_at >= services.clock.now() - HOT_FOR)
        query = select(section.c.object_id, section.c.visible_count).where(*hot)
        queries = [query.order_by(section.c.active_at.desc()).limit(MOST)]
        if vod_ids is not None:
            queries = [query.where(section.c.object_id.in_(some)) for some in chunks(sorted(vod_ids))]
        with reading(engine) as connection:
            return {vod_id: count for each in queries for vod_id, count in connection.execute(each)}
    except (DatabaseError, SQLAlchemyError) as error:
        reason = getattr(error, "orig", None) or error
        _log.warning("the review queue is ordered without the comments, which cannot be read (%s): %s", name, reason)
        return {}
