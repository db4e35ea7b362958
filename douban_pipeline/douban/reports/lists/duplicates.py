"""The list of videos that share a subject: one row per video, the rows of a group together, the one to keep first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, cast, func, select
from sqlalchemy.types import BigInteger

from douban_pipeline.core.database import chunks
from douban_pipeline.core.ui.lists.list_page import ColumnKind, ListColumn, ListPage, Row
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.keyset import ListRows
from douban_pipeline.douban.reports.lists.named_list import FIRST, NamedList, batch_link, decide, link_of
from douban_pipeline.douban.reports.lists.videos import (
    ACTIONS,
    CATEGORY,
    LABEL,
    NAME,
    NUMBER,
    PICTURE,
    TIME,
    VOD_ID,
    category_names,
    known_of,
    named,
)
from douban_pipeline.douban.reports.pages.duplicates import linked_conditions, members_of, sharing_conditions
from douban_pipeline.douban.reports.pages.duplicates_report import ORIGINS
from douban_pipeline.douban.reports.pages.keepers import Keeper, ranked
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionAction

_SIZE_FIRST = 100_000_000_000
"""More than any subject's id: ordered by size times this plus the id, groups come largest first and undivided."""


def duplicates_list(services: Services, keeper: Keeper = Keeper.best_match) -> NamedList:
    """Return the list of videos that share their confirmed id with other videos."""
    video, vod, location = services.tables.video, services.cms.vod, services.location
    categories, site = category_names(services), VideoSite.of(services.settings)
    size = func.count().label("size")
    shared = (
        select(video.c.vod_douban_id.label("shared_id"), size)
        .where(*sharing_conditions(services))
        .group_by(video.c.vod_douban_id)
        .having(size > 1)
        .subquery("shared")
    )
    table = video.join(shared, shared.c.shared_id == video.c.vod_douban_id)
    columns = (
        NAME,
        PICTURE,
        VOD_ID,
        ListColumn("year", "年份", width="narrow"),
        CATEGORY,
        ListColumn("douban_id", "共同的 ID", ColumnKind.SUBJECT),
        ListColumn("size", "组内部数", NUMBER),
        ListColumn("advice", "建议", LABEL),
        ListColumn("source", "来源", LABEL),
        ListColumn("score", "得分", NUMBER),
        ListColumn("since", "关联时间", TIME),
        ListColumn("hits", "播放", NUMBER),
        ListColumn("updated", "CMS 更新", TIME),
        ACTIONS,
    )
    # Members of a large group are read in several batches; their order is determined once.
    held: dict[int, Mapping[int, Row]] = {}

    def read(connection: Connection, vod_ids: Sequence[int]) -> Mapping[int, Row]:
        rows = known_of(services, connection, vod_ids)
        subjects = {row["vod_douban_id"] for row in rows.values()}
        for gone in held.keys() - subjects:
            del held[gone]
        for douban_id, members in _groups(services, connection, sorted(subjects - held.keys())).items():
            # One whose others lie in the recycle bin is no duplicate.
            held[douban_id] = _advised(services, connection, members, keeper) if len(members) > 1 else {}
        found = {}
        for vod_id, row in rows.items():
            cells = held.get(row["vod_douban_id"], {}).get(vod_id)
            if cells is not None:
                found[vod_id] = {**named(row, categories, site), "douban_id": row["vod_douban_id"], **cells}
        return found

    page = ListPage(
        "list_duplicates",
        "豆瓣 ID 重复",
        "同一条目被多部影片使用。确为重复时清除其他影片的 ID；片名明显不同时，多半是 ID 写错了。"
        "程序从不合并或删除影片。",
        columns,
        key="douban_id",
        video="vod_id",
        time="updated",
        links={
            "clear": decide("清除", location, DecisionAction.clear_id),
            "lock": decide("锁定", location, DecisionAction.lock_id),
            "history": link_of("历史", links.history(FIRST), location),
        },
        batch=(batch_link("处理这些组", links.settle_duplicates, location),),
        order="大的组在前",
    )
    by_size = (cast(shared.c.size, BigInteger) * _SIZE_FIRST) + video.c.vod_douban_id
    rows = ListRows(
        key=video.c.vod_id,
        table=table,
        joined=table.join(vod, vod.c.vod_id == video.c.vod_id),
        cms=vod,
        conditions=linked_conditions(services),
        sorts={
            "size": by_size,
            "subject": video.c.vod_douban_id,
            "updated": video.c.vod_time,
            "hits": vod.c.vod_hits,
            "id": video.c.vod_id,
        },
        time=video.c.vod_time,
        category=video.c.type_id,
        source=video.c.douban_id_source,
        texts=(vod.c.vod_name,),
        numbers=(video.c.vod_id, video.c.vod_douban_id),
    )
    return NamedList("duplicates", page, rows, read)


def _groups(services: Services, connection: Connection, subjects: Sequence[int]) -> dict[int, list[int]]:
    """Return the videos of every group, by subject."""
    video = services.tables.video
    found: dict[int, list[int]] = {}
    for chunk in chunks(subjects):
        query = select(video.c.vod_douban_id, video.c.vod_id).where(
            video.c.vod_douban_id.in_(chunk), *linked_conditions(services)
        )
        for douban_id, vod_id in connection.execute(query):
            found.setdefault(douban_id, []).append(vod_id)
    return found


def _advised(services: Services, connection: Connection, vod_ids: Sequence[int], keeper: Keeper) -> Mapping[int, Row]:
    """Return the cells of a group's members that depend on the group."""
    members = ranked(list(members_of(services, connection, vod_ids).values()), keeper)
    cells: dict[int, dict[str, Any]] = {}
    for place, member in enumerate(members):
        acts: tuple[tuple[Any, ...], ...] = (("clear", member.vod_id), ("history", member.vod_id))
        cells[member.vod_id] = {
            "size": len(members),
            "advice": "保留" if not place else "已锁定" if member.locked else "清除",
            "source": ORIGINS[member.origin],
            "score": member.score,
            "since": member.linked_at,
            "links": acts if place else (("lock", member.vod_id), ("history", member.vod_id)),
        }
    return cells
