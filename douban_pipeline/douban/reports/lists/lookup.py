"""Queries that several reports share: names, synopses and newest verdicts of given videos, some hundred at a time."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, Subquery, func, select

from douban_pipeline.cms.numbers import year_of
from douban_pipeline.cms.values import content_text, readable
from douban_pipeline.core.database import chunks
from douban_pipeline.douban.services import Services


def video_name(vod_id: int, title: str, year: int | None = None) -> str:
    """Return the name of a video in tables."""
    return f"{vod_id} {title}（{year}）" if year else f"{vod_id} {title}".rstrip()


def newest_verdicts(services: Services, vod_ids: Collection[int]) -> Subquery:
    """Return a subquery with the id of the newest verdict of each of ``vod_ids``."""
    verdict = services.tables.verdict
    newest = func.max(verdict.c.verdict_id).label("verdict_id")
    return select(newest).where(verdict.c.vod_id.in_(vod_ids)).group_by(verdict.c.vod_id).subquery()


class VideoNames(dict[int, str]):
    """Names of videos in tables, by id; a deleted video is named by its id."""

    def __missing__(self, vod_id: int) -> str:
        """Return the name of a deleted video."""
        return f"{vod_id}（已删除）"


def synopses_of(services: Services, connection: Connection, vod_ids: Collection[int]) -> dict[int, str]:
    """Return the CMS's synopses as plain text, by video; videos without one are left out."""
    vod = services.cms.vod
    found: dict[int, str] = {}
    for chunk in chunks(sorted(set(vod_ids))):
        query = select(vod.c.vod_id, vod.c.vod_content).where(vod.c.vod_id.in_(chunk))
        found.update({vod_id: text for vod_id, stored in connection.execute(query) if (text := content_text(stored))})
    return found


def names_of(services: Services, connection: Connection, vod_ids: Collection[int]) -> VideoNames:
    """Return the names of videos in tables."""
    vod = services.cms.vod
    names = VideoNames()
    for chunk in chunks(sorted(set(vod_ids))):
        query = select(vod.c.vod_id, vod.c.vod_name, vod.c.vod_year).where(vod.c.vod_id.in_(chunk))
        for vod_id, title, year in connection.execute(query):
            names[vod_id] = video_name(vod_id, readable(title), year_of(year))
    return names
