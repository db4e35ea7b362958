"""The list of videos that share a subject, and below it those that share a name: groups of likely duplicates.

One row per video, the rows of a group together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, cast, func, select
from sqlalchemy.types import BigInteger

from douban_pipeline.core.database import chunks, reading
from douban_pipeline.core.ui.lists.list_page import (
    ColumnKind,
    Figures,
    ListColumn,
    ListLink,
    Row,
    Table,
)
from douban_pipeline.core.ui.templates import Card
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.duplicate_groups import (
    TitleGroup,
    equal_titles,
    linked_conditions,
    members_of,
    shared_sizes,
    sharing_conditions,
    title_groups,
)
from douban_pipeline.douban.reports.lists.keepers import GroupMember, KeeperRule, LinkOrigin, keep_reason, ranked
from douban_pipeline.douban.reports.lists.keyset import Choice, ListRows
from douban_pipeline.douban.reports.lists.spec import (
    FIRST,
    SECOND,
    ListSpec,
    batch_link,
    decide,
    link_of,
)
from douban_pipeline.douban.reports.lists.videos import (
    ACTIONS,
    LABEL,
    NAME,
    NUMBER,
    PICTURE,
    TIME,
    VIDEO_COLUMNS,
    VOD_ID,
    YEAR,
    category_names,
    known_of,
    named,
)
from douban_pipeline.douban.reports.video_site import VideoSite, posters_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ID_SOURCES

SAME_TITLES = "same_titles.json"
"""File among the reports with the ids of each group by name: to find them takes the whole library."""

MOST_GROUPS = 100
"""Groups by name that the page lists, the largest."""

_SIZE_FIRST = 100_000_000_000
"""More than any subject's id: ordered by size times this plus the id, groups come largest first and undivided."""

_KEEP, _CLEAR, _LOCKED, _IGNORE = "保留", "清除", "已锁定", "忽略"
_ORIGINS = {
    LinkOrigin.LOCKED: "已锁定",
    LinkOrigin.PERSON: "人工指定",
    LinkOrigin.AUTO: "自动匹配",
    LinkOrigin.CMS: "CMS 原有",
    LinkOrigin.NONE: "无已确认 ID",
}
_OF_GROUP = (
    ListColumn("size", "组内部数", NUMBER),
    ListColumn("advice", "建议", LABEL),
    ListColumn("why", "理由", width="wide"),
    ListColumn("source", "来源", LABEL),
    ListColumn("score", "得分", NUMBER),
    ListColumn("since", "关联时间", TIME),
    ListColumn("hits", "播放", NUMBER),
)


def duplicates_list(services: Services) -> ListSpec:
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
        *VIDEO_COLUMNS,
        ListColumn("douban_id", "共同的 ID", ColumnKind.SUBJECT),
        *_OF_GROUP,
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
            held[douban_id] = _advised(services, connection, douban_id, members)
        found = {}
        for vod_id, row in rows.items():
            cells = held.get(row["vod_douban_id"], {}).get(vod_id)
            if cells is not None:
                found[vod_id] = {**named(row, categories, site), "douban_id": row["vod_douban_id"], **cells}
        return found

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
        choices={"source": Choice(video.c.douban_id_source, {code: word for code, word in ID_SOURCES.items() if code})},
        texts=(vod.c.vod_name,),
        numbers=(video.c.vod_id, video.c.vod_douban_id),
    )
    return ListSpec(
        "duplicates",
        "同一条目被多部影片使用。确为重复时清除其他影片的 ID；片名明显不同时，多半是 ID 写错了。"
        "建议保留匹配最可靠的（锁定 > 人工指定 > 自动匹配 > CMS 原有 > 无，再比得分、关联时间、播放）。"
        "程序从不合并或删除影片：由人核对后处理。",
        columns,
        rows,
        read,
        key="douban_id",
        links={
            "clear_others": link_of("清除其他", links.clear_others(SECOND, FIRST), location),
            "clear": decide("清除", location, DecisionAction.clear_id),
            "lock": decide("锁定", location, DecisionAction.lock_id),
            "history": link_of("历史", links.history(FIRST), location),
        },
        batch=(batch_link("处理这些组", links.settle_duplicates, location),),
        figures=lambda: _figures(services),
    )


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


