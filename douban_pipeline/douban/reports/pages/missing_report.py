"""The page of videos without a Douban id."""

from __future__ import annotations

from douban_pipeline.douban import links
from douban_pipeline.douban.reports.pages.lookup import video_name
from douban_pipeline.douban.reports.pages.missing import MissingIds, MissingVideo, MissingVideoCandidate
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
    decision,
)
from douban_pipeline.douban.store.shown_status import ShownStatus
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import NEVER_SEARCHED, REVIEW_STATUSES

_ORDER = "按价值排列：0.65 × 播放量（log₁₀，百万次为满）＋ 0.30 × 新近程度（CMS 更新后每 90 天减半）＋ 0.05。"


def missing_report(found: MissingIds) -> ReportPage:
    """Return the page of videos without an id."""
    statuses = (ShownStatus.UNCHECKED, ShownStatus.NOT_FOUND, ShownStatus.REVIEW)
    unchecked, not_found, in_review = (found.by_status.get(status, 0) for status in statuses)
    return ReportPage(
        name="missing_douban_ids",
        title="缺少豆瓣 ID 的影片",
        about="还没有查找过（未检查）、查找过而没有（未找到）、或有候选但尚未确认的影片；已忽略的、分类不在处理范围内的不列出。",
        counts={
            "missing": found.count,
            "unchecked": unchecked,
            "not_found": not_found,
            "in_review": in_review,
        },
        cards=[
            Card("缺少豆瓣 ID", f"{found.count:,}", "部影片"),
            Card("未检查", f"{unchecked:,}", "还没有查找，会自动轮到"),
            Card("未找到", f"{not_found:,}", "查找过，会定期重新查找"),
            Card("待审核", f"{in_review:,}", "有候选，见 review_queue"),
        ],
        chapters=[
            Chapter("most_valuable", "最有价值的", [_row(item) for item in found.first], _ORDER, total=found.count)
        ],
    )


def _row(item: MissingVideo) -> dict[str, Cell]:
    return {
        "影片": VideoCell(item.vod_id, video_name(item.vod_id, item.title, item.year)),
        "状态": REVIEW_STATUSES[item.status],
        "原因": item.reason or NEVER_SEARCHED,
        "最佳候选": _candidate(item.best),
        "播放": item.hits,
        "CMS 更新": item.updated,
        "上次查找": item.looked_at,
        "操作": LinesCell(
            (
                LinkCell("在豆瓣搜索", links.douban_search(item.title)),
                decision("填写 ID", item.vod_id, DecisionAction.set_id, douban_id=0),
                decision(f"忽略 {links.IGNORED_DAYS} 天", item.vod_id, DecisionAction.ignore, days=links.IGNORED_DAYS),
            )
        ),
    }


def _candidate(best: MissingVideoCandidate | None) -> Cell:
    if best is None:
        return None
    return LinesCell(
        (f"{best.title}（{best.year or '?'}）", NoteCell(f"{best.score:.1f} 分"), SubjectCell(best.douban_id))
    )
