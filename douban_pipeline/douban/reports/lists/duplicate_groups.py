"""Likely duplicate videos: what is known of the members of a group, and the finder of groups by name.

They are only reported, never merged automatically. For the whole library only keys are held in memory, 17 bytes per
video; all else is read for the shown groups only.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select
from sqlalchemy.sql import ColumnElement

from douban_pipeline.cms.maccms import in_recycle_bin, recycled_condition
from douban_pipeline.cms.numbers import moment_of, year_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import chunks, reading
from douban_pipeline.douban.reports.lists.keepers import GroupMember, KeeperRule, LinkOrigin, keep_reason, ranked
from douban_pipeline.douban.reports.lists.lookup import newest_verdicts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import LINKING
from douban_pipeline.douban.store.states import BY_MATCH, BY_PEOPLE, ChangeState, IdSource, ReviewStatus
from douban_pipeline.douban.writes.changes import decode
from douban_pipeline.matching import Kind, parse_title
from douban_pipeline.matching.site_videos import kind_of_category

_KEY_COLUMNS = ("vod_name", "vod_year", "type_id", "vod_douban_id")
_READ = 5000
"""Rows of `mac_vod` read at once. The table is MyISAM: a long read blocks the site's writes of visitor counts."""


@dataclass(frozen=True, slots=True)
class TitleGroup:
    """A group of videos with equal name, number, year and kind.

    Attributes:
        name: What they share.
        members: The videos, the one to keep first.
        why: Why that one should be kept.
    """

    name: str
    members: tuple[GroupMember, ...]
    why: str

    @property
    def unlinked(self) -> tuple[GroupMember, ...]:
        """The others without a link; linked ones belong to a group by subject or are different works."""
        return tuple(member for member in self.members[1:] if member.origin is LinkOrigin.NONE)


def linked_conditions(services: Services) -> list[ColumnElement[bool]]:
    """Return the conditions that a live video has a confirmed id."""
    return [*sharing_conditions(services), ~recycled_condition(services.cms, services.tables.video.c.vod_id)]


def sharing_conditions(services: Services) -> list[ColumnElement[bool]]:
    """Return the conditions by which subjects that several videos may share are found: without the CMS's table.

    A video in the recycle bin that nobody has noticed yet meets them; see `linked_conditions`.
    """
    video = services.tables.video
    return [
        video.c.vod_douban_id > 0,
        # A doubtful id is no evidence that videos are duplicates.
        video.c.douban_review_status == ReviewStatus.CONFIRMED,
        video.c.douban_next_sync_at.is_not(None),
    ]


def shared_sizes(services: Services, connection: Connection, among: Sequence[int] = ()) -> dict[int, int]:
    """Return how many live videos share a subject, for each that several do; ``among`` names subjects, all by default.

    Two queries, not one inside the other: of that MariaDB 10.11 now and then returns nothing.
    """
    video, size, common = services.tables.video, func.count(), sharing_conditions(services)
    query = select(video.c.vod_douban_id, size).where(*common).group_by(video.c.vod_douban_id)
    found: dict[int, int] = {}
    for chunk in chunks(among) if among else [()]:
        within = [video.c.vod_douban_id.in_(chunk)] if chunk else []
        found.update(connection.execute(query.where(*within).having(size > 1)).tuples().all())
    recycled = query.where(recycled_condition(services.cms, video.c.vod_id))
    for chunk in chunks([*found]):
        for douban_id, count in connection.execute(recycled.where(video.c.vod_douban_id.in_(chunk))):
            found[douban_id] -= count
    return {douban_id: count for douban_id, count in found.items() if count > 1}


def title_groups(services: Services, groups: Sequence[Sequence[int]], *, most: int) -> list[TitleGroup]:
    """Return the first ``most`` groups of `equal_titles` in full, without videos that were deleted since."""
    with reading(services.engine) as connection:
        every = members_of(services, connection, [vod_id for group in groups[:most] for vod_id in group])
    found, rule = [], KeeperRule.best_match
    for group in groups[:most]:
        members = ranked([every[each] for each in group if each in every], rule)
        if len(members) > 1:
            why = keep_reason(members[0], members[1], rule, services.settings.zone)
            found.append(TitleGroup(_name_of(members[0]), tuple(members), why))
    return found


