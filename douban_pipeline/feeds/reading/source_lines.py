"""A source as a line of the list of sources: cadence, last and next poll, publishing hours, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from sqlalchemy import Connection, Row, select

from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.launchpad_links import Launchpad, op_config
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.budget_plan import offset_of
from douban_pipeline.feeds.cadence import RSS_CADENCE_INTERVALS
from douban_pipeline.feeds.clock_skew import SourceClock
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store.tables import entry
from douban_pipeline.feeds.types import Gap, SourceState

_DAY, _HOUR = 86_400, 3_600
_HOURS_DAYS = 60


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One source as the list shows it.

    ``waiting`` is the number of its unread entries; ``unread`` says what of it could not be read by a poll.
    """

    address: str
    title: str
    url: str
    folder: str
    waiting: int
    kind: str
    state: str
    tone: str
    cadence: str
    last: str
    next: str
    hours: Markup
    found: str
    why: str
    error: str
    unread: str
    clock: str
    actions: Sequence[tuple[str, str]]


def publishing_hours(connection: Connection, source_id: str, since: int, offset: int) -> list[int]:
    """Return a source's publications since a moment by hour of the day."""
    moments = select(entry.c.published_at).where(entry.c.source_id == source_id, entry.c.published_at >= since)
    counts = [0] * 24
    for moment in connection.execute(moments.distinct().limit(2000)).scalars():
        counts[(moment + offset) % _DAY // _HOUR] += 1
    return counts


def source_line(
    connection: Connection, services: FeedsServices, row: Row[Any], now: int, *, address: str, waiting: int
) -> SourceLine:
    """Return a source as the list shows it, from its row of `source_lists.source_page`."""
    zone = services.settings.zone
    hours = publishing_hours(connection, row.source_id, now - _HOURS_DAYS * _DAY, offset_of(zone, now))
    busiest = max(range(24), key=hours.__getitem__) if any(hours) else None
    label = "还没有发布时间" if busiest is None else f"{sum(hours)} 次发布，最常在 {busiest} 点"
    in_force = (row.why or {}).get("cadence") or row.cadence
    active = row.state == SourceState.ACTIVE.value
    return SourceLine(
        address=address,
        folder=row.folder or "",
        waiting=waiting,
        title=row.title or row.url,
        url=row.url,
        kind=wording.KINDS.get(row.kind, row.kind),
        state=wording.STATES.get(row.state, row.state) if not active or not row.fail_count else "失败",
        tone="bad" if row.fail_count and active else "",
        cadence=f"{cadence_minutes(in_force)} · {wording.FREQUENCIES.get(row.frequency_type, '')}",
        last=wording.moment_text(row.last_check_at, zone),
        next=wording.moment_text(row.next_due_at, zone),
        hours=sparkline(hours, label),
        found=f"{row.hit_count} / {row.check_count}",
        why=wording.reason_text(row.why, row._asdict()),
        error=failure_text(row.last_error or "")[:200] if row.fail_count else "",
        unread=wording.gap_text(gap, zone) if (gap := Gap.from_json(row.gap)) is not None and active else "",
        clock=wording.clock_text(SourceClock.from_json(row.clock or {}).skew),
        actions=_actions(services, row.source_id, active=active),
    )


def _actions(services: FeedsServices, source_id: str, *, active: bool) -> list[tuple[str, str]]:
    """Return the actions on a source: text and address of a launchpad filled in."""
    polled = Launchpad("poll_sources_now", op_config("poll_now", {"dry_run": True, "sources": [source_id]}))
    change: dict[str, Any] = {"dry_run": False, "sources": [source_id]}
    change |= {"reason": "在来源页面上暂停"} if active else {"resume": True}
    changed = Launchpad("pause_sources", op_config("change_states", change))
    launches = [("立即抓取", polled), ("暂停", changed)] if active else [("恢复", changed)]
    return [(text, services.settings.ui_url.rstrip("/") + each.path(services.location)) for text, each in launches]


def sparkline(hours: Sequence[int], label: str) -> Markup:
    """Return the publications of each of 24 hours as small columns, with ``label`` for screen readers."""
    most = max([*hours, 1])
    bars = "".join(
        f'<rect x="{4 * hour}" y="{18 - height:g}" width="3" height="{height:g}"/>'
        for hour, height in enumerate(round(16 * count / most, 1) for count in hours)
        if height
    )
    text = Markup.escape(label)
    return Markup(  # noqa: S704 (numbers, and a label that is escaped)
        f'<svg class="hours" viewBox="0 0 96 20" width="96" height="20" role="img" aria-label="{text}">'
        f'<title>{text}</title><path d="M0 19.5h96M24 19.5v-3M48 19.5v-3M72 19.5v-3"/>{bars}</svg>'
    )


def cadence_minutes(cadence: str) -> str:
    """Return a cadence with its interval: ``P2 · 1 时``."""
    seconds = RSS_CADENCE_INTERVALS.get(cadence, 0)
    return f"{cadence} · " + (f"{seconds // 60} 分" if seconds < _HOUR else f"{seconds // _HOUR} 时")
