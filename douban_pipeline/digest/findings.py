"""Selects findings from analyses, and formats the titles and texts of messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from douban_pipeline.digest.types import DayOutcome, DayStats, Finding

_NEVER = datetime.max.replace(tzinfo=UTC)
_SHOWN = 10


DOUBTFUL, WITHHELD = "⚠ 存疑 ", "⚠ 未推送 "
"""Marks of a finding that the article's text may have raised, and of an analysis that is no finding without it."""


def reaching(rows: Sequence[Finding], threshold: int) -> list[Finding]:
    """Return the analyses whose score reaches the threshold, best first, including doubtful ones.

    The order among equals: the earlier published, then the smaller id.
    """
    found = [row for row in rows if row.score >= threshold]
    return sorted(found, key=lambda row: (-row.score, row.published_at or _NEVER, row.analysis_id))


def finding_title(slot: str, findings: Sequence[Finding]) -> str:
    """Return the title of a slot's message."""
    return f"【机会提醒】{slot} 发现 {len(findings)} 条（最高分 {findings[0].score}）"


def finding_body(findings: Sequence[Finding]) -> str:
    """Return the text of a slot's message: the best finding, and the titles of the others; doubtful ones are marked."""
    best = findings[0]
    lines = [f"{marked(best)}{best.title}（{best.mp_name}，{best.score} 分）", best.summary, *best.suspicions]
    lines += [f"{marked(each)}{each.score} 分 · {each.title}（{each.mp_name}）" for each in findings[1:_SHOWN]]
    return "\n".join(lines)


def marked(finding: Finding) -> str:
    """Return the mark before the title of a doubtful finding, empty for others."""
    return DOUBTFUL if finding.suspicions else ""


def outcome_of(stats: DayStats) -> DayOutcome:
    """Return what a day came to.

    That nothing was found can be said only of what was read: a day of which nothing was analysed has that outcome only
    if every slot that ran could read its sources, and no article was there to be analysed.
    """
    if stats.findings:
        return DayOutcome.FOUND
    if stats.analyses:
        return DayOutcome.NOTHING_FOUND
    if stats.unread or stats.failures or stats.waiting or not stats.slots_done:
        return DayOutcome.UNREAD
    return DayOutcome.NOTHING_FOUND


def headline(stats: DayStats) -> str:
    """Return what a day came to in a few words; the title of its message and of its page."""
    outcome = outcome_of(stats)
    left = stats.failures + stats.waiting
    if outcome is DayOutcome.UNREAD:
        return f"今日 {left} 篇文章都没能分析，有无机会不知道" if left else "今日没能读取文章，有无机会不知道"
    if not stats.analyses:
        return "今日没有新文章"
    gaps = [f"{left} 篇未能分析"] if left else []
    gaps += [f"{'、'.join(stats.unread)} 没有读到来源"] if stats.unread else []
    missing = f"；另有 {'，'.join(gaps)}" if gaps else ""
    if outcome is DayOutcome.FOUND:
        return f"{stats.findings} 条机会（最高分 {stats.best_score}）{missing}"
    return f"已读 {stats.analyses} 篇，没有投资机会{missing}"


def coverage(stats: DayStats) -> str:
    """Return how much of a day was read and analysed, as a sentence."""
    parts = [f"收到 {stats.articles} 篇", f"分析 {stats.analyses} 篇", f"失败 {stats.failures} 篇"]
    parts += [f"等待 {stats.waiting} 篇"] if stats.waiting else []
    parts += [f"存疑 {stats.doubtful} 篇"] if stats.doubtful else []
    parts += [f"存疑而未推送 {stats.withheld} 篇"] if stats.withheld else []
    parts += [f"没有读到来源的时段 {'、'.join(stats.unread)}"] if stats.unread else []
    parts += [f"没有运行的时段 {'、'.join(stats.missed)}"] if stats.missed else []
    return "，".join(parts)


def report_title(day: str, stats: DayStats) -> str:
    """Return the title of a day's message."""
    return f"【日报】{day}：{headline(stats)}"
