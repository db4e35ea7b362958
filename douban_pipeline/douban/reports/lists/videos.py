"""Lists of videos: in review, without an id, with a locked id, and the state of their intros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, and_, case, or_, select, true

from douban_pipeline.cms.maccms import recycled_condition
from douban_pipeline.cms.numbers import moment_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.ui.lists.list_page import (
    ColumnKind,
    Figures,
    ListColumn,
    ListLink,
    Row,
)
from douban_pipeline.core.ui.templates import Card
from douban_pipeline.douban import links
from douban_pipeline.douban.chain.due.due_videos import in_scope
from douban_pipeline.douban.reports.lists.keyset import Choice, ListRows, Orderable
from douban_pipeline.douban.reports.lists.review_cells import review_cells
from douban_pipeline.douban.reports.lists.spec import (
    FIRST,
    SECOND,
    THIRD,
    ListSpec,
    batch_link,
    counted,
    decide,
    link_of,
    view,
)
from douban_pipeline.douban.reports.lists.statistics import UNDECIDED
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.review.records.snapshot import newest_candidates, newest_verdicts
from douban_pipeline.douban.review.worklist.order import value_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import (
    ShownStatus,
    held_in_bulk_condition,
    shown_status,
    shown_status_column,
)
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON
from douban_pipeline.douban.wording import ID_SOURCES, NEVER_SEARCHED, REVIEW_STATUSES, word_for

TEXT, LABEL, NUMBER, TIME = ColumnKind.TEXT, ColumnKind.LABEL, ColumnKind.NUMBER, ColumnKind.TIME

NAME = ListColumn("video", "影片")
PICTURE = ListColumn("picture", "海报", ColumnKind.PICTURE)
VOD_ID = ListColumn("vod_id", "影片 ID", ColumnKind.ID)
YEAR = ListColumn("year", "年份", width="narrow")
CATEGORY = ListColumn("category", "分类", LABEL)
VIDEO_COLUMNS = (NAME, PICTURE, VOD_ID, YEAR, CATEGORY)
"""What every list of videos begins with; `named` has their cells."""
ACTIONS = ListColumn("links", "操作", ColumnKind.LINKS)


def category_names(services: Services) -> Mapping[int, str]:
    """Return the names of the site's categories, as lists show them, by id."""
    return {each.type_id: f"{readable(each.name)}（{each.type_id}）" for each in services.categories.values()}


def video_rows(
    services: Services,
    conditions: Sequence[ColumnElement[bool]],
    sorts: Mapping[str, Orderable],
    time: Column[Any],
    choices: Mapping[str, Choice],
) -> ListRows:
    """Return the rows of a list of videos: our state table, joined with the CMS's where needed."""
    video, vod = services.tables.video, services.cms.vod
    return ListRows(
        key=video.c.vod_id,
        table=video,
        joined=video.join(vod, vod.c.vod_id == video.c.vod_id),
        cms=vod,
        conditions=[*conditions, ~recycled_condition(services.cms, video.c.vod_id)],
        sorts={**sorts, "updated": video.c.vod_time, "hits": vod.c.vod_hits, "id": video.c.vod_id},
        time=time,
        category=video.c.type_id,
        choices=choices,
        texts=(vod.c.vod_name, video.c.douban_review_reason),
        numbers=(video.c.vod_id, video.c.vod_douban_id),
    )


def known_of(services: Services, connection: Connection, vod_ids: Sequence[int]) -> dict[int, RowMapping]:
    """Return the columns of our row and the CMS's row that lists show, by video; deleted videos are left out."""
    vod, video = services.cms.vod, services.tables.video
    names = "vod_id vod_name vod_pic vod_year vod_area vod_director vod_hits vod_time type_id"
    query = (
        select(*(vod.c[name] for name in names.split()), vod.c.vod_douban_id.label("in_cms"))
        .add_columns(*(column for column in video.c if column.name not in vod.c))
        .add_columns(video.c.vod_douban_id)
        .join(video, video.c.vod_id == vod.c.vod_id)
        .where(vod.c.vod_id.in_(vod_ids))
    )
    return {row["vod_id"]: row for row in connection.execute(query).mappings()}


def named(row: Mapping[Any, Any], categories: Mapping[int, str], site: VideoSite) -> dict[str, Any]:
    """Return the cells that all lists of videos share."""
    return {
        "picture": site.poster(row["vod_id"], str(row["vod_pic"] or "")) or None,
        "vod_id": row["vod_id"],
        "video": readable(row["vod_name"]),
        "year": readable(row["vod_year"]).removeprefix("0") or None,
        "category": categories.get(row["type_id"], str(row["type_id"])),
        "hits": row["vod_hits"],
        "updated": moment_of(row["vod_time"]),
    }


