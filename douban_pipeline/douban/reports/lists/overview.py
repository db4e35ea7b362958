"""The overview: the numbers of this moment on one page, with a way to every list and report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from douban_pipeline.core.ui.templates import Card
from douban_pipeline.douban.reports.lists.catalogue import LISTS, OVERVIEW
from douban_pipeline.douban.reports.lists.statistics import UNWRITTEN_DAYS, Statistics, statistics
from douban_pipeline.douban.reports.pages.report_page import Cell, Chapter, LinkCell, PageFrame, ReportPage, sheet
from douban_pipeline.douban.services import Services

RENEWED_SECONDS = 120
"""How often the page is written, and a browser that has it open reads it again."""

_REPORTS = {
    "review_queue": "审核单：逐部比较与决定",
    "duplicate_reports": "疑似重复的影片，同名的也在内",
    "missing_douban_ids": "缺少豆瓣 ID 的影片，最有价值的在前",
    "locked_douban_ids": "已锁定的豆瓣 ID",
    "intro_reports": "简介：失败、费用、锁定",
    "tasks_and_log": "任务、决定与变更：什么没有进展、为什么",
}


def overview_page(services: Services, found: Statistics) -> ReportPage:
    """Return the page with the numbers."""
    files = {name: make(services).page for name, make in LISTS.items()}
    per_list = {
        "review": found.in_review,
        "missing": found.without_id,
        "duplicates": found.shared,
        "locked": found.locked_ids,
        "intros": found.locked_intros,
        "tasks": found.open_tasks,
        "decisions": found.decisions,
        "log": found.unwritten,
    }
    meant = {
        "intros": "已锁定",
        "tasks": "未完成",
        "decisions": "等待执行",
        "log": f"{UNWRITTEN_DAYS} 天内未写入",
    }
    lists: list[Mapping[str, Cell]] = [
        {
            "列表": LinkCell(page.title, page.file),
            "数量": per_list[name],
            "其中": meant.get(name, "影片"),
            "说明": page.about,
        }
        for name, page in files.items()
    ]
    reports: list[Mapping[str, Cell]] = [
        {"报告": LinkCell(name, f"{name}.html"), "内容": text} for name, text in _REPORTS.items()
    ]
    return ReportPage(
        name=Path(OVERVIEW[1]).stem,
        title="豆瓣数据概览",
        about=f"这里的数字每 {RENEWED_SECONDS // 60} 分钟更新一次，列表和报告每晚更新。",
        counts=found.counts(),
        cards=[
            Card("影片总数", f"{found.total:,}", f"其中已忽略 {found.ignored:,}"),
            Card("有豆瓣 ID", f"{found.with_id:,}", _share(found.with_id, found.total)),
            Card("无豆瓣 ID", f"{found.without_id:,}", _share(found.without_id, found.total)),
            Card("未检查", f"{found.unchecked:,}", "还没有查找，或要重新查找"),
            Card("未找到", f"{found.not_found:,}", "查找过，没有合适的条目"),
            Card("待核查", f"{found.in_review:,}", "等待人工"),
            Card("豆瓣 ID 重复", f"{found.shared:,}", "与他片共用一个 ID"),
            Card("冲突", f"{found.conflicts:,}", "待核查中有冲突项的影片"),
            Card("已锁定 ID", f"{found.locked_ids:,}", f"已锁定简介 {found.locked_intros:,}"),
            Card("今天到期", f"{found.due_today:,}", f"其中已到期 {found.due_now:,}"),
            Card("今天完成", f"{found.done_today:,}", f"队列中 {found.open_tasks:,}"),
            Card("今天失败", f"{found.failed_today:,}", "已放弃的任务", _bad(found.failed_today)),
            Card("待执行的决定", f"{found.decisions:,}", "通常半分钟内执行"),
            Card("未写入的变更", f"{found.unwritten:,}", f"{UNWRITTEN_DAYS} 天内被拒绝或不一致", _bad(found.unwritten)),
        ],
        chapters=[Chapter("lists", "列表", lists), Chapter("reports", "报告", reports)],
    )


def _share(part: int, of: int) -> str:
    return f"{part / of:.1%}" if of else ""


def _bad(count: int) -> str:
    return "bad" if count else "good"


def write_overview(services: Services) -> Statistics:
    """Count, write the page, and return the numbers.

    Raises:
        ReportFileError: It cannot be written.
    """
    found = statistics(services)
    frame = PageFrame(services.settings.zone, services.settings.ui_url, services.location)
    page = overview_page(services, found)
    services.reports.write(page.file, sheet(page, frame, services.clock.now(), renewed_seconds=RENEWED_SECONDS))
    return found
