"""Posters for reviewers, through the service: the reviewer's browser contacts no third party."""

from __future__ import annotations

from sqlalchemy import select

from douban_pipeline.cms.values import picture_address
from douban_pipeline.core.database import reading
from douban_pipeline.core.pictures import KeptPictures, Picture
from douban_pipeline.douban.review.records.replacement import archived
from douban_pipeline.douban.review.worklist.queue import first_frame
from douban_pipeline.douban.services import Services


class Pictures:
    """Posters of videos and subjects. Safe to share between threads.

    Args:
        services: Database and archive with the addresses of posters, and settings with the folder HOME.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._kept = KeptPictures(services.settings.home, services.clock, services.settings.site_url)

    def of(self, kind: str, number: int) -> Picture:
        """Return the poster of a ``video`` or a ``subject``, or the first ``frame`` of a video's file.

        Raises:
            NoPicture: It has none, or none that can be fetched or shown.
        """
        return self._kept.at(self._address(kind, number))

    def _address(self, kind: str, number: int) -> str:
        site = self._services.settings.site_url
        if kind == "subject":
            record = archived(self._services, number)
            return picture_address(record.picture, "") if record else ""
        cms = self._services.cms
        column = {"video": cms.vod.c.vod_pic, "frame": cms.screenshots}.get(kind)
        if column is None:
            return ""
        query = select(column).select_from(cms.vod).where(cms.vod.c.vod_id == number)
        with reading(self._services.engine) as connection:
            stored = str(connection.execute(query).scalar_one_or_none() or "")
        return picture_address(first_frame(stored) if kind == "frame" else stored, site)