@cache
def common_links(location: str) -> Mapping[str, ListLink]:
    """Return the links that rows of several lists have, by key; made once a process, as writing YAML takes its time."""
    ignored = links.IGNORED_DAYS
    return {
        "compare": ListLink("逐项比较", "review/#{0}"),
        "set": decide("填写 ID", location, DecisionAction.set_id, douban_id=0),
        "ignore": decide(f"忽略 {ignored} 天", location, DecisionAction.ignore, days=ignored),
        "rematch": decide("重新匹配", location, DecisionAction.rematch),
        "unlock": decide("解锁", location, DecisionAction.unlock_id),
        "lock": decide("锁定", location, DecisionAction.lock_id),
        "lock_intro": decide("锁简介", location, DecisionAction.lock_intro),
        "unlock_intro": decide("解锁简介", location, DecisionAction.unlock_intro),
        "redo": decide("重写", location, DecisionAction.redo_intro),
        "search": ListLink("在豆瓣搜索", links.douban_search_of("{0}")),
        "history": link_of("历史", links.history(FIRST), location),
    }


def review_list(services: Services) -> ListSpec:
    """Return the list of videos that wait for a person: doubtful matches and ids, and repeated failures."""
    video, categories, location = services.tables.video, category_names(services), services.location
    site = VideoSite.of(services.settings)
    waiting = or_(
        video.c.douban_review_status == ReviewStatus.REVIEW, video.c.douban_sync_fail_count >= FAILURES_FOR_A_PERSON
    )
    columns = (
        NAME,
        PICTURE,
        VOD_ID,
        YEAR,
        # What decides comes first: it is in sight on a common screen.
        ListColumn("best", "首选", width="wide"),
        ListColumn("score", "得分", NUMBER),
        ListColumn("labels", "冲突", LABEL),
        ListColumn("reason", "原因", width="wide"),
        ListColumn("best_id", "首选 ID", ColumnKind.SUBJECT),
        ListColumn("second", "次选", width="wide"),
        ListColumn("lead", "领先", NUMBER),
        ListColumn("similarity", "片名相似度", NUMBER),
        ListColumn("votes", "人数", NUMBER),
        ListColumn("douban_id", "现有 ID", ColumnKind.SUBJECT),
        ListColumn("locks", "锁定", LABEL),
        CATEGORY,
        ListColumn("region", "地区", width="narrow"),
        ListColumn("director", "导演"),
        ListColumn("hits", "播放", NUMBER),
        ListColumn("updated", "CMS 更新", TIME),
        ACTIONS,
    )

    def read(connection: Connection, vod_ids: Sequence[int]) -> Mapping[int, Row]:
        candidates = newest_candidates(services.tables, connection, vod_ids, 2)
        verdicts = newest_verdicts(services.tables, connection, vod_ids)
        return {
            vod_id: {
                **named(row, categories, site),
                **review_cells(row, verdicts.get(vod_id), candidates.get(vod_id, ())),
            }
            for vod_id, row in known_of(services, connection, vod_ids).items()
        }

    choose = {"douban_id": SECOND, "verdict_id": THIRD}
    rows = video_rows(
        services,
        [waiting, video.c.douban_next_sync_at.is_not(None)],
        {"updated": video.c.vod_time},
        video.c.vod_time,
        {"source": Choice(video.c.douban_id_source, {code: word for code, word in ID_SOURCES.items() if code})},
    )
    return ListSpec(
        "review",
        "有候选但不能自动确认的匹配、存疑的现有 ID，以及连续失败的影片。“逐项比较”打开它在审核单中的卡片。",
        columns,
        rows,
        read,
        links={
            **common_links(location),
            "choose": decide("确认首选", location, DecisionAction.choose, **choose),
            "choose_lock": decide("确认并锁定", location, DecisionAction.choose, lock=True, **choose),
            "replace": decide("替换锁定", location, DecisionAction.replace_and_lock, **choose),
        },
        batch=(
            batch_link("批量确认首选", lambda ids: links.batch(DecisionAction.confirm_top1, ids), location),
            batch_link(
                "批量确认并锁定", lambda ids: links.batch(DecisionAction.confirm_top1, ids, lock=True), location
            ),
            batch_link("批量忽略", lambda ids: links.batch(DecisionAction.ignore, ids, days=180), location),
            batch_link("批量重新匹配", lambda ids: links.batch(DecisionAction.rematch, ids), location),
        ),
    )


_OUT_OF_SCOPE = "不在处理范围"


