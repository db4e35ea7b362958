"""Reading our state rows, and saying what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from douban_pipeline.catalog.tables import OwnTables
from douban_pipeline.catalog.tasks import shard_of


def state_rows(connection: Connection, tables: OwnTables, vod_ids: Iterable[int]) -> dict[int, RowMapping]:
    """Return our state rows of ``vod_ids`` that exist, by id."""
    video = tables.video
    rows = connection.execute(select(video).where(video.c.vod_id.in_(list(vod_ids)))).mappings()
    return {row["vod_id"]: row for row in rows}


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a video breaks: which video, and what is wrong, in Chinese."""

    vod_id: int
    what: str

    @property
    def shard(self) -> int:
        """The video's shard."""
        return shard_of(self.vod_id)
