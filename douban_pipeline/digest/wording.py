"""Chinese texts of the digest for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from douban_pipeline.digest.store.slots import SlotClaim
from douban_pipeline.digest.types import AnalysedStatus, BodyState, Finding, SlotStatus

CLAIMS = {
    SlotClaim.DONE: "这个时段已经成功，不再重复",
    SlotClaim.BUSY: "另一个运行正在处理这个时段",
    SlotClaim.TAKEN: "已领取",
}
SLOT_STATUSES = {
    SlotStatus.RUNNING: "进行中",
    SlotStatus.SUCCESS: "成功",
    SlotStatus.FAILED: "失败",
}
ANALYSED = {
    AnalysedStatus.WAITING: "待分析",
    AnalysedStatus.UNDER_WAY: "分析中",
    AnalysedStatus.DONE: "已分析",
    AnalysedStatus.FAILED: "失败待重试",
    AnalysedStatus.GIVEN_UP: "多次失败，已放弃",
    AnalysedStatus.NOTHING: "没有可分析的内容",
    AnalysedStatus.DOUBLE: "与已有文章相同",
}
BODIES = {
    BodyState.PENDING: "正文未到",
    BodyState.READY: "有正文",
    BodyState.NONE: "始终没有正文",
    BodyState.GONE: "发布者已删除",
}


def finding_rows(found: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return findings as rows of a table."""
    return [
        {
            "分数": each.score,
            "标题": each.title,
            "公众号": each.mp_name,
            "摘要": each.summary[:200],
            "存疑": "、".join(each.suspicions),
        }
        for each in found
    ]
