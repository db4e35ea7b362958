"""The page ``feeds.html``: how polling goes, in figures. The service lists the sources: `feeds.reading`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.live_tables import page_policy
from douban_pipeline.core.ui.templates import Card, render
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.alerts import causes
from douban_pipeline.feeds.budget_plan import BudgetPlan, read_plan
from douban_pipeline.feeds.scheduler import get_scheduler_stats
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import polls, stats
from douban_pipeline.feeds.store.tables import newcomer

NAME = "feeds.html"
_WORST = 10
_DAY, _HOUR = 86_400, 3_600
_SOURCES = "feeds/sources"
"""The list of sources, which the service has beside this page."""


@dataclass(frozen=True, slots=True)
class FeedsView:
    """Data of the page."""

    now: int
    figures: Mapping[str, Any]
    worst: Sequence[Mapping[str, Any]]
    newcomers: int
    budget: Mapping[str, str]
    causes: Sequence[str]


def look(services: FeedsServices) -> FeedsView:
    """Read the page's data."""
    now = services.now()
    with reading(services.engine) as connection:
        figures = get_scheduler_stats(connection, now=now)
        worst = worst_sources(stats.most_failing(connection, _WORST), stats.least_useful(connection, _WORST))
        waiting = connection.execute(select(func.count()).where(newcomer.c.taken_at.is_(None))).scalar_one()
        plan = read_plan(connection) if services.settings.profile == "budget" else None
        budget = _budget(connection, plan, now) if plan is not None else {}
        lasting = [cause.sentence for cause in causes(services, connection)]
    return FeedsView(now, figures, worst, waiting, budget, lasting)


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


def worst_sources(failing: Sequence[Row[Any]], useless: Sequence[Row[Any]]) -> list[dict[str, Any]]:
    """Return the sources that fail most, or yield least for their cost, with the reason."""
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


def page(view: FeedsView, services: FeedsServices) -> str:
    """Return the page."""
    figures = view.figures
    failing = "bad" if figures["failing"] else ""
    cards = [
        Card("来源", f"{figures['active']:,}", f"共 {figures['total']:,} 个", address=_SOURCES),
        Card("到期", f"{figures['due']:,}", "等待抓取"),
        Card(
            "失败",
            f"{figures['failing']:,}",
            f"{figures['in_backoff']:,} 个退避中",
            failing,
            f"{_SOURCES}?state=failing",
        ),
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
        causes=view.causes,
        worst=view.worst,
        followed=figures["total"],
        policy=page_policy(),
    )
