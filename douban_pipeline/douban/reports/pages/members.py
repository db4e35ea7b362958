"""Reading what is to be told of the videos of a group: how they are linked, since when, how well they match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from douban_pipeline.cms.numbers import moment_of, year_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks
from douban_pipeline.douban.reports.pages.keepers import GroupMember, LinkOrigin
from douban_pipeline.douban.reports.pages.lookup import newest_verdicts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import LINKING
from douban_pipeline.douban.store.states import ChangeState, ReviewStatus
from douban_pipeline.douban.writes.changes import decode

_LINK = "link"
"""Action of a change that wrote an automatic link."""

_STANDINGS: Mapping[str, LinkOrigin] = {"person": LinkOrigin.PERSON, "auto": LinkOrigin.AUTO, "cms": LinkOrigin.CMS}


def members_of(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, GroupMember]:
    """Return the videos of ``vod_ids`` that exist, by id."""
    vod, video = services.cms.vod, services.tables.video
    found: dict[int, GroupMember] = {}
    for chunk in chunks(vod_ids):
        query = (
            select(vod.c.vod_id, vod.c.vod_name, vod.c.vod_year, vod.c.vod_hits, vod.c.vod_time_add)
            .add_columns(video.c.vod_douban_id, video.c.douban_review_status, video.c.douban_id_source)
            .add_columns(video.c.douban_id_locked, video.c.douban_id_confidence)
            .outerjoin(video, video.c.vod_id == vod.c.vod_id)
            .where(vod.c.vod_id.in_(chunk))
        )
        rows = connection.execute(query).mappings().all()
        linked = {row["vod_id"]: row["vod_douban_id"] for row in rows if row["vod_douban_id"]}
        scores = _scores(services, connection, linked)
        times = _link_times(services, connection, linked)
        for row in rows:
            found[row["vod_id"]] = _member(row, scores.get(row["vod_id"]), times.get(row["vod_id"]))
    return found


def _member(row: RowMapping, score: float | None, linked_at: datetime | None) -> GroupMember:
    standing = _standing_of(row)
    linked = standing is not LinkOrigin.NONE
    if standing is LinkOrigin.CMS and linked_at is None:
        linked_at = moment_of(row["vod_time_add"])
    confidence = row["douban_id_confidence"]
    return GroupMember(
        row["vod_id"],
        readable(row["vod_name"]),
        year_of(row["vod_year"]),
        row["vod_douban_id"] or 0,
        standing,
        (score if confidence is None else confidence) if linked else None,
        linked_at if linked else None,
        row["vod_hits"],
    )


def _standing_of(row: Mapping[Any, Any]) -> LinkOrigin:
    if not row["vod_douban_id"]:
        return LinkOrigin.NONE
    if row["douban_id_locked"]:
        return LinkOrigin.LOCKED
    if row["douban_review_status"] != ReviewStatus.CONFIRMED:
        return LinkOrigin.NONE
    return _STANDINGS.get(row["douban_id_source"], LinkOrigin.CMS)


def _scores(services: Services, connection: Connection, linked: Mapping[int, int]) -> dict[int, float]:
    """Return what the newest verdict of each video says of the subject that it is linked to."""
    candidate, newest = services.tables.candidate, newest_verdicts(services, list(linked))
    query = select(candidate.c.vod_id, candidate.c.douban_id, candidate.c.score).join(
        newest, newest.c.verdict_id == candidate.c.verdict_id
    )
    return {vod_id: score for vod_id, douban_id, score in connection.execute(query) if linked.get(vod_id) == douban_id}


def _link_times(services: Services, connection: Connection, linked: Mapping[int, int]) -> dict[int, datetime]:
    """Return when each video was last linked to the subject that it is linked to, as far as it was our doing."""
    log = services.tables.log
    query = (
        select(log.c.vod_id, log.c.new_values, log.c.applied_at)
        .where(
            log.c.vod_id.in_(list(linked)),
            log.c.action.in_([_LINK, *LINKING]),
            log.c.state == ChangeState.APPLIED,
        )
        .order_by(log.c.change_id)
    )
    return {
        vod_id: applied_at
        for vod_id, values, applied_at in connection.execute(query)
        if decode(values).get("vod_douban_id") == linked[vod_id]
    }
