"""Addresses of a video's page on the site and of its poster in reports.

A reader's browser does not contact third parties by default: a poster is the site's own picture, or is served by the
review service.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from sqlalchemy import Connection, select

from douban_pipeline.cms.values import picture_address
from douban_pipeline.core.database import chunks
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings


@dataclass(frozen=True, slots=True)
class VideoSite:
    """The video site for links in reports; without addresses there are no links.

    Attributes:
        url: Its address, without a slash at the end.
        page: Path of a video's page, with ``{id}``.
        service: Address of the review service, which serves posters.
    """

    url: str = ""
    page: str = ""
    service: str = ""

    @classmethod
    def of(cls, settings: Settings) -> VideoSite:
        """Return the site from the settings."""
        return cls(settings.site_url.rstrip("/"), settings.site_page, settings.review_url)

    @property
    def page_pattern(self) -> str:
        """Address of a video's page with ``{id}``; empty if the site is not known."""
        return self.url + self.page if self.url and self.page else ""

    def address(self, vod_id: int) -> str:
        """Return the address of a video's page, empty if the site is not known."""
        return self.page_pattern.replace("{id}", str(vod_id))

    @property
    def pictures(self) -> str:
        """Common prefix of the addresses of all posters; empty if they have none in common, or there are none."""
        return f"{self.service.rstrip('/')}/picture/video/" if self.service else self.url and f"{self.url}/"

    def poster(self, vod_id: int, stored: str) -> str:
        """Return the address of a poster, empty for none; ``stored`` is the CMS's value."""
        address = picture_address(stored, self.url)
        if not address:
            return ""
        if self.service:
            return f"{self.pictures}{vod_id}"
        return address if self.pictures and address.startswith(self.pictures) else ""

    @property
    def image_sources(self) -> str:
        """Sources of posters, for a page's content security policy."""
        parts = urlsplit(self.pictures)
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def posters_of(services: Services, connection: Connection, vod_ids: Collection[int]) -> dict[int, str]:
    """Return the address of each video's poster, empty for none; deleted videos are left out."""
    vod, site = services.cms.vod, VideoSite.of(services.settings)
    found: dict[int, str] = {}
    for chunk in chunks(sorted(set(vod_ids))):
        rows = connection.execute(select(vod.c.vod_id, vod.c.vod_pic).where(vod.c.vod_id.in_(chunk)))
        found.update((vod_id, site.poster(vod_id, str(stored or ""))) for vod_id, stored in rows)
    return found
