"""Lists of videos: in review, without an id, with a locked id, and the state of their intros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, RowMapping, and_, case, or_, select, true

from douban_pipeline.cms.maccms import recycled_condition
from douban_pipeline.cms.numbers import moment_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.ui.lists.list_page import ColumnKind, ListColumn, ListLink, ListPage, Row
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.lists.keyset import ListRows, Orderable
from douban_pipeline.douban.reports.lists.named_list import FIRST, SECOND, THIRD, NamedList, batch_link, decide, link_of
from douban_pipeline.douban.reports.lists.review_cells import review_cells
from douban_pipeline.douban.reports.pages.locked import lock_origins
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.review.recording.snapshot import newest_candidates, newest_verdicts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.shown_status import shown_status, shown_status_column
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline.douban.store.tasks import FAILURES_FOR_A_PERSON
from douban_pipeline.douban.store.videos import intro_of_person, is_intro_of_person
from douban_pipeline.douban.wording import ID_SOURCES, NEVER_SEARCHED, OPERATORS, REVIEW_STATUSES, word_for

TEXT, LABEL, NUMBER, TIME = ColumnKind.TEXT, ColumnKind.LABEL, ColumnKind.NUMBER, ColumnKind.TIME

NAME = ListColumn("video", "影片")
PICTURE = ListColumn("picture", "海报", ColumnKind.PICTURE)
VOD_ID = ListColumn("vod_id", "影片 ID", ColumnKind.ID)
CATEGORY = ListColumn("category", "分类", LABEL)
ACTIONS = ListColumn("links", "操作", ColumnKind.LINKS)


def category_names(services: Services) -> Mapping[int, str]:
    """Return the names of the site's categories, as lists show them, by id."""
    return {each.type_id: f"{readable(each.name)}（{each.type_id}）" for each in services.categories.values()}


