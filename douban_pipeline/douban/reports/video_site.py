"""Where a video's page on the site is, and where reports show its poster from.

A reader's browser asks nobody for a poster without leave: it is the site's own picture, or one that the service hands
on, or, with `DIRECT_POSTERS`, the picture wherever it lies.
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
    """The site as reports link to it; without addresses they link to nothing.

    Attributes:
        url: Its address, without a slash at the end.
        page: Path of a video's page, with ``{id}``.
        service: Address of the served review sheet, which hands posters on.
        direct: Whether browsers may load posters from where they are.
    """

    url: str = ""
    page: str = ""
    service: str = ""
    direct: bool = False

    @classmethod
    def of(cls, settings: Settings) -> VideoSite:
        """Return the site that the settings name."""
        return cls(settings.site_url.rstrip("/"), settings.site_page, settings.review_url, settings.direct_posters)

    @property
    def page_pattern(self) -> str:
        """Address of a video's page with ``{id}``; empty where the site is not known."""
        return self.url + self.page if self.url and self.page else ""

    def address(self, vod_id: int) -> str:
        """Return the address of a video's page, empty where the site is not known."""
        return self.page_pattern.replace("{id}", str(vod_id))

    @property
    def pictures(self) -> str:
        """What the addresses of all posters begin with; empty where they have nothing in common, or there are none."""
        if self.direct:
            return ""
        return f"{self.service.rstrip('/')}/picture/video/" if self.service else self.url and f"{self.url}/"

    def poster(self, vod_id: int, stored: str) -> str:
        """Return the address of a poster, empty for none; ``stored`` is as the CMS has it."""
        address = picture_address(stored, self.url)
        if self.direct or not address:
            return address
        if self.service:
            return f"{self.pictures}{vod_id}"
        return address if self.pictures and address.startswith(self.pictures) else ""

    @property
    def image_sources(self) -> str:
        """Where posters come from, as sources of a page's policy."""
        if self.direct:
            return "https: http:"
        parts = urlsplit(self.pictures)
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def posters_of(services: Services, connection: Connection, vod_ids: Collection[int]) -> dict[int, str]:
    """Return the address of each video's poster, empty for none; a video that the CMS has no more is left out."""
    vod, site = services.cms.vod, VideoSite.of(services.settings)
    found: dict[int, str] = {}
    for chunk in chunks(sorted(set(vod_ids))):
        rows = connection.execute(select(vod.c.vod_id, vod.c.vod_pic).where(vod.c.vod_id.in_(chunk)))
        found.update((vod_id, site.poster(vod_id, str(stored or ""))) for vod_id, stored in rows)
    return found
