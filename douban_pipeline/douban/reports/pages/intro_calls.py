"""What the calls of the language model came to: what the guard refused, and what a day's calls cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta

from sqlalchemy import Connection, select

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import IntroState

DAYS = 30
"""How many days back failures, refusals and costs are told of."""


@dataclass(slots=True)
class GuardRefusals:
    """What the guard refused for one kind of violation: how often, in how many videos, and a sentence of it."""

    times: int = 0
    videos: set[int] = field(default_factory=set)
    example: str = ""


@dataclass(slots=True)
class DaySpending:
    """What a day's calls came to."""

    calls: int = 0
    written: int = 0
    refused: int = 0
    failed: int = 0
    usd: float = 0.0
    tokens: int = 0


def calls(services: Services, connection: Connection) -> tuple[dict[str, GuardRefusals], dict[date, DaySpending]]:
    """Return the refusals by kind of violation and the spending by day, of the last `DAYS` days."""
    intro, zone = services.tables.intro, services.settings.zone
    today = day_of(services.clock.now(), zone).date
    tokens = intro.c.prompt_tokens + intro.c.completion_tokens
    query = select(
        intro.c.vod_id, intro.c.state, intro.c.created_at, intro.c.cost_usd, tokens, intro.c.violations
    ).where(intro.c.created_at >= midnight(today - timedelta(days=DAYS - 1), zone))
    refusals: dict[str, GuardRefusals] = {}
    days: dict[date, DaySpending] = {}
    rows = connection.execute(query.execution_options(yield_per=2000))
    for vod_id, state, created_at, usd, spent, violations in rows:
        day = days.setdefault(day_of(created_at, zone).date, DaySpending())
        day.calls += 1
        day.usd += usd
        day.tokens += spent
        day.written += state in (IntroState.WRITTEN, IntroState.WITHDRAWN, IntroState.PREVIEW)
        day.refused += state == IntroState.REFUSED
        day.failed += state == IntroState.FAILED
        for violation in violations or ():
            kind = refusals.setdefault(violation["code"], GuardRefusals())
            kind.times += 1
            kind.videos.add(vod_id)
            kind.example = violation["text"]
    return refusals, days
