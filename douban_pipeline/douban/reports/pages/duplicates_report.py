"""The page of likely duplicates."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban import links
from douban_pipeline.douban.reports.pages.duplicates import DuplicateGroup, DuplicateGroups
from douban_pipeline.douban.reports.pages.keepers import GroupMember, Keeper, LinkOrigin
from douban_pipeline.douban.reports.pages.lookup import video_name
from douban_pipeline.douban.reports.pages.report_page import (
    Card,
    Cell,
    Chapter,
    LinesCell,
    LinkCell,
    NoteCell,
    ReportPage,
    SubjectCell,
    VideoCell,
)

_NAMED = 10
"""Most members of a group that are named."""

_RULES = {
    Keeper.best_match: "匹配最可靠的（锁定 > 人工指定 > 自动匹配 > CMS 原有 > 无，再比得分、关联时间、播放）",
    Keeper.earliest_link: "关联最早的（再比来源、得分、播放）",
    Keeper.popularity: "播放最多的（再比来源、得分、关联时间）",
}
ORIGINS = {
    LinkOrigin.LOCKED: "已锁定",
    LinkOrigin.PERSON: "人工指定",
    LinkOrigin.AUTO: "自动匹配",
    LinkOrigin.CMS: "CMS 原有",
    LinkOrigin.NONE: "无已确认 ID",
}


def duplicates_report(
    by_subject: DuplicateGroups, by_title: DuplicateGroups, keeper: Keeper, zone: ZoneInfo
) -> ReportPage:
    """Return the page of likely duplicates."""
    return ReportPage(
        name="duplicate_reports",
        title="疑似重复的影片",
        about=f"建议保留{_RULES[keeper]}。程序从不合并或删除影片：由人核对后处理。",
        counts={
            "groups_by_subject": by_subject.count,
            "groups_by_title": by_title.count,
            "videos": by_subject.videos + by_title.videos,
        },
        cards=[
            Card("同一豆瓣 ID", f"{by_subject.count:,} 组", f"{by_subject.videos:,} 部影片"),
            Card("同名", f"{by_title.count:,} 组", f"{by_title.videos:,} 部影片"),
        ],
        chapters=[
            Chapter(
                "by_subject",
                "同一豆瓣 ID",
                [_row(group, zone) for group in by_subject.shown],
                "同一条目被多部影片使用。确为重复时清除其他影片的 ID；片名明显不同时，多半是 ID 写错了。",
                total=by_subject.count,
            ),
            Chapter(
                "by_title",
                "同名同年同类",
                [_row(group, zone) for group in by_title.shown],
                "片名、季数、年份和类别相同，且至少一部没有已确认的 ID。确为重复时忽略没有 ID 的；已忽略的不再列出。",
                total=by_title.count,
            ),
        ],
    )


def _row(group: DuplicateGroup, zone: ZoneInfo) -> dict[str, Cell]:
    named = [_named(member, zone) for member in group.others[:_NAMED]]
    more = len(group.others) - len(named)
    return {
        "共同点": SubjectCell(int(group.key)) if group.by == "subject" else group.key,
        "影片数": len(group.members),
        "建议保留": _named(group.keep, zone),
        "理由": group.why,
        "其他": LinesCell((*named, *([NoteCell(f"… 另有 {more:,} 部")] if more else []))),
        "注意": _warnings(group),
        "操作": _action(group),
    }


def _named(member: GroupMember, zone: ZoneInfo) -> LinesCell:
    facts = [ORIGINS[member.origin]]
    facts += [f"{member.score:.1f} 分"] if member.score is not None else []
    facts += [_linked(member.linked_at, zone)] if member.linked_at else []
    facts.append(f"播放 {member.hits:,}")
    name = video_name(member.vod_id, member.title, member.year)
    return LinesCell((VideoCell(member.vod_id, name), NoteCell("，".join(facts))))


def _linked(moment: datetime, zone: ZoneInfo) -> str:
    return f"{local_time(moment, zone)[:10]} 关联"


def _touched(group: DuplicateGroup) -> tuple[GroupMember, ...]:
    """Return the members that the proposed batch changes: no batch clears locked ids."""
    if group.by == "subject":
        return tuple(member for member in group.others if not member.locked)
    return group.unlinked


def _warnings(group: DuplicateGroup) -> LinesCell:
    touched = _touched(group)
    locked = [str(member.vod_id) for member in group.others if member.locked]
    warnings = []
    if locked:
        named = "、".join(locked[:_NAMED]) + ("…" if len(locked) > _NAMED else "")
        warnings.append(f"已锁定，不在其内：{named}；要清除须先解锁")
    if len(touched) > links.BATCH:
        warnings.append(f"超过 {links.BATCH} 部，一次只处理 {links.BATCH} 部")
    if len(group.members) > links.BATCH and group.by == "subject":
        warnings.append("如此之多，多半是采集时写入的固定 ID")
    if not touched and not locked:
        warnings.append("其他影片都已关联条目：请在 CMS 中核对，不建议批量处理")
    return LinesCell(tuple(warnings))


def _action(group: DuplicateGroup) -> Cell:
    touched, keep = _touched(group), group.keep.vod_id
    if not touched:
        return ""
    if group.by == "subject":
        return LinkCell(f"清除其他 {len(touched):,} 部的 ID", links.clear_others(int(group.key), keep))
    others = [member.vod_id for member in touched]
    return LinkCell(f"忽略 {min(len(others), links.BATCH)} 部", links.ignore_others(others, keep))
