"""A library's own tables of links and subjects, as the system douban leaves them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, update

from douban_pipeline.core.database import open_engine, upsert
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import own_tables

PREFIX = "mac_"


class LinkedLibrary:
    """Links of videos in a database that has the tables of the system douban, and nothing else."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = open_engine(url)
        migrations.tree_of(PREFIX).upgrade(self.engine)
        self._tables = own_tables(PREFIX)

    def sync(self, at: datetime, *links: tuple[int, int, str], status: str = "CONFIRMED") -> None:
        """Write videos as synced at a moment: video, subject, and what Douban calls it (empty: not recorded)."""
        video, subject = self._tables.video, self._tables.subject
        with self.engine.begin() as connection:
            for vod_id, douban_id, title in links:
                if title:
                    row = {"douban_id": douban_id, "title": title, "changed_at": at}
                    upsert(connection, subject, [row], keys=("douban_id",), changes=("title", "changed_at"))
                connection.execute(delete(video).where(video.c.vod_id == vod_id))
                state = {"vod_id": vod_id, "shard": vod_id % 64, "vod_douban_id": douban_id}
                state |= {"douban_review_status": status, "douban_last_sync_at": at}
                connection.execute(insert(video).values(state))

    def withdraw(self, *vod_ids: int) -> None:
        """Take the ids of videos away, as a person's decision does: without a sync."""
        video = self._tables.video
        with self.engine.begin() as connection:
            changed = update(video).where(video.c.vod_id.in_(vod_ids))
            connection.execute(changed.values(vod_douban_id=0, douban_review_status="NOT_FOUND"))

    def close(self) -> None:
        self.engine.dispose()
