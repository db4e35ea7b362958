"""The page of intros."""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.core.ui.templates import problem_tone
from douban_pipeline.douban.reports.pages.intros import (
    DAYS,
    DaySpending,
    FailedIntro,
    GuardRefusals,
    Intros,
    LockedIntro,
    SourcelessIntro,
)
from douban_pipeline.douban.reports.pages.report_page import (
    Card,
    Cell,
    Chapter,
    LinesCell,
    LinkCell,
    NoteCell,
    ReportPage,
    VideoCell,
    decision,
)
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import TASK_STATUSES, VIOLATIONS, word_for


def intros_report(found: Intros) -> ReportPage:
    """Return the page of intros."""
    queued = sum(item.count for item in found.queued)
    waiting = found.waiting.count if found.waiting else 0
    locked = found.locked_by_model + found.locked_by_people
    refused = sum(refusals.times for refusals in found.refusals.values())
    switched_off = "" if found.on else "AI 简介未开启（DOUBAN_PIPELINE_AI_INTROS），不会写入新的简介。"
    return ReportPage(
        name="intro_reports",
        title="简介",
        about=f"{switched_off}锁定的简介不会被任何自动运行改动。",
        counts={
            "locked_by_model": found.locked_by_model,
            "locked_by_people": found.locked_by_people,
            "failed": found.failed_count,
            "without_source": found.sourceless_count,
            "waiting": waiting,
            "queued": queued,
            "violations": refused,
            "spent_usd": round(found.usd, 4),
        },
        cards=[
            Card("模型写入并锁定", f"{found.locked_by_model:,}", "部影片"),
            Card("人工锁定", f"{found.locked_by_people:,}", "部影片"),
            Card("失败", f"{found.failed_count:,}", f"最近 {DAYS} 天", problem_tone(found.failed_count)),
            Card("原简介太短", f"{found.sourceless_count:,}", f"最近 {DAYS} 天，未改写"),
            Card("等待生成", f"{waiting + queued:,}", f"其中 {queued:,} 部已排队" if found.on else "未开启"),
            Card("费用", f"${found.usd:,.2f}", f"最近 {DAYS} 天"),
        ],
        chapters=[
            Chapter(
                "failures",
                "失败的",
                [_failed(item, found) for item in found.failed],
                f"最近 {DAYS} 天没有写成、至今仍无简介的影片，最近的在前。",
                total=found.failed_count,
            ),
            Chapter(
                "sourceless",
                "没有可改写的原简介",
                [_sourceless(item, found) for item in found.sourceless],
                f"最近 {DAYS} 天因豆瓣简介太短而没有改写的影片：没有原文，情节只能编造。原有简介不变。",
                total=found.sourceless_count,
            ),
            Chapter(
                "queue", "等待中", list(_waiting(found)), "到期的影片在下次运行时排队，每分片每次不超过设定的数目。"
            ),
            Chapter(
                "refusals",
                "核对未通过的原因",
                [_refusal(code, refusals) for code, refusals in found.refusals.items()],
                f"最近 {DAYS} 天，最常见的在前；一篇可有多条。",
            ),
            Chapter("spending", "每天的调用与费用", [_day(str(day), spent) for day, spent in found.days.items()]),
            Chapter(
                "locked_intros",
                "锁定的",
                [_locked(item, found) for item in found.locked],
                "人工锁定的在前，各按最近排列。",
                total=locked,
            ),
        ],
    )


def _rewrite(vod_id: int) -> LinkCell:
    return decision("重写", vod_id, DecisionAction.redo_intro)


def _text(vod_id: int, found: Intros) -> NoteCell:
    return NoteCell(found.texts.get(vod_id, "CMS 中没有简介"))


def _locked(item: LockedIntro, found: Intros) -> dict[str, Cell]:
    return {
        "影片": VideoCell(item.vod_id, found.names[item.vod_id]),
        "由谁": item.model or "人工",
        "锁定时间": item.since,
        "简介": _text(item.vod_id, found),
        "操作": LinesCell((decision("解锁", item.vod_id, DecisionAction.unlock_intro), _rewrite(item.vod_id))),
    }


def _failed(item: FailedIntro, found: Intros) -> dict[str, Cell]:
    return {
        "影片": VideoCell(item.vod_id, found.names[item.vod_id]),
        "失败次数": item.times,
        "最近一次": item.last,
        "原因": item.reason,
        "现有简介": _text(item.vod_id, found),
        "下次": item.until or "间隔期满后",
        "操作": LinesCell((_rewrite(item.vod_id), decision("锁定现有简介", item.vod_id, DecisionAction.lock_intro))),
    }


def _sourceless(item: SourcelessIntro, found: Intros) -> dict[str, Cell]:
    return {
        "影片": VideoCell(item.vod_id, found.names[item.vod_id]),
        "原因": item.reason,
        "时间": item.when,
        "操作": _rewrite(item.vod_id),
    }


def _waiting(found: Intros) -> Iterator[dict[str, Cell]]:
    if found.waiting is not None and found.waiting.count:
        oldest = LinesCell((found.waiting.oldest, "同步字段"))
        yield {"什么": "到期，尚未排队", "数量": found.waiting.count, "其中未到时间": 0, "最早": oldest}
    for item in found.queued:
        text = f"任务：{word_for(TASK_STATUSES, item.status)}"
        oldest = LinesCell((item.created, "入队"))
        yield {"什么": text, "数量": item.count, "其中未到时间": item.later, "最早": oldest}


def _refusal(code: str, refusals: GuardRefusals) -> dict[str, Cell]:
    return {
        "类别": word_for(VIOLATIONS, code),
        "次数": refusals.times,
        "影片数": len(refusals.videos),
        "例": refusals.example,
    }


def _day(day: str, spent: DaySpending) -> dict[str, Cell]:
    return {
        "日期": day,
        "调用": spent.calls,
        "写成": spent.written,
        "核对未通过": spent.refused,
        "无可用回答": spent.failed,
        "费用（美元）": f"{spent.usd:.4f}",
        "token": spent.tokens,
    }