def _advised(services: Services, connection: Connection, douban_id: int, vod_ids: Sequence[int]) -> Mapping[int, Row]:
    """Return the cells of a group's members that depend on the group."""
    known = members_of(services, connection, vod_ids).values()
    # A batch selects by id: a video whose id changed in the meantime is left out.
    members = [member for member in known if member.douban_id == douban_id]
    if len(members) < 2:
        return {}
    first, *others = ranked(members, KeeperRule.best_match)
    size = len(others) + 1
    touched = sum(not member.locked for member in others)
    why = [
        keep_reason(first, others[0], KeeperRule.best_match, services.settings.zone),
        f"超过 {links.BATCH} 部，一次只处理 {links.BATCH} 部" if touched > links.BATCH else "",
        "如此之多，多半是采集时写入的固定 ID" if size > links.BATCH else "",
    ]
    acts = ((("clear_others", first.vod_id, first.douban_id),) if touched else ()) + (("lock", first.vod_id),)
    cells = {first.vod_id: _cells(first, size, _KEEP, "\n".join(filter(None, why)), acts)}
    for member in others:
        advice, said = (_LOCKED, "要清除须先解锁") if member.locked else (_CLEAR, "")
        cells[member.vod_id] = _cells(member, size, advice, said, (("clear", member.vod_id),))
    return cells


def _cells(
    member: GroupMember, size: int, advice: str, why: str, acts: tuple[tuple[Any, ...], ...] = ()
) -> dict[str, Any]:
    return {
        "size": size,
        "advice": advice,
        "why": why or None,
        "source": _ORIGINS[member.origin],
        "score": member.score,
        "since": member.linked_at,
        "hits": member.hits,
        "links": (*acts, ("history", member.vod_id)),
    }


def store_same_titles(services: Services) -> None:
    """Find the groups by name in the whole library, for the page.

    Raises:
        ReportFileError: Their file cannot be written.
    """
    services.reports.write(SAME_TITLES, json.dumps([list(map(int, group)) for group in equal_titles(services)]))


def _figures(services: Services) -> Figures:
    stored = services.reports.path / SAME_TITLES
    groups = json.loads(stored.read_text("utf-8")) if stored.is_file() else []
    shown = title_groups(services, groups, most=MOST_GROUPS)
    with reading(services.engine) as connection:
        by_subject = shared_sizes(services, connection)
        posters = posters_of(services, connection, [each.vod_id for group in shown for each in group.members])
    of_subject, of_title = sum(by_subject.values()), sum(map(len, groups))
    table = Table(
        "same_titles",
        f"同名同年同类（{len(groups):,} 组）",
        (NAME, PICTURE, VOD_ID, YEAR, ListColumn("name", "共同点"), *_OF_GROUP, ACTIONS),
        [row for group in shown for row in _of_title(group, posters)],
        "片名、季数、年份和类别相同，且至少一部没有已确认的 ID，大的组在前。"
        "确为重复时忽略没有 ID 的；已忽略的不再列出。每晚在全库中查找。"
        + (f"这里是前 {len(shown):,} 组。" if len(groups) > len(shown) else ""),
        video="vod_id",
        links={
            "ignore_others": _ignore_others(services.location),
            "history": link_of("历史", links.history(FIRST), services.location),
        },
    )
    return Figures(
        {"groups_by_subject": len(by_subject), "groups_by_title": len(groups), "videos": of_subject + of_title},
        [
            Card("同一豆瓣 ID", f"{len(by_subject):,} 组", f"{of_subject:,} 部影片"),
            Card("同名", f"{len(groups):,} 组", f"{of_title:,} 部影片", address="#same_titles"),
        ],
        [table],
    )


def _of_title(group: TitleGroup, posters: Mapping[int, str]) -> list[Row]:
    """Return the rows of a group by name; the others without an id are proposed to be ignored."""
    first, touched = group.members[0], group.unlinked
    why = [
        group.why,
        f"超过 {links.BATCH} 部，一次只处理 {links.BATCH} 部" if len(touched) > links.BATCH else "",
        "" if touched else "其他影片都已关联条目：请在 CMS 中核对，不建议批量处理",
    ]
    ids = ", ".join(str(member.vod_id) for member in touched[: links.BATCH])
    acts = (("ignore_others", ids, first.vod_id),) if touched else ()
    shared = {"name": group.name}
    rows: list[Row] = []
    for member in group.members:
        cells = (
            _cells(member, len(group.members), _KEEP, "\n".join(filter(None, why)), acts)
            if member is first
            else _cells(member, len(group.members), _IGNORE if member in touched else "已关联，请核对", "")
        )
        known = {"video": member.title, "vod_id": member.vod_id, "picture": posters.get(member.vod_id) or None}
        rows.append({**known, "year": member.year and str(member.year), **shared, **cells})
    return rows


def _ignore_others(location: str) -> ListLink:
    """Return the link that ignores the videos of its first part, of which that of its second is kept."""
    link = batch_link("忽略其他", lambda ids: links.ignore_others(ids, FIRST), location)
    return ListLink(link.text, link.address.replace(str(FIRST), "{1}").replace("{ids}", "{0}"))