def video_rows(
    services: Services,
    conditions: Sequence[ColumnElement[bool]],
    sorts: Mapping[str, Orderable],
    time: Column[Any],
    source: Orderable,
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
        source=source,
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


def _common(location: str) -> dict[str, ListLink]:
    ignored = links.IGNORED_DAYS
    return {
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


def review_list(services: Services) -> NamedList:
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
        ListColumn("year", "年份", width="narrow"),
        ListColumn("region", "地区", width="narrow"),
        ListColumn("director", "导演"),
        CATEGORY,
        ListColumn("douban_id", "现有 ID", ColumnKind.SUBJECT),
        ListColumn("locks", "锁定", LABEL),
        ListColumn("best", "首选", width="wide"),
        ListColumn("best_id", "首选 ID", ColumnKind.SUBJECT),
        ListColumn("votes", "人数", NUMBER),
        ListColumn("score", "得分", NUMBER),
        ListColumn("similarity", "片名相似度", NUMBER),
        ListColumn("lead", "领先", NUMBER),
        ListColumn("labels", "冲突", LABEL),
        ListColumn("second", "次选", width="wide"),
        ListColumn("reason", "原因", width="wide"),
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
    page = ListPage(
        "list_review",
        "待审核",
        "有候选但不能自动确认的匹配、存疑的现有 ID，以及连续失败的影片。逐部比较见 review_queue。",
        columns,
        key="vod_id",
        video="vod_id",
        time="updated",
        links={
            **_common(location),
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
        order="CMS 更新，新的在前",
    )
    rows = video_rows(
        services,
        [waiting, video.c.douban_next_sync_at.is_not(None)],
        {"updated": video.c.vod_time},
        video.c.vod_time,
        video.c.douban_id_source,
    )
    return NamedList("review", page, rows, read)


def missing_list(services: Services) -> NamedList:
    """Return the list of live videos without an id."""
    video, categories, location = services.tables.video, category_names(services), services.location
    site = VideoSite.of(services.settings)
    columns = (
        NAME,
        PICTURE,
        VOD_ID,
        ListColumn("year", "年份", width="narrow"),
        CATEGORY,
        ListColumn("status", "状态", LABEL),
        ListColumn("reason", "原因", width="wide"),
        ListColumn("best", "最佳候选", width="wide"),
        ListColumn("best_id", "候选 ID", ColumnKind.SUBJECT),
        ListColumn("score", "得分", NUMBER),
        ListColumn("similarity", "片名相似度", NUMBER),
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
            cells = named(row, categories, site)
            found[vod_id] = {
                **cells,
                **review_cells(row, None, candidates.get(vod_id, ())),
                "status": word_for(REVIEW_STATUSES, shown_status(row)),
                "reason": row["douban_review_reason"] or NEVER_SEARCHED,
                "looked_at": row["douban_last_sync_at"],
                "next": row["douban_next_sync_at"],
                "links": (("search", links.searched(cells["video"])), ("set", vod_id), ("ignore", vod_id)),
            }
        return found

    page = ListPage(
        "list_missing",
        "无豆瓣 ID",
        "还没有查找过（未检查）、查找过而没有（未找到）、或有候选但尚未确认的影片；已忽略的不列出。",
        columns,
        key="vod_id",
        video="vod_id",
        time="updated",
        links=_common(location),
        batch=(
            batch_link("生成候选", links.match_now, location),
            batch_link("批量忽略", lambda ids: links.batch(DecisionAction.ignore, ids, days=180), location),
        ),
        order="CMS 更新，新的在前",
    )
    rows = video_rows(
        services,
        [
            video.c.douban_review_status.in_((ReviewStatus.NOT_FOUND, ReviewStatus.REVIEW)),
            video.c.vod_douban_id == 0,
            video.c.douban_next_sync_at.is_not(None),
        ],
        {"updated": video.c.vod_time},
        video.c.vod_time,
        shown_status_column(video),
    )
    return NamedList("missing", page, rows, read)


def locked_list(services: Services) -> NamedList:
    """Return the list of videos whose id no automatic run may change."""
    video, categories, location = services.tables.video, category_names(services), services.location
    site = VideoSite.of(services.settings)
    columns = (
        NAME,
        PICTURE,
        VOD_ID,
        ListColumn("year", "年份", width="narrow"),
        CATEGORY,
        ListColumn("douban_id", "锁定的 ID", ColumnKind.SUBJECT),
        ListColumn("source", "来源", LABEL),
        ListColumn("since", "锁定时间", TIME),
        ListColumn("who", "谁", LABEL),
        ListColumn("why", "为什么"),
        ListColumn("in_cms", "CMS 现值", LABEL),
        ListColumn("hits", "播放", NUMBER),
        ACTIONS,
    )

    def read(connection: Connection, vod_ids: Sequence[int]) -> Mapping[int, Row]:
        origins = lock_origins(services, connection, vod_ids)
        found = {}
        for vod_id, row in known_of(services, connection, vod_ids).items():
            origin = origins.get(vod_id)
            differs = row["in_cms"] != row["vod_douban_id"]
            acts: list[tuple[Any, ...]] = [("unlock", vod_id)]
            if differs and row["in_cms"]:
                acts.append(("relock", vod_id, row["in_cms"]))
            found[vod_id] = {
                **named(row, categories, site),
                "douban_id": row["vod_douban_id"],
                "source": word_for(ID_SOURCES, row["douban_id_source"]),
                "since": row["douban_id_lock_time"],
                "who": word_for(OPERATORS, origin.operator) if origin else "没有记录",
                "why": origin.reason if origin else None,
                "in_cms": "不一致" if differs else "一致",
                "links": (*acts, ("history", vod_id)),
            }
        return found

    relock = decide("改锁 CMS 的 ID", location, DecisionAction.replace_and_lock, douban_id=SECOND)
    page = ListPage(
        "list_locked",
        "已锁定豆瓣 ID",
        "锁定的 ID 不会被任何自动运行改动。",
        columns,
        key="vod_id",
        video="vod_id",
        time="since",
        links={**_common(location), "relock": relock},
        batch=(batch_link("批量解锁", lambda ids: links.batch(DecisionAction.unlock_id, ids), location),),
        order="锁定时间，新的在前",
    )
    rows = video_rows(
        services,
        [video.c.douban_id_locked == true()],
        {"since": video.c.douban_id_lock_time},
        video.c.douban_id_lock_time,
        video.c.douban_id_source,
    )
    return NamedList("locked", page, rows, read)


def intros_list(services: Services) -> NamedList:
    """Return the list of videos whose intro is locked, was written by the model, or failed."""
    video, categories, location = services.tables.video, category_names(services), services.location
    site = VideoSite.of(services.settings)
    columns = (
        NAME,
        PICTURE,
        VOD_ID,
        ListColumn("year", "年份", width="narrow"),
        CATEGORY,
        ListColumn("state", "状态", LABEL),
        ListColumn("source", "由谁", LABEL),
        ListColumn("since", "锁定时间", TIME),
        ListColumn("written", "上次 AI 处理", TIME),
        ListColumn("fails", "失败次数", NUMBER),
        ListColumn("failed_at", "上次失败", TIME),
        ListColumn("why", "失败原因"),
        ListColumn("hits", "播放", NUMBER),
        ACTIONS,
    )

    def read(connection: Connection, vod_ids: Sequence[int]) -> Mapping[int, Row]:
        return {
            vod_id: {**named(row, categories, site), **_intro_cells(row)}
            for vod_id, row in known_of(services, connection, vod_ids).items()
        }

    page = ListPage(
        "list_intros",
        "简介锁定与 AI 处理",
        "简介已锁定、由模型写过、或没有写成的影片。锁定的简介不会被任何自动运行改动。",
        columns,
        key="vod_id",
        video="vod_id",
        time="written",
        links=_common(location),
        batch=(
            batch_link("批量重写", links.rewrite_intros, location),
            batch_link("批量锁定", lambda ids: links.batch(DecisionAction.lock_intro, ids), location),
            batch_link("批量解锁", lambda ids: links.batch(DecisionAction.unlock_intro, ids), location),
        ),
        order="上次 AI 处理，新的在前",
    )
    concerned = or_(
        video.c.intro_locked == true(), video.c.intro_ai_last_at.is_not(None), video.c.intro_ai_fail_count > 0
    )
    rows = video_rows(
        services,
        [concerned],
        {"written": video.c.intro_ai_last_at, "since": video.c.intro_lock_time},
        video.c.intro_ai_last_at,
        case(
            (and_(video.c.intro_locked == true(), intro_of_person(services.tables)), ""), else_=video.c.intro_ai_source
        ),
    )
    return NamedList("intros", page, rows, read)


def _intro_cells(row: RowMapping) -> dict[str, Any]:
    vod_id, locked, failing = row["vod_id"], row["intro_locked"], row["intro_ai_fail_count"] > 0
    moment: datetime | None = row["intro_ai_last_at"]
    state = "已锁定" if locked else "失败" if failing else "未锁定"
    return {
        "state": state,
        "source": "人工" if locked and is_intro_of_person(row) else row["intro_ai_source"] or None,
        "since": row["intro_lock_time"],
        "written": moment,
        "fails": row["intro_ai_fail_count"] or None,
        "failed_at": row["intro_ai_last_fail_at"],
        "why": row["intro_ai_last_fail_reason"] if failing else None,
        "links": (("unlock_intro" if locked else "lock_intro", vod_id), ("redo", vod_id), ("history", vod_id)),
    }
