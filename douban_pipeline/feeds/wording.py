"""Chinese texts for people of the feeds system. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.feeds.store.tables import NEVER_DUE
from douban_pipeline.feeds.types import Gap, GapReason, SourceState

KINDS = {"rss": "订阅", "werss": "公众号", "maccms": "资源站", "json": "JSON 列表"}
STATES = {
    SourceState.ACTIVE.value: "关注中",
    SourceState.PAUSED.value: "已暂停",
    SourceState.GONE.value: "已消失",
    SourceState.DUPLICATE.value: "重复",
}
FREQUENCIES = {
    "realtime": "实时",
    "high": "高频",
    "daily": "每天",
    "daily_fixed": "隔天",
    "weekly": "每周",
    "monthly": "每月",
    "low": "很少",
}
ORIGINS = {"manual": "手动", "learned": "学到的", "silent": "久未发布"}
_ORIGINS = {"manual": "已知发布不足 3 次，按手动节奏", "learned": "按学到的节奏", "silent": "久未发布，放慢"}
_BOUNDS = {
    "accrual": "集中在常发布的时段",
    "interval": "无固定时段，按固定间隔加抖动",
    "floor": "来源要求不早于此时（Retry-After 或 max-age）",
    "budget": "预算用在最能缩短延迟处",
    "max_gap": "到了最长间隔",
}


_GAPS = {
    GapReason.LIMIT: "一次抓取最多读的页数读完了，全是新的",
    GapReason.TIME: "这次抓取的时间用完了",
    GapReason.FAILED: "下一页没有读到（{error}）",
    GapReason.REPEATED: "下一页给的还是前面的内容，翻不了页",
}


def gap_text(gap: Gap, zone: ZoneInfo) -> str:
    """Return, as a sentence, what of a source remains unread, and what happens next."""
    since = moment_text(gap.at, zone)
    if gap.reason is GapReason.ANSWER:
        return f"{since} 起有没读到的更新：一次应答的条目超过 500 条，读到的全是新的，后面的没有读；请调大这个设置"
    reason = _GAPS[gap.reason].format(error=failure_text(gap.error))
    return f"{since} 起有没读到的更新：{reason}；下次抓取从第 {gap.page} 页接着读"


_WRITTEN = {
    "ttl": "订阅源的 ttl",
    "sy": "订阅源的 sy:updatePeriod",
    "max-age": "应答的 Cache-Control: max-age",
    "expires": "应答的 Expires",
}


def own_gap_text(seconds: int, written: str) -> str:
    """Return, as a sentence, how rarely a source's publisher wants it polled."""
    return f"来源要求至少隔 {seconds / 3600:.3g} 小时（{_WRITTEN.get(written, written)}，最多遵守一天）"


def clock_text(skew: int) -> str:
    """Return, as a sentence, by how much a source's times are corrected; empty if they are not."""
    if not skew:
        return ""
    return f"来源写的时间{'快' if skew < 0 else '慢'} {abs(skew) / 3600:g} 小时，已校正"


def moment_text(moment: int | None, zone: ZoneInfo) -> str:
    """Return a time in the form used on the site; a dash for none and for never."""
    return local_time(datetime.fromtimestamp(moment, UTC), zone) if moment and moment < NEVER_DUE else "—"


def reason_text(why: Mapping[str, Any] | None, stats: Mapping[str, Any]) -> str:
    """Return, as a sentence, why a source is polled at its next time."""
    if stats.get("state", SourceState.ACTIVE.value) != SourceState.ACTIVE.value:
        return str(stats.get("state_reason") or STATES.get(str(stats.get("state")), ""))
    if not why:
        return "还没有抓取过"
    if why.get("bound") == "floor" and why.get("floor_from"):
        return own_gap_text(int(why.get("floor_gap", 0)), str(why["floor_from"]))
    profile = why.get("profile")
    if profile == "websub":
        return "由 WebSub 推送；每天抓取一次作为后备"
    if profile == "failure":
        return f"连续失败 {why.get('failures', 0)} 次（{failure_text(str(why.get('error', '')))}），退避中"
    if profile == "gate":
        return "所在主机的闸门关闭，顺延"
    bound = _BOUNDS.get(str(why.get("bound")), "")
    if profile == "budget":
        return (
            f"{bound}：到那时预计有 {why.get('expected', 0):.2f} 次新发布"
            f"（每天约 {why.get('a_day', 0):.2f} 次），占每日预算 {100 * why.get('share', 0):.3f}%"
        )
    return f"{why.get('cadence', '')}，{_ORIGINS.get(str(why.get('origin')), '')}；{bound}"
