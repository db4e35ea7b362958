"""The tab of videos without a Douban id."""

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
    decision,
)
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline.douban.wording import REVIEW_STATUSES

_ORDER = "按价值排列：0.65 × 播放量（log₁₀，百万次为满）＋ 0.30 × 新近程度（CMS 更新后每 90 天减半）＋ 0.05。"


def missing_report(found: MissingIds) -> ReportPage:
    """Return the report of videos without an id."""
    not_found = found.by_status.get(ReviewStatus.NOT_FOUND, 0)
    in_review = found.by_status.get(ReviewStatus.REVIEW, 0)
    return ReportPage(
        name="missing_douban_ids",
        title="缺少豆瓣 ID 的影片",
        about="未找到条目、或有候选但尚未确认的影片；已忽略的、分类不在处理范围内的不列出。",
        counts={
            "missing": found.count,
            "not_found": not_found,
            "in_review": in_review,
            "never_looked_at": found.unseen,
        },
        cards=[
            Card("缺少豆瓣 ID", f"{found.count:,}", "部影片"),
            Card("未找到条目", f"{not_found:,}", "会定期重新查找"),
            Card("待审核", f"{in_review:,}", "有候选，见 review_queue"),
            Card("尚未查找过", f"{found.unseen:,}", "会自动轮到"),
        ],
        chapters=[
            Chapter("most_valuable", "最有价值的", [_row(item) for item in found.first], _ORDER, total=found.count)
        ],
    )


def _row(item: MissingVideo) -> dict[str, Cell]:
    return {
        "影片": video_name(item.vod_id, item.title, item.year),
        "状态": REVIEW_STATUSES[item.status],
        "原因": item.reason or "尚未查找",
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
