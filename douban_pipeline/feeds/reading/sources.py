"""The list of sources: cadence, last and next poll, publishing hours, and why; sources are added and changed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from sqlalchemy import Connection, Row, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.launchpad_links import Launchpad, op_config
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.budget_plan import offset_of
from douban_pipeline.feeds.cadence import RSS_CADENCE_INTERVALS
from douban_pipeline.feeds.clock_skew import SourceClock
from douban_pipeline.feeds.reading.pages import ALL, NO_FOLDER, PAGE, Wanted, frame_of, rendered
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import entry_lists, source_lists
from douban_pipeline.feeds.store.tables import entry
from douban_pipeline.feeds.types import Gap, SourceState

ENTERED = ("kind", "url", "title", "folder", "credential")
"""Fields of the form that adds sources."""
_DAY, _HOUR = 86_400, 3_600
_HOURS_DAYS = 60
_MOST_WORDS = 5
STATES = (
    ("", "全部"),
    ("failing", "失败"),
    ("active", "关注中"),
    ("paused", "已暂停"),
    ("gone", "已消失或重复"),
)
DONE = {
    "added": "已关注 {title}，下一轮就抓取。",
    "edited": "已修改 {title}。",
    "known": "{title} 已经关注过，没有改动。",
    "paused": "已暂停 {title}。",
    "resumed": "已恢复 {title}，下一轮就抓取。",
    "removed": "来源已移除，它的条目和抓取记录已删除。",
}
"""What is said after something was done to a source."""
ADDED_KINDS = {"rss": "订阅（或它的网页）", "maccms": "资源站"}


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
    source_id: str
    active: bool
    poll_address: str


def sources_page(
    services: FeedsServices,
    *,
    words: str = "",
    state: str = "",
    folder: str | None = None,
    after: str = "",
    done: str = "",
    of: str = "",
    problem: str = "",
    given: Mapping[str, str] | None = None,
) -> str:
    """Return a page of the list of sources.

    Args:
        services: The services.
        words: Words of title or address.
        state: A key of `STATES`.
        folder: A folder, empty for sources in none; None for all.
        after: Id of the last source of the page before; empty for the first page.
        done: A key of `DONE`, that was done to a source; empty for nothing.
        of: Id of that source.
        problem: Why a source that somebody wanted to add is not followed; empty for none.
        given: What was entered in the form that adds sources.
    """
    now = services.now()
    with reading(services.engine) as connection:
        last = entry_lists.titles_of(connection, [after]).get(after) if after else None
        rows = source_lists.source_page(
            connection,
            (last.title, after) if last is not None else None,
            PAGE + 1,
            words=words.split()[:_MOST_WORDS],
            state=state,
            folder=folder,
        )
        counts = entry_lists.unread_counts(connection)
        lines = [
            source_line(
                connection,
                services,
                row,
                now,
                address=Wanted(ALL, row.source_id).address("", "./"),
                waiting=counts.get(row.source_id, 0),
            )
            for row in rows[:PAGE]
        ]
        names = source_lists.folders(connection)
        frame = frame_of(connection, Wanted(ALL), "", None, lists=False)
        about = entry_lists.titles_of(connection, [of]).get(of) if of else None
    fields = {"q": words, "state": state} | ({"folder": folder} if folder is not None else {})
    kept = {name: value for name, value in fields.items() if value or name == "folder"}
    more = {**kept, "after": rows[PAGE - 1].source_id} if len(rows) > PAGE else {}
    narrowed = words or state or folder is not None
    return rendered(
        "sources.html.j2",
        frame,
        title="来源",
        root="",
        here="sources",
        lines=lines,
        words=words,
        state=state,
        states=STATES,
        folder=folder,
        folder_names=["", *names] if names else [],
        no_folder=NO_FOLDER,
        kinds=ADDED_KINDS,
        given=given or dict.fromkeys(ENTERED, ""),
        problem=problem,
        done=DONE[done].format(title=(about.title or about.url) if about is not None else "") if done in DONE else "",
        empty="没有这样的来源。" if narrowed or after else "还没有关注任何来源：在上面填写地址。",
        said=f"{len(lines)} 个来源",
        first_address=f"sources?{urlencode(kept)}" if after else "",
        next_address=f"sources?{urlencode(more)}" if more else "",
    )


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
    why = row.why or {}
    cadence = f"{cadence_minutes(why.get('cadence') or row.cadence)} · " if why.get("profile") != "budget" else ""
    active = row.state == SourceState.ACTIVE.value
    return SourceLine(
        address=address,
        folder=row.folder or "",
        waiting=waiting,
        title=row.title or row.url,
        url=row.url,
        kind=wording.KINDS.get(row.kind, row.kind),
        state=wording.state_text(row.state) if not active or not row.fail_count else "失败",
        tone="bad" if row.fail_count and active else "",
        cadence=cadence + wording.FREQUENCIES.get(row.frequency_type, ""),
        last=wording.moment_text(row.last_check_at, zone),
        next=wording.moment_text(row.next_due_at, zone),
        hours=sparkline(hours, label),
        found=f"{row.hit_count} / {row.check_count}",
        why=wording.reason_text(row.why, row._asdict()),
        error=failure_text(row.last_error or "")[:200] if row.fail_count else "",
        unread=wording.gap_text(gap, zone) if (gap := Gap.from_json(row.gap)) is not None and active else "",
        clock=wording.clock_text(SourceClock.from_json(row.clock or {}).skew),
        source_id=row.source_id,
        active=active,
        poll_address=_poll_address(services, row.source_id) if active else "",
    )


def _poll_address(services: FeedsServices, source_id: str) -> str:
    """Return the address of a launchpad that polls a source."""
    polled = Launchpad("poll_sources_now", op_config("poll_now", {"dry_run": True, "sources": [source_id]}))
    return services.settings.ui_url.rstrip("/") + polled.path(services.location)


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
