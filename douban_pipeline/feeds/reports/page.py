"""The page ``feeds.html``: every source with its cadence, last and next poll, publishing hours, and the reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup
from sqlalchemy import Connection, Row, func, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.launchpad_links import Launchpad, op_config
from douban_pipeline.core.ui.live_tables import page_policy, table_style, tables_script
from douban_pipeline.core.ui.plots import Series, Track, columns, timeline
from douban_pipeline.core.ui.templates import Card, render
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.alerts import causes
from douban_pipeline.feeds.budget_plan import BudgetPlan, offset_of, read_plan
from douban_pipeline.feeds.cadence import RSS_CADENCE_INTERVALS
from douban_pipeline.feeds.clock_skew import SourceClock
from douban_pipeline.feeds.scheduler import get_scheduler_stats, hit_rate
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import polls, stats
from douban_pipeline.feeds.store.tables import entry, newcomer
from douban_pipeline.feeds.types import Gap, SourceState

NAME = "feeds.html"
MOST_SOURCES = 2000
_WORST = 10
_DAY, _HOUR = 86_400, 3_600
_HOURS_DAYS = 60


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One source as the page shows it."""

    title: str
    url: str
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


@dataclass(frozen=True, slots=True)
class FeedsView:
    """Data of page and plots."""

    now: int
    figures: Mapping[str, Any]
    lines: Sequence[SourceLine]
    left_out: int
    worst: Sequence[Mapping[str, Any]]
    plots: Mapping[str, str]
    newcomers: int
    budget: Mapping[str, str]
    causes: Sequence[str]


def look(services: FeedsServices) -> FeedsView:
    """Read the page's data."""
    now, zone = services.now(), services.settings.zone
    with reading(services.engine) as connection:
        figures = get_scheduler_stats(connection, now=now)
        rows = _rows(connection)
        lines = [_line(connection, services, row, now) for row in rows]
        found = polls.by_hour(connection, now - HOURS_SHOWN * _HOUR)
        late = polls.delays_since(connection, now - 7 * _DAY)
        history = polls.cadences_since(connection, now - CADENCE_DAYS * _DAY)
        waiting = connection.execute(select(func.count()).where(newcomer.c.taken_at.is_(None))).scalar_one()
        plan = read_plan(connection) if services.settings.profile == "budget" else None
        budget = _budget(connection, plan, now) if plan is not None else {}
        lasting = [cause.sentence for cause in causes(services, connection)]
    drawn = {
        "抓取": polls_by_hour(found, now, zone),
        "延迟": delays(late),
        "节奏": cadences(history, now, zone),
    }
    shown = {name: svg for name, svg in drawn.items() if svg}
    left_out = max(figures["total"] - len(lines), 0)
    return FeedsView(now, figures, lines, left_out, worst_sources(rows), shown, waiting, budget, lasting)


def _budget(connection: Connection, plan: BudgetPlan, now: int) -> dict[str, str]:
    """Return polls of a day: the budget, what is planned, what was really made, and how the plan is corrected."""
    first = polls.first_since(connection, now - _DAY)
    hours = min(math.ceil((now - first) / _HOUR), 24) if first is not None else 0
    made, _ = polls.made_between(connection, now - _DAY, now + 1)
    return {
        "budget": f"{plan.polls_per_day:,.0f}",
        "planned": f"{plan.allocation.polls:,.0f}",
        "made": f"{made:,}",
        "hours": f"过去 {hours} 小时" if hours else "还没有抓取",
        "correction": f"{plan.correction:.2f}",
    }


def _rows(connection: Connection) -> list[Row[Any]]:
    """Return sources: failing ones first, then by due time."""
    found: list[Row[Any]] = []
    after = ""
    while rows := stats.with_sources(connection, after):
        found += rows
        after = rows[-1].source_id
    found.sort(key=lambda row: (row.fail_count == 0, row.next_due_at or 0, row.source_id))
    return found[:MOST_SOURCES]


def worst_sources(rows: Sequence[Row[Any]]) -> list[dict[str, Any]]:
    """Return the ten sources that fail most, or yield least for their cost, with the reason."""
    failing = [row for row in rows if row.fail_count and row.state == SourceState.ACTIVE.value]
    useless = [
        row for row in rows if not row.fail_count and row.check_count >= 50 and row.state == SourceState.ACTIVE.value
    ]
    failing.sort(key=lambda row: -row.fail_count)
    useless.sort(key=lambda row: (hit_rate(row.hit_count, row.check_count), -row.check_count))
    found = [
        {
            "来源": row.title or row.url,
            "问题": f"连续失败 {row.fail_count} 次：{failure_text(row.error_kind)}",
            "原因": failure_text(row.last_error or "")[:200],
        }
        for row in failing
    ]
    found += [
        {
            "来源": row.title or row.url,
            "问题": f"{row.check_count} 次抓取只有 {row.hit_count} 次有新条目",
            "原因": wording.reason_text(row.why, row._asdict()),
        }
        for row in useless
    ]
    return found[:_WORST]


