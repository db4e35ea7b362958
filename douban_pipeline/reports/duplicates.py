"""Videos that may be one: by subject, and by name. Reported only; a duplicate is never merged by the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from douban_pipeline.catalog.database import reading
from douban_pipeline.catalog.maccms import live_condition
from douban_pipeline.catalog.numbers import year_of
from douban_pipeline.catalog.states import ReviewStatus
from douban_pipeline.catalog.values import readable
from douban_pipeline.linking.facts import kind_of_category
from douban_pipeline.matching import parse_title
from douban_pipeline.services import Services

_COLUMNS = ("vod_name", "vod_year", "type_id", "vod_hits", "vod_time", "vod_douban_id")


@dataclass(frozen=True, slots=True)
class Member:
    """A video of a group."""

    vod_id: int
    title: str
    year: int | None
    douban_id: int
    hits: int
    vod_time: int


@dataclass(frozen=True, slots=True)
class Group:
    """Videos that may be one, and the one most worth keeping: linked, then most watched, then earliest.

    Attributes:
        by: ``subject`` (they carry one Douban id) or ``title`` (equal name, number, year and kind).
        key: The id or the name they share.
        members: The videos, the one to keep first.
    """

    by: str
    key: str
    members: tuple[Member, ...]


def duplicate_groups(services: Services) -> list[Group]:
    """Return all groups of two and more, the largest first; the recycle bin does not count."""
    return sorted(
        [*_by_subject(services), *_by_title(services)], key=lambda group: (-len(group.members), group.by, group.key)
    )


def _by_subject(services: Services) -> Iterable[Group]:
    video = services.tables.video
    query = (
        select(video.c.vod_douban_id)
        .where(
            video.c.vod_douban_id > 0,
            # An id that is in doubt says nothing of who shares it.
            video.c.douban_review_status == ReviewStatus.CONFIRMED,
            video.c.douban_next_sync_at.is_not(None),
        )
        .group_by(video.c.vod_douban_id)
        .having(func.count() > 1)
    )
    with reading(services.engine) as connection:
        shared = list(connection.execute(query).scalars())
        ids: dict[int, list[int]] = {}
        for start in range(0, len(shared), 500):
            members = select(video.c.vod_douban_id, video.c.vod_id).where(
                video.c.vod_douban_id.in_(shared[start : start + 500]),
                video.c.douban_review_status == ReviewStatus.CONFIRMED,
            )
            for douban_id, vod_id in connection.execute(members):
                ids.setdefault(douban_id, []).append(vod_id)
        for douban_id, vod_ids in ids.items():
            rows = services.cms.rows(connection, vod_ids)
            yield _group("subject", str(douban_id), [_member(row) for row in rows.values()])


def _by_title(services: Services) -> Iterable[Group]:
    groups: dict[tuple[object, ...], list[Member]] = {}
    vod = services.cms.vod
    query = select(*(vod.c[name] for name in ("vod_id", *_COLUMNS))).where(live_condition(services.cms))
    with reading(services.engine) as connection:
        rows = connection.execution_options(yield_per=2000).execute(query).mappings()
        for row in rows:
            title = parse_title(readable(row["vod_name"]))
            kind = kind_of_category(services.categories, row["type_id"])
            year = year_of(row["vod_year"]) or title.year
            same = (title.form, title.number_kind, title.distinct_editions, year, kind)
            groups.setdefault(same, []).append(_member(row))
    for key, members in groups.items():
        ids = {member.douban_id for member in members if member.douban_id}
        # One subject: the group by subject says it already. Several subjects: known to be different works.
        if len(members) > 1 and not (ids and all(member.douban_id for member in members)):
            yield _group("title", f"{key[0]} {key[3] or ''}".strip(), members)


def _member(row: Mapping[Any, Any]) -> Member:
    return Member(
        row["vod_id"],
        readable(row["vod_name"]),
        year_of(row["vod_year"]),
        row["vod_douban_id"],
        row["vod_hits"],
        row["vod_time"],
    )


def _group(by: str, key: str, members: list[Member]) -> Group:
    members.sort(key=lambda member: (not member.douban_id, -member.hits, member.vod_id))
    return Group(by, key, tuple(members))
