"""Texts for people of the feeds system: Chinese on pages, in a terminal in its language. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.language import reader_text, translatable
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.feeds.store.tables import NEVER_DUE
from douban_pipeline.feeds.types import Gap, GapReason, SourceState

KINDS = {"rss": "订阅", "werss": "公众号", "maccms": "资源站", "json": "JSON 列表"}
_STATES = {
    SourceState.ACTIVE.value: translatable("followed"),
    SourceState.PAUSED.value: translatable("paused by hand"),
    SourceState.GONE.value: translatable("gone"),
    SourceState.DUPLICATE.value: translatable("a duplicate"),
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
_ORIGINS = {
    "manual": translatable("fewer than 3 publications are known, so by the manual cadence"),
    "learned": translatable("by the cadence that was learned"),
    "silent": translatable("silent for long, so more slowly"),
}
_BOUNDS = {
    "accrual": translatable("more often in its usual hours"),
    "interval": translatable("it has no usual hours, so at its interval, with some jitter"),
    "floor": translatable("the source asks not to be polled earlier (Retry-After or max-age)"),
    "budget": translatable("where the budget shortens delays most"),
    "max_gap": translatable("the longest gap is over"),
}
_GAPS = {
    GapReason.LIMIT: translatable("every page that one poll may read was new"),
    GapReason.TIME: translatable("the time of the poll was over"),
    GapReason.FAILED: translatable("the next page could not be read ({error})"),
    GapReason.REPEATED: translatable("the next page had the same rows again, so there are no pages"),
}


def state_text(state: str) -> str:
    """Return the state of a source in words."""
    return reader_text(_STATES[state]) if state in _STATES else state


def gap_text(gap: Gap, zone: ZoneInfo) -> str:
    """Return, as a sentence, what of a source remains unread, and what happens next."""
    since = moment_text(gap.at, zone)
    if gap.reason is GapReason.ANSWER:
        message = reader_text(
            "unread updates since {since}: an answer had more than 500 entries, all new, and what follows is not read"
        )
        return message.format(since=since)
    reason = reader_text(_GAPS[gap.reason]).format(error=failure_text(gap.error))
    message = reader_text("unread updates since {since}: {reason}; the next poll reads on from page {page}")
    return message.format(since=since, reason=reason, page=gap.page)


_WRITTEN = {
    "ttl": translatable("the feed's ttl"),
    "sy": translatable("the feed's sy:updatePeriod"),
    "max-age": translatable("the answer's Cache-Control: max-age"),
    "expires": translatable("the answer's Expires"),
}


def own_gap_text(seconds: int, written: str) -> str:
    """Return, as a sentence, how rarely a source's publisher wants it polled."""
    message = reader_text("the source asks for {hours} h between polls ({written}; a day is honoured at most)")
    return message.format(hours=f"{seconds / 3600:.3g}", written=reader_text(_WRITTEN.get(written, written)))


def clock_text(skew: int) -> str:
    """Return, as a sentence, by how much a source's times are corrected; empty if they are not."""
    if not skew:
        return ""
    ahead, behind = (
        reader_text("its times are {hours} h ahead, corrected"),
        reader_text("its times are {hours} h behind, corrected"),
    )
    return (ahead if skew < 0 else behind).format(hours=f"{abs(skew) / 3600:g}")


def moment_text(moment: int | None, zone: ZoneInfo) -> str:
    """Return a time in the form used on the site; a dash for none and for never."""
    return local_time(datetime.fromtimestamp(moment, UTC), zone) if moment and moment < NEVER_DUE else "—"


def reason_text(why: Mapping[str, Any] | None, stats: Mapping[str, Any]) -> str:
    """Return, as a sentence, why a source is polled at its next time."""
    if stats.get("state", SourceState.ACTIVE.value) != SourceState.ACTIVE.value:
        return failure_text(str(stats.get("state_reason") or "")) or state_text(str(stats.get("state")))
    if not why:
        return reader_text("not polled yet")
    if why.get("bound") == "floor" and why.get("floor_from"):
        return own_gap_text(int(why.get("floor_gap", 0)), str(why["floor_from"]))
    profile = why.get("profile")
    if profile == "failure":
        message = reader_text("{failures} failures in a row ({error}), so it backs off")
        return message.format(failures=why.get("failures", 0), error=failure_text(str(why.get("error", ""))))
    if profile == "gate":
        return reader_text("the gate of its host is closed, so it is deferred")
    bound = reader_text(_BOUNDS.get(str(why.get("bound")), ""))
    if profile == "budget":
        message = reader_text(
            "{bound}: {expected} publications are expected by then (about {a_day} a day), {share} of the daily budget"
        )
        numbers = {name: f"{why.get(name, 0):.2f}" for name in ("expected", "a_day")}
        return message.format(bound=bound, share=f"{why.get('share', 0):.3%}", **numbers)
    origin = reader_text(_ORIGINS.get(str(why.get("origin")), ""))
    return reader_text("{cadence}, {origin}; {bound}").format(
        cadence=why.get("cadence", ""), origin=origin, bound=bound
    )