def missing_list(services: Services) -> ListSpec:
    """Return the list of live videos without an id; those of categories out of scope are marked."""
    video, categories, location = services.tables.video, category_names(services), services.location
    site, now = VideoSite.of(services.settings), services.clock.now()
    columns = (
        *VIDEO_COLUMNS,
        ListColumn("status", "状态", LABEL),
        ListColumn("scope", "范围", LABEL),
        ListColumn("reason", "原因", width="wide"),
        ListColumn("best", "最佳候选", width="wide"),
        ListColumn("best_id", "候选 ID", ColumnKind.SUBJECT),
        ListColumn("score", "得分", NUMBER),
        ListColumn("similarity", "片名相似度", NUMBER),
        ListColumn("value", "价值", NUMBER),
        ListColumn("hits", "播放", NUMBER),
        ListColumn("updated", "CMS 更新", TIME),
        ListColumn("looked_at", "上次查找", TIME),
        ListColumn("next", "下次查找", TIME),
        ACTIONS,
    )

    def read(connection: Connection, vod_ids: Sequence[int]) -> Mapping[int, Row]:
        candidates = newest_candidates(services.tables, connection, vod_ids, 1)
        found = {}
        for vod_id, row in known_of(services, connection, vod_ids).items():
            cells, treated = named(row, categories, site), services.settings.works_on(row["type_id"])
            found[vod_id] = {
                **cells,
                **review_cells(row, None, candidates.get(vod_id, ())),
                "scope": None if treated else _OUT_OF_SCOPE,
                "status": word_for(REVIEW_STATUSES, shown_status(row)),
                "reason": row["douban_review_reason"] or NEVER_SEARCHED,
                "value": value_of(row["vod_hits"], cells["updated"], now) if treated else None,
                "looked_at": row["douban_last_sync_at"],
                "next": row["douban_next_sync_at"],
                "links": (("search", links.searched(cells["video"])), ("set", vod_id), ("ignore", vod_id)),
            }
        return found

    statuses = (ShownStatus.UNCHECKED, ShownStatus.NOT_FOUND, ShownStatus.REVIEW, ShownStatus.HELD)
    treated = case((and_(true(), *in_scope(services.tables, services.settings)), "in"), else_="out")
    rows = video_rows(
        services,
        [
            video.c.douban_review_status.in_(UNDECIDED),
            or_(video.c.vod_douban_id == 0, held_in_bulk_condition(video)),
        ],
        {"updated": video.c.vod_time},
        video.c.vod_time,
        {
            "status": Choice(shown_status_column(video), {each: REVIEW_STATUSES[each] for each in statuses}),
            "scope": Choice(treated, {"in": "范围内", "out": _OUT_OF_SCOPE}),
        },
    )
    return ListSpec(
        "missing",
        "还没有查找过（未检查）、查找过而没有（未找到）、或有候选但尚未确认的影片；已忽略的不列出。"
        "价值 = 0.65 × 播放量（log₁₀，百万次为满）＋ 0.30 × 新近程度（CMS 更新后每 90 天减半）＋ 0.05。",
        columns,
        rows,
        read,
        links=common_links(location),
        batch=(
            batch_link("生成候选", links.match_now, location),
            batch_link("批量忽略", lambda ids: links.batch(DecisionAction.ignore, ids, days=180), location),
        ),
        figures=lambda: _missing_figures(services, rows),
    )


def _missing_figures(services: Services, rows: ListRows) -> Figures:
    statuses = counted(services, rows, rows.choices["status"].by)
    out = counted(services, rows, rows.choices["scope"].by).get("out", 0)

    def card(status: ShownStatus, behind: str) -> Card:
        count = statuses.get(status, 0)
        return Card(REVIEW_STATUSES[status], f"{count:,}", behind, address=view(status=status) if count else "")

    shown = {"unchecked": ShownStatus.UNCHECKED, "not_found": ShownStatus.NOT_FOUND, "in_review": ShownStatus.REVIEW}
    total, held = sum(statuses.values()), statuses.get(ShownStatus.HELD, 0)
    return Figures(
        {"missing": total, **{key: statuses.get(each, 0) for key, each in shown.items()}, "out_of_scope": out},
        [
            Card("无豆瓣 ID", f"{total:,}", "部影片"),
            card(ShownStatus.UNCHECKED, "还没有查找，范围内的会自动轮到"),
            card(ShownStatus.NOT_FOUND, "查找过，会定期重新查找"),
            card(ShownStatus.REVIEW, "有候选，等待人工"),
            *([card(ShownStatus.HELD, "ID 在 CMS 中一并被清空，见作业 settle_cleared_ids")] if held else []),
            *([Card(_OUT_OF_SCOPE, f"{out:,}", "按分类，不会查找", address=view(scope="out"))] if out else []),
        ],
    )
