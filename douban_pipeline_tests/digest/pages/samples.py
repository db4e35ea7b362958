"""A day as pages show it, with everything a page can have, and hostile words in all of it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from douban_pipeline.digest.page_data import (
    AnalysisView,
    DayView,
    FailureView,
    OpportunityView,
    SlotView,
    TopView,
)

DAY = date(2026, 11, 20)
MADE = datetime(2026, 11, 20, 14, 3, tzinfo=UTC)
MARKDOWN = """\
## 今日要点

- **铜**：供给收紧，加工费走低
- 电网投资加速

| 方向 | 强度 |
|--|--|
| 铜 | 强 |
"""
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">'


def analysis(number: int, score: int, **fields: Any) -> AnalysisView:
    given: dict[str, Any] = {
        "analysis_id": number,
        "title": f"铜价上行与冶炼加工费（{number}）",
        "mp_name": "有色观察",
        "url": f"https://mp.weixin.qq.com/s/demo{number}",
        "published_at": MADE - timedelta(hours=number),
        "report_date": DAY,
        "slot": "14:00",
        "score": score,
        "is_finding": score >= 60,
        "summary": "智利矿山减产，加工费跌至历史低位，冶炼厂检修增加，四季度供给偏紧；需求端电网订单保持增长。",
        "opportunities": [
            OpportunityView("大宗商品", "铜供给收紧", ["铜", "有色金属 ETF"], "供给缺口扩大", "需求不及预期", "3 个月")
        ]
        if score >= 60
        else [],
        "model": "deepseek-flash",
    }
    return AnalysisView(**{**given, **fields})


def day(**fields: Any) -> DayView:
    given: dict[str, Any] = {
        "report_date": DAY,
        "made_at": MADE,
        "digest_md": MARKDOWN,
        "top": [TopView("铜供给收紧", 86, "供给缺口扩大，库存处于五年低位", 1)],
        "watchlist": ["智利矿山复产进度", "冶炼厂检修公告"],
        "analyses": [analysis(1, 86), analysis(2, 71, suspicions=["正文里有写给模型的指令"]), analysis(3, 35)],
        "failures": [FailureView("读不出的文章", "有色观察", "https://mp.weixin.qq.com/s/x", "模型三次没有给出 JSON")],
        "slots": [SlotView(slot, "完成", "good") for slot in ("07:00", "12:00", "14:00", "18:00", "22:00")],
    }
    return DayView(**{**given, **fields})