def publishing_hours(connection: Connection, source_id: str, since: int, offset: int) -> list[int]:
    """Return a source's publications since a moment by hour of the day."""
    moments = select(entry.c.published_at).where(entry.c.source_id == source_id, entry.c.published_at >= since)
    counts = [0] * 24
    for moment in connection.execute(moments.distinct().limit(2000)).scalars():
        counts[(moment + offset) % _DAY // _HOUR] += 1
    return counts


def _line(connection: Connection, services: FeedsServices, row: Row[Any], now: int) -> SourceLine:
    zone = services.settings.zone
    hours = publishing_hours(connection, row.source_id, now - _HOURS_DAYS * _DAY, offset_of(zone, now))
    busiest = max(range(24), key=hours.__getitem__) if any(hours) else None
    label = "还没有发布时间" if busiest is None else f"{sum(hours)} 次发布，最常在 {busiest} 点"
    in_force = (row.why or {}).get("cadence") or row.cadence
    active = row.state == SourceState.ACTIVE.value
    return SourceLine(
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


def page(view: FeedsView, services: FeedsServices) -> str:
    """Return the page."""
    figures = view.figures
    failing = "bad" if figures["failing"] else ""
    cards = [
        Card("来源", f"{figures['active']:,}", f"共 {figures['total']:,} 个"),
        Card("到期", f"{figures['due']:,}", "等待抓取"),
        Card("失败", f"{figures['failing']:,}", f"{figures['in_backoff']:,} 个退避中", failing),
        Card("命中率", f"{100 * figures['hit_rate']:.1f}%", f"{figures['hits']:,} / {figures['checks']:,} 次抓取"),
    ]
    if view.budget:
        made, hours = view.budget["made"], view.budget["hours"]
        note = f"计划一天 {view.budget['planned']} 次，预算 {view.budget['budget']} 次"
        cards.append(Card("实际抓取", made, f"{hours}；{note}"))
    if view.newcomers:
        cards.append(Card("待入库影片", f"{view.newcomers:,}", "资源站的新片和更新"))
    chapters = [{"key": "causes", "title": "需要处理"}] if view.causes else []
    chapters.append({"key": "sources", "title": "来源"})
    if view.worst:
        chapters.append({"key": "worst", "title": "最该看的"})
    if view.plots:
        chapters.append({"key": "plots", "title": "图"})
    made = wording.moment_text(view.now, services.settings.zone)
    profile = {"plan": "按节奏", "budget": "按预算"}[services.settings.profile]
    # Finds make later polls rarer than planned: by so much more is polled, according to the polls really made.
    about_budget = f"按实际抓取校正 {view.budget['correction']} 倍" if view.budget else ""
    about = " · ".join(filter(None, (f"{made} 生成", f"调度方式：{profile}", about_budget)))
    return render(
        __package__,
        "feeds.html.j2",
        title="关注的来源",
        badge="",
        about=about,
        lang="zh-Hans",
        cards=cards,
        chapters=chapters,
        lines=view.lines,
        left_out=view.left_out,
        causes=view.causes,
        worst=view.worst,
        policy=page_policy(tables_script()),
        style=table_style(),
        script=tables_script().text,
        plots=[Markup(svg) for svg in view.plots.values()],  # noqa: S704 (made by core.ui.plots, which escapes)
    )


HOURS_SHOWN = 48
CADENCE_DAYS = 14
_DELAY_BOUNDS = (60, 300, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400)
_DELAY_NAMES = ("≤1分", "5分", "15分", "30分", "1时", "2时", "4时", "8时", "1天", ">1天")
_CADENCE_GROUPS = (("P0–P1", ("P0", "P1")), ("P2", ("P2",)), ("P3–P4", ("P3", "P4")), ("P5–P6", ("P5", "P6")))


def polls_by_hour(hours: Sequence[Mapping[str, int]], now: int, zone: ZoneInfo) -> str:
    """Return polls by hour and their hits; empty without any."""
    if not hours:
        return ""
    found = {hour["hour"]: hour for hour in hours}
    last = now - now % _HOUR
    shown = [last - back * _HOUR for back in range(HOURS_SHOWN - 1, -1, -1)]
    local = [datetime.fromtimestamp(moment, zone) for moment in shown]
    names = (("有新条目", "hits", 3), ("没有变化", "misses", 1), ("失败", "failures", 2))
    return columns(
        [Series(label, [found[m][key] if m in found else 0 for m in shown], colour) for label, key, colour in names],
        title="每小时的抓取（最近 48 小时）",
        marks=[f"{moment:%d日%H时}" if moment.hour % 12 == 0 else "" for moment in local],
    )


def delays(found: Sequence[int]) -> str:
    """Return the delays of found entries; empty if there were none."""
    if not found:
        return ""
    counts = [0] * len(_DELAY_NAMES)
    for delay in found:
        counts[sum(delay > bound for bound in _DELAY_BOUNDS)] += 1
    ordered = sorted(found)
    middle = ordered[len(ordered) // 2] / 60
    title = f"发现新条目的延迟（{len(found)} 次，中位数 {middle:.0f} 分钟）"
    return columns([Series("发现次数", counts, 1)], title=title, marks=_DELAY_NAMES)


def cadences(history: Sequence[tuple[int, Mapping[str, int]]], now: int, zone: ZoneInfo) -> str:
    """Return the number of sources by cadence over time; empty without a re-analysis."""
    end = datetime.fromtimestamp(now, UTC)
    start = end - timedelta(days=CADENCE_DAYS)
    if history:
        first = datetime.fromtimestamp(history[0][0], UTC)
        start = max(start, min(first, end - timedelta(hours=1)))
    tracks = [
        Track(
            name,
            [(datetime.fromtimestamp(at, UTC), sum(counts.get(each, 0) for each in steps)) for at, counts in history],
            number,
        )
        for number, (name, steps) in enumerate(_CADENCE_GROUPS, 1)
    ]
    step = (end - start) / 4
    form = "%m-%d" if end - start > timedelta(days=2) else "%H:%M"
    marks = [(start + step * number, (start + step * number).astimezone(zone).strftime(form)) for number in range(1, 4)]
    return timeline(tracks, title="节奏分布", start=start, end=end, marks=marks, gap=timedelta(days=2))


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
