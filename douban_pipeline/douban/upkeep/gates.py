"""The sources' gates for people: their state as text, and opening and closing them by hand."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from douban_pipeline.core.clock import moment_in
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.gate import GateStatus
from douban_pipeline.core.gate_evidence import DoubtWindow
from douban_pipeline.core.gate_rules import GateState
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.wording import SOURCE_NAMES

MOST_MINUTES = 7 * 24 * 60
"""Longest time that a person may open a breaker for: a typing error must not stop a source for a year."""
LONGEST_NAME = 64

_STATES = {GateState.CLOSED: "放行", GateState.OPEN: "暂停", GateState.HALF_OPEN: "试探中"}
_BY_ITSELF = "自动"


class GateAction(enum.StrEnum):
    """What a person does to a breaker; as in electricity, an open breaker lets nothing through."""

    open = "open"
    close = "close"


class GateChangeError(ProblemsError):
    """A gate cannot be changed as requested; ``problems`` holds a sentence for each reason."""


@dataclass(frozen=True, slots=True)
class GateChange:
    """A change of a breaker, made or (in a dry run) planned.

    Attributes:
        before: The source before the change.
        until: When one call may probe it; None if calls pass from now on.
    """

    before: GateStatus
    until: datetime | None


def set_by_hand(
    services: Services, source: str, action: GateAction, *, minutes: int, reviewer: str, note: str, dry_run: bool
) -> GateChange:
    """Open the breaker of ``source`` for ``minutes``, or close it, on behalf of ``reviewer``.

    Raises:
        GateChangeError: There are problems; all of them are named, and nothing is changed.
        GateUnreadable: The gate's table cannot be read or written.
    """
    reviewer, note, source = reviewer.strip(), note.strip(), source.strip()
    known = {status.source: status for status in services.gate.status()}
    problems = [] if reviewer else ["reviewer: 请填写你的名字"]
    problems += [f"reviewer: 名字最多 {LONGEST_NAME} 个字符"] if len(reviewer) > LONGEST_NAME else []
    problems += [] if note else ["note: 请写明原因"]
    if source not in known:
        problems.append(f"source: 没有 {source or '空白'} 这个来源；已知的有：{'、'.join(known) or '无'}")
    if action is GateAction.open and not 1 <= minutes <= MOST_MINUTES:
        problems.append(f"minutes: 暂停的分钟数须在 1 到 {MOST_MINUTES} 之间")
    if problems:
        raise GateChangeError(problems)
    until = services.clock.now() + timedelta(minutes=minutes) if action is GateAction.open else None
    if not dry_run:
        if until is None:
            services.gate.close(source, by=reviewer)
        else:
            services.gate.open(source, until, note, by=reviewer)
    return GateChange(known[source], until)


def revisit_window(services: Services, source: str, since: str, until: str, reviewer: str, note: str) -> DoubtWindow:
    """Return the period, typed as text, in which empty answers of ``source`` are not trusted.

    Raises:
        GateChangeError: There are problems; all of them are named.
    """
    known = sorted(services.settings.search_urls)
    problems = [] if reviewer.strip() else ["reviewer: 请填写你的名字"]
    problems += [] if note.strip() else ["note: 请写明原因"]
    problems += (
        [] if source in known else [f"source: 没有 {source or '空白'} 这个搜索来源；在用的有：{'、'.join(known)}"]
    )
    moments: list[datetime | None] = []
    for name, text in (("since", since), ("until", until)):
        try:
            moments.append(moment_in(text, services.settings.zone))
        except ValueError as error:
            problems.append(f"{name}: {error}")
        else:
            problems += [] if moments[-1] else [f"{name}: 请填写时间"]
    given = [moment for moment in moments if moment is not None]
    if len(given) == 2 and given[0] >= given[1]:
        problems.append("until: 必须晚于 since")
    if problems:
        raise GateChangeError(problems)
    start, end = moments
    assert start is not None
    return DoubtWindow(start, end, revisited=True)


def not_closed(statuses: Iterable[GateStatus]) -> list[GateStatus]:
    """Return the sources whose breaker is open or half-open."""
    return [status for status in statuses if status.state is not GateState.CLOSED]


def closed_reason(status: GateStatus, now: datetime, zone: ZoneInfo) -> str:
    """Return in a phrase until when and why a source gets no calls."""
    who = f"{status.changed_by}：" if status.changed_by else ""
    why = f"{who}{failure_text(status.reason)}"
    return f"{status.source}（{state_of(status, now)}，至 {local_time(status.open_until, zone)}，{why}）"


def state_of(status: GateStatus, now: datetime) -> str:
    """Return a breaker's state for people."""
    if status.state is GateState.OPEN and status.open_until is not None and status.open_until <= now:
        return "到期，等待试探"
    return _STATES[status.state]


def gate_row(status: GateStatus, now: datetime, zone: ZoneInfo) -> dict[str, object]:
    """Return one source's row in the table of gates; few columns, so that they fit a page."""
    spans = (timedelta(minutes=5), timedelta(minutes=60))
    rates = [success_rate(status, now, span) for span in spans]
    return {
        "来源": f"{SOURCE_NAMES.get(status.source, '')} {status.source}".strip(),
        "状态": _state_sentence(status, now, zone),
        "上一分钟 / 上限": _of(requests_of_last_minute(status, now), status.requests_per_minute),
        "今日 / 配额": _of(status.used_today, status.requests_per_day),
        "今日 token / 配额": _of(status.tokens_today, status.tokens_per_day) if status.tokens_per_day else "",
        "成功率 5 / 60 分钟": " / ".join(map(_share, rates)) if rates[1] is not None else "",
    }


def _state_sentence(status: GateStatus, now: datetime, zone: ZoneInfo) -> str:
    """Return the state in a sentence: until when, why, and by whom."""
    if status.state is GateState.CLOSED:
        fewer = f"限流后并发 {status.at_once} / {status.concurrency}" if status.at_once < status.concurrency else ""
        return "；".join(filter(None, (state_of(status, now), fewer, status.doubt)))
    who = status.changed_by or _BY_ITSELF
    return f"{state_of(status, now)}，至 {local_time(status.open_until, zone)}：{failure_text(status.reason)}（{who}）"


def requests_of_last_minute(status: GateStatus, now: datetime) -> int:
    """Return the number of calls admitted in the last full minute."""
    this_minute = now.replace(second=0, microsecond=0)
    return sum(item.granted for item in status.minutes if item.start == this_minute - timedelta(minutes=1))


def success_rate(status: GateStatus, now: datetime, span: timedelta) -> float | None:
    """Return which share of the calls succeeded in the last minutes, the present one included; None without any."""
    recent = [item for item in status.minutes if item.start > now - span]
    succeeded = sum(item.succeeded for item in recent)
    ended = succeeded + sum(item.failed for item in recent)
    return succeeded / ended if ended else None


def _of(used: int, allowed: float | None) -> str:
    return f"{used:,}" if allowed is None else f"{used:,} / {allowed:,.10g}"


def _share(rate: float | None) -> str:
    return "—" if rate is None else f"{rate:.0%}"
