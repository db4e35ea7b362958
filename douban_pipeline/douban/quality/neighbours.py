"""Other videos that were linked to a candidate when a verdict was reached: one subject seldom belongs to two videos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from douban_pipeline.cms.values import readable
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.writes.changes import decode


@dataclass(frozen=True, slots=True)
class LinkedVideos:
    """Videos that are linked to the candidates of a batch of verdicts.

    Attributes:
        owners: Videos by subject.
        titles: Titles of the videos that another video's verdict needs.
        since: When our write or a person made the link, by video; an id that came with the row has none.
    """

    owners: Mapping[int, Sequence[int]]
    titles: Mapping[int, str]
    since: Mapping[int, datetime]

    @classmethod
    def read(
        cls,
        services: Services,
        connection: Connection,
        verdicts: Iterable[Mapping[Any, Any]],
        candidates: Mapping[int, Sequence[Mapping[Any, Any]]],
    ) -> LinkedVideos:
        """Return the current links; titles and times are read only for links of other videos."""
        asked = {
            (row["vod_id"], each["douban_id"])
            for row in verdicts
            for each in candidates.get(row["verdict_id"], ())
            if each["fetched"]
        }
        video, log, vod = services.tables.video, services.tables.log, services.cms.vod
        query = select(video.c.vod_douban_id, video.c.vod_id).where(
            video.c.vod_douban_id.in_({subject for _, subject in asked})
        )
        owners: dict[int, list[int]] = {}
        for subject, vod_id in connection.execute(query.order_by(video.c.vod_id)):
            owners.setdefault(subject, []).append(vod_id)
        others = {other: subject for vod_id, subject in asked for other in owners.get(subject, ()) if other != vod_id}
        if not others:
            return cls(owners, {}, {})
        names = connection.execute(select(vod.c.vod_id, vod.c.vod_name).where(vod.c.vod_id.in_(others)))
        writes = select(log.c.vod_id, log.c.applied_at, log.c.new_values).where(
            log.c.vod_id.in_(others), log.c.state == ChangeState.APPLIED
        )
        since: dict[int, datetime] = {}
        for vod_id, applied_at, values in connection.execute(writes.order_by(log.c.change_id)):
            if decode(values).get("vod_douban_id") == others[vod_id]:
                since[vod_id] = applied_at
        return cls(owners, {vod_id: readable(name) for vod_id, name in names}, since)

    def of(self, verdict: Mapping[Any, Any], candidates: Iterable[Mapping[Any, Any]]) -> dict[int, list[str]]:
        """Return the titles of the other videos that were linked when ``verdict`` was reached, by subject."""
        if not self.titles:
            return {}
        found: dict[int, list[str]] = {}
        for each in candidates:
            for other in self.owners.get(each["douban_id"], ()) if each["fetched"] else ():
                linked_then = other not in self.since or self.since[other] <= verdict["created_at"]
                if other != verdict["vod_id"] and other in self.titles and linked_then:
                    found.setdefault(each["douban_id"], []).append(self.titles[other])
        return found
