"""The page of locked Douban ids."""

from __future__ import annotations

from douban_pipeline.core.ui.templates import problem_tone
from douban_pipeline.douban.reports.pages.locked import LockedId, LockedIds
from douban_pipeline.douban.reports.pages.report_page import (
    Card,
    Cell,
    Chapter,
    LinesCell,
    LinkCell,
    ReportPage,
    SubjectCell,
    VideoCell,
    decision,
)
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ID_SOURCES, OPERATORS, word_for


def locked_report(found: LockedIds) -> ReportPage:
    """Return the page of locked ids."""
    sources = [(source, count) for source, count in sorted(found.by_source.items(), key=lambda item: -item[1])]
    return ReportPage(
        name="locked_douban_ids",
        title="已锁定的豆瓣 ID",
        about="锁定的 ID 不会被任何自动运行改动。",
        counts={
            "locked": found.count,
            "differing": found.differing,
            "gone": found.gone,
            **{f"source_{source or 'none'}": count for source, count in sources},
        },
        cards=[
            Card("已锁定", f"{found.count:,}", "部影片"),
            Card("与 CMS 不一致", f"{found.differing:,}", "锁定后 CMS 中的值被改动", problem_tone(found.differing)),
            *(Card(f"来源：{word_for(ID_SOURCES, source)}", f"{count:,}", "部影片") for source, count in sources),
        ],
        chapters=[
            Chapter(
                "locked_ids",
                "锁定的 ID",
                [_row(item) for item in found.first],
                "与 CMS 不一致的在前，然后是最近锁定的。",
                total=found.count,
            )
        ],
    )


def _row(item: LockedId) -> dict[str, Cell]:
    return {
        "影片": VideoCell(item.vod_id, item.name),
        "锁定的 ID": SubjectCell(item.douban_id) if item.douban_id else "空（不关联）",
        "来源": word_for(ID_SOURCES, item.source),
        "锁定时间": item.since,
        "谁": word_for(OPERATORS, item.act.operator) if item.act else "没有记录",
        "为什么": item.act.reason if item.act else "",
        "CMS 现值": _in_cms(item),
        "操作": LinesCell(tuple(_actions(item))),
    }


def _in_cms(item: LockedId) -> Cell:
    if item.in_cms is None:
        return "影片已删除"
    if not item.differs:
        return "一致"
    return LinesCell(("不一致：", SubjectCell(item.in_cms) if item.in_cms else "被清空"))


def _actions(item: LockedId) -> list[LinkCell]:
    if item.in_cms is None:
        return []
    actions = [decision("解锁", item.vod_id, DecisionAction.unlock_id)]
    if item.differs and item.in_cms:
        replace = DecisionAction.replace_and_lock
        actions.append(decision("改锁 CMS 的 ID", item.vod_id, replace, douban_id=item.in_cms))
    return actions
