"""Selects findings from analyses, and formats the titles and texts of messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from douban_pipeline.digest.types import Finding

_NEVER = datetime.max.replace(tzinfo=UTC)
_SHOWN = 10


def reaching(rows: Sequence[Finding], threshold: int) -> list[Finding]:
    """Return the analyses whose score reaches the threshold, best first, including suspicious ones.

    The order among equals: the earlier published, then the smaller id.
    """
    found = [row for row in rows if row.score >= threshold]
    return sorted(found, key=lambda row: (-row.score, row.published_at or _NEVER, row.analysis_id))


def pushable(rows: Sequence[Finding]) -> list[Finding]:
    """Return those that may be pushed automatically: whose texts contain no instructions to the model."""
    return [row for row in rows if not row.suspicions]


def finding_title(slot: str, findings: Sequence[Finding]) -> str:
    """Return the title of a slot's message."""
    return f"【机会提醒】{slot} 发现 {len(findings)} 条（最高分 {findings[0].score}）"


def finding_body(findings: Sequence[Finding]) -> str:
    """Return the text of a slot's message: the best finding, and the titles of the others."""
    best = findings[0]
    lines = [f"{best.title}（{best.mp_name}，{best.score} 分）", best.summary]
    lines += [f"{each.score} 分 · {each.title}（{each.mp_name}）" for each in findings[1:_SHOWN]]
    return "\n".join(lines)


def report_title(day: str, findings: Sequence[Finding]) -> str:
    """Return the title of a day's message."""
    if not findings:
        return f"【日报】{day}：今日无投资机会"
    return f"【日报】{day}：{len(findings)} 条机会（最高分 {findings[0].score}）"