def equal_titles(services: Services) -> list[Sequence[int]]:
    """Return the ids of the videos with equal name, number, year and kind, the largest group first.

    It reads the whole library. Ignored videos are left out, since a person has seen them. So are groups whose videos
    are all linked: with one subject they are a group by subject, with several they are known to be different works.
    """
    ignored, doubtful = (_of_status(services, status) for status in (ReviewStatus.IGNORED, ReviewStatus.REVIEW))
    ids, keys, linked = array("q"), array("q"), array("b")
    kinds: dict[int, Kind | None] = {}
    columns = (*_KEY_COLUMNS, *(["vod_recycle_time"] if services.cms.has_recycle_bin else []))
    for rows in services.cms.stream(services.engine, columns, size=_READ):
        for row in rows:
            vod_id, type_id = row["vod_id"], row["type_id"]
            if in_recycle_bin(row) or vod_id in ignored:
                continue
            if type_id not in kinds:
                kinds[type_id] = kind_of_category(services.categories, type_id)
            title = parse_title(readable(row["vod_name"]))
            if not title.base:
                continue
            year = year_of(row["vod_year"]) or title.year
            # A collision of two 64-bit hashes is negligibly rare: about once in 10^9 libraries.
            keys.append(hash((title.form, title.number_kind, title.distinct_editions, year, kinds[type_id])))
            ids.append(vod_id)
            linked.append(row["vod_douban_id"] > 0 and vod_id not in doubtful)
    return sorted(_equal(ids, keys, linked), key=lambda vod_ids: (-len(vod_ids), vod_ids[0]))


def _equal(ids: array[int], keys: array[int], linked: array[int]) -> list[Sequence[int]]:
    """Return the groups of ids with equal keys, except groups in which all are linked."""
    import pandas  # takes a third of a second to load, so it is loaded only here

    table = pandas.DataFrame({"id": ids, "key": keys, "linked": linked})
    shared = table[table["key"].duplicated(keep=False)]
    groups = shared[~shared.groupby("key")["linked"].transform("all").astype(bool)].groupby("key", sort=False)
    return [members.tolist() for _, members in groups["id"]]


def _of_status(services: Services, status: ReviewStatus) -> frozenset[int]:
    video = services.tables.video
    with reading(services.engine) as connection:
        rows = connection.execute(select(video.c.vod_id).where(video.c.douban_review_status == status))
        return frozenset(rows.scalars())


def _name_of(member: GroupMember) -> str:
    title = parse_title(member.title)
    return f"{title.form} {member.year or title.year or ''}".strip()


_LINK = "link"
"""Action of a change that wrote an automatic link."""

_ORIGINS: Mapping[str, LinkOrigin] = {
    **dict.fromkeys(BY_PEOPLE, LinkOrigin.PERSON),
    **dict.fromkeys(BY_MATCH, LinkOrigin.AUTO),
    IdSource.CMS: LinkOrigin.CMS,
}


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
    origin = _origin_of(row)
    linked = origin is not LinkOrigin.NONE
    if origin is LinkOrigin.CMS and linked_at is None:
        linked_at = moment_of(row["vod_time_add"])
    confidence = row["douban_id_confidence"]
    return GroupMember(
        row["vod_id"],
        readable(row["vod_name"]),
        year_of(row["vod_year"]),
        row["vod_douban_id"] or 0,
        origin,
        (score if confidence is None else confidence) if linked else None,
        linked_at if linked else None,
        row["vod_hits"],
    )


def _origin_of(row: Mapping[Any, Any]) -> LinkOrigin:
    if not row["vod_douban_id"]:
        return LinkOrigin.NONE
    if row["douban_id_locked"]:
        return LinkOrigin.LOCKED
    if row["douban_review_status"] != ReviewStatus.CONFIRMED:
        return LinkOrigin.NONE
    return _ORIGINS.get(row["douban_id_source"], LinkOrigin.CMS)


def _scores(services: Services, connection: Connection, linked: Mapping[int, int]) -> dict[int, float]:
    """Return each video's score for its linked subject, from its newest verdict."""
    candidate, newest = services.tables.candidate, newest_verdicts(services, list(linked))
    query = select(candidate.c.vod_id, candidate.c.douban_id, candidate.c.score).join(
        newest, newest.c.verdict_id == candidate.c.verdict_id
    )
    return {vod_id: score for vod_id, douban_id, score in connection.execute(query) if linked.get(vod_id) == douban_id}


def _link_times(services: Services, connection: Connection, linked: Mapping[int, int]) -> dict[int, datetime]:
    """Return when each video was last linked to its current subject, for links that we wrote."""
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
