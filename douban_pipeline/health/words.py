"""Names and numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping

TASK_TYPES: Mapping[str, str] = {
    "MATCH_DOUBAN_ID": "匹配条目",
    "SYNC_DOUBAN": "更新字段",
    "AI_INTRO": "AI 简介",
    "RECHECK": "复查",
}
TASK_STATUSES: Mapping[str, str] = {
    "PENDING": "排队",
    "RUNNING": "进行中",
    "SUCCESS": "成功",
    "FAIL": "失败",
    "SKIP": "跳过",
}
VERDICTS: Mapping[str, str] = {
    "CONFIRMED": "自动确认",
    "REVIEW": "待审核",
    "NOT_FOUND": "未找到",
    "UNDECIDED": "暂不判断",
}


def name(names: Mapping[str, str], key: str) -> str:
    """Return the name of ``key``; one that is not known stands for itself."""
    return names.get(key, key)


def percent(share: float | None) -> str:
    """Return a share of 0 to 1 as a percentage, a dash for None."""
    return "—" if share is None else f"{share:.1%}"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit that makes it readable."""
    size, unit = time_unit(seconds)
    return f"{_number(seconds / size)} {unit}"


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a duration is readable: its seconds, and its name."""
    for limit, size, unit in ((90, 1.0, "秒"), (5400, 60.0, "分"), (172_800, 3600.0, "小时")):
        if seconds < limit:
            return size, unit
    return 86_400.0, "天"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{round(value, 1 if value >= 10 else 2):g}"
