"""The home page: current problems, current numbers, what was done, and links to every list and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from douban_pipeline.core.ui.presentation import share_text
from douban_pipeline.core.ui.templates import Card, problem_tone
from douban_pipeline.douban.reports.health import pictures, samples
from douban_pipeline.douban.reports.lists.catalogue import LISTS, OVERVIEW
from douban_pipeline.douban.reports.lists.last_day import Trouble, last_day, troubles
from douban_pipeline.douban.reports.lists.statistics import UNWRITTEN_DAYS, Statistics, statistics
from douban_pipeline.douban.reports.pages.report_page import (
    Cell,
    Chapter,
    LinkCell,
    NoteCell,
    PageFrame,
    ReportPage,
    sheet,
)
from douban_pipeline.douban.services import Services

RENEWED_SECONDS = 120
"""How often the page is written, and reloaded by a browser that has it open, in seconds."""
_NAMED = 3
"""Most problems that the first line names."""

_REPORTS = {
    "review_queue.html": ("审核单", "逐部比较待审核的影片并决定"),
    "missing_douban_ids.html": ("缺豆瓣 ID", "最有价值的在前，附填 ID、忽略的启动页"),
    "duplicate_reports.html": ("疑似重复", "同一 ID 的、同名的，附处理链接"),
    "locked_douban_ids.html": ("已锁定 ID", "谁锁的、为什么，附解锁的启动页"),
    "intro_reports.html": ("简介", "锁定、失败、费用，附重写的启动页"),
    "tasks_and_log.html": ("任务与变更", "什么没有进展、为什么，附撤销的启动页"),
    "feeds.html": ("关注的来源", "每个来源的节奏与状况"),
    "digest/index.html": ("每日摘要", "按天浏览与搜索"),
}
"""Pages beside this one, also of other systems; those that are not written yet are left out."""

_IN_DAGSTER = (
    ("全部资产", "/asset-groups", "谁依赖谁，上次何时更新"),
    ("运行", "/runs", "正在做什么，做过什么"),
    ("作业", "/jobs", "手动启动：导入、撤销、暂停来源……"),
    ("健康", "/assets/pipeline_health", "积压、失败、耗时、花费"),
    ("数据源", "/assets/source_gates", "断路器、速度、配额"),
    ("定时与传感器", "/automation", "自动运行的开关"),
)


def overview_page(services: Services, found: Statistics) -> ReportPage:
    """Return the page: current problems, the numbers, what was done, and links to everything else."""
    wrong = troubles(services, found)
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
        {"报告": LinkCell(title, file), "内容": text}
        for file, (title, text) in _REPORTS.items()
        if (services.reports.path / file).is_file()
    ]
    dagster: list[Mapping[str, Cell]] = [
        {"页面": LinkCell(title, address), "内容": text} for title, address, text in _IN_DAGSTER
    ]
    doubtful: list[Mapping[str, Cell]] = [
        {"什么": each.title, "说明": NoteCell(each.detail), "自": each.since, "查看": LinkCell("查看", each.address)}
        for each in wrong
    ]
    deeds: list[Mapping[str, Cell]] = [
        {"做了什么": deed.sentence, "详情": LinkCell("详情", deed.address)} for deed in last_day(services)
    ]
    return ReportPage(
        name=Path(OVERVIEW[1]).stem,
        title="首页",
        about=f"这里的数字每 {RENEWED_SECONDS // 60} 分钟更新一次，列表和报告每晚更新。",
        counts=found.counts(),
        cards=[
            Card("影片总数", f"{found.total:,}", f"其中已忽略 {found.ignored:,}"),
            Card("有豆瓣 ID", f"{found.with_id:,}", _share(found.with_id, found.total)),
            Card("无豆瓣 ID", f"{found.without_id:,}", _share(found.without_id, found.total)),
            Card("未检查", f"{found.unchecked:,}", "还没有查找，或要重新查找"),
            Card("未找到", f"{found.not_found:,}", "查找过，没有合适的条目"),
            Card("待审核", f"{found.in_review:,}", "等待人工"),
            Card("豆瓣 ID 重复", f"{found.shared:,}", "与他片共用一个 ID"),
            Card("冲突", f"{found.conflicts:,}", "待审核中有冲突项的影片"),
            Card("已锁定 ID", f"{found.locked_ids:,}", f"已锁定简介 {found.locked_intros:,}"),
            Card("今天到期", f"{found.due_today:,}", f"其中已到期 {found.due_now:,}"),
            Card("今天完成", f"{found.done_today:,}", f"队列中 {found.open_tasks:,}"),
            Card("今天失败", f"{found.failed_today:,}", "已放弃的任务", problem_tone(found.failed_today)),
            Card("待执行的决定", f"{found.decisions:,}", "通常半分钟内执行"),
            Card(
                "未写入的变更",
                f"{found.unwritten:,}",
                f"{UNWRITTEN_DAYS} 天内被拒绝或不一致",
                problem_tone(found.unwritten),
            ),
        ],
        chapters=[
            *([Chapter("troubles", "需要处理", doubtful)] if wrong else []),
            Chapter("last_day", "最近 24 小时", deeds, empty="没有要做的，也没有人做什么"),
            Chapter("lists", "列表", lists),
            Chapter("reports", "报告", reports, empty="还没有生成：每晚更新，也可以启动作业 nightly_reports"),
            Chapter("dagster", "Dagster", dagster),
        ],
        lead=_lead(wrong, found),
        plots=_plots(services),
    )


def _lead(wrong: Sequence[Trouble], found: Statistics) -> tuple[str, str]:
    """Return the state in one line; videos in review are mentioned, but do not count as a problem."""
    waiting = f"；{found.in_review:,} 部影片等人审核" if found.in_review else ""
    if not wrong:
        return f"一切正常{waiting}", "good"
    more = f"等 {len(wrong)} 件" if len(wrong) > _NAMED else ""
    return f"需要处理：{'；'.join(each.title for each in wrong[:_NAMED])}{more}{waiting}", "bad"


def _plots(services: Services) -> list[str]:
    now, zone = services.clock.now(), services.settings.zone
    past = samples.between(services, now - pictures.BACKLOG_SHOWN, now + timedelta(microseconds=1))
    drawn = (pictures.backlog(past, now, zone), pictures.outcomes(past, now, zone))
    return [svg for svg in drawn if svg]


def _share(part: int, of: int) -> str:
    return share_text(part / of if of else None, "")


def write_overview(services: Services) -> Statistics:
    """Write the page and return its numbers.

    Raises:
        ReportFileError: It cannot be written.
    """
    found = statistics(services)
    frame = PageFrame(services.settings.zone, services.settings.ui_url, services.location)
    page = overview_page(services, found)
    services.reports.write(page.file, sheet(page, frame, services.clock.now(), renewed_seconds=RENEWED_SECONDS))
    return found
