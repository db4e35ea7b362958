"""Names and posters of videos, from the CMS's own table, for the rows that moderators see; the table is only read."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import BigInteger, Engine, String, TableClause, column, select, table

from douban_pipeline.cms.values import picture_address, unescape
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.pictures import KeptPictures, NoPicture, Picture

COLUMNS = ("vod_id", "vod_name", "vod_pic")
"""Columns that are read."""


def videos_table(prefix: str) -> TableClause:
    """Return the CMS's table of videos with the columns that are read."""
    return table(f"{prefix}vod", column("vod_id", BigInteger), *(column(name, String) for name in COLUMNS[1:]))


class Films:
    """Reads names and posters of videos. Safe to share between threads.

    Args:
        site: Address of the video site, for posters that it has itself; empty for none.
    """

    def __init__(self, engine: Engine, prefix: str, site: str, pictures: KeptPictures) -> None:
        self._engine, self._table = engine, videos_table(prefix)
        self._site, self._pictures = site, pictures

    def names(self, vod_ids: Collection[int]) -> dict[int, tuple[str, bool]]:
        """Return the name of each video, and whether it has a poster; deleted videos are missing."""
        c, found = self._table.c, {}
        with reading(self._engine) as connection:
            for part in chunks(sorted(vod_ids)):
                for row in connection.execute(select(self._table).where(c.vod_id.in_(part))):
                    found[row.vod_id] = (unescape(row.vod_name or ""), bool(self._address(row.vod_pic)))
        return found

    def poster(self, vod_id: int) -> Picture:
        """Return a video's poster.

        Raises:
            NoPicture: It has none, or none that can be fetched or shown.
        """
        with reading(self._engine) as connection:
            query = select(self._table.c.vod_pic).where(self._table.c.vod_id == vod_id)
            stored = connection.execute(query).scalar_one_or_none()
        if stored is None:
            raise NoPicture("没有这部影片")
        return self._pictures.at(self._address(stored))

    def _address(self, stored: str | None) -> str:
        return picture_address(stored or "", self._site)
