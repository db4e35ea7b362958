"""The re-analysis of all sources: new cadences, the budget's plan, counts for the history, and deletion of old rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Connection

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.feeds.budget_plan import BudgetPlan, make_plan
from douban_pipeline.feeds.cadence import FREQUENCY_CADENCE_MAP
from douban_pipeline.feeds.scheduler import analyse, cadence_in_force
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import polls, stats
from douban_pipeline.feeds.store.entry_lists import forget_content
from douban_pipeline.feeds.types import SourceState

_AT_ONCE = 200
_DAY = 86_400
CONTENT_DAYS = 90
"""Days for which articles that were read are kept whole: they are nine tenths of what an entry takes."""
POLL_DAYS = 30
"""Days for which single polls and raw answers are kept: a month of behaviour to look at; statistics stay."""


@dataclass(slots=True)
class CadenceReport:
    """Result of a re-analysis: sources by cadence and its origin, how many changed their class, and polls of a day."""

    cadences: Counter[str] = field(default_factory=Counter)
    origins: Counter[str] = field(default_factory=Counter)
    sources: int = 0
    changed: int = 0
    mended: int = 0
    plan: BudgetPlan | None = None
    polled_in_a_day: int = 0
    dropped_polls: int = 0
    dropped_answers: int = 0


def review(services: FeedsServices) -> CadenceReport:
    """Re-analyse every active source, in batches, and compute the budget's plan."""
    report = CadenceReport()
    engine, now, zone = services.engine, services.now(), services.settings.zone
    lease = services.lease
    report.mended = run_transaction(engine, lambda connection: stats.correct_clock(connection, now, lease))
    after = ""
    while True:

        def analyse_some(connection: Connection, after: str = after) -> tuple[str, list[tuple[str, str, bool]]]:
            found = []
            rows = stats.with_sources(connection, after, _AT_ONCE)
            for row in rows:
                if row.state != SourceState.ACTIVE.value:
                    continue
                values = analyse(connection, row.source_id, row.source_type, now, zone)
                before = {name: getattr(row, name) for name in values}
                # A source without stored entries keeps its last known publication time.
                values["last_article_at"] = values["last_article_at"] or before["last_article_at"]
                if values != before:
                    stats.write_stats(connection, row.source_id, values)
                current = {**row._mapping, **values}
                changed = before["cadence"] != values["cadence"]
                found.append((*cadence_in_force(connection, current, now), changed))
            return (rows[-1].source_id if rows else ""), found

        after, found = run_transaction(engine, analyse_some)
        for cadence, origin, changed in found:
            report.cadences[cadence] += 1
            report.origins[origin] += 1
            report.sources += 1
            report.changed += changed
        if not after:
            break
    counts = {name: report.cadences[name] for name in sorted(FREQUENCY_CADENCE_MAP.values())}
    run_transaction(engine, lambda connection: polls.add_cadences(connection, now, counts))
    if services.settings.profile == "budget":
        report.plan = make_plan(engine, services.settings, now)
        with reading(engine) as connection:
            report.polled_in_a_day, _ = polls.made_between(connection, now - _DAY, now)
    return report


def drop_old(services: FeedsServices, *, dry_run: bool = False) -> tuple[int, int]:
    """Delete polls and raw answers after their retention period; return both counts.

    Entries with their marks and statistics are kept. Of entries that were read and not starred, articles are kept for
    `CONTENT_DAYS`, after which the summary is left.

    A dry run deletes nothing, and returns how many would be deleted.
    """
    before = services.now() - POLL_DAYS * _DAY
    work = polls.count_polls if dry_run else polls.prune_polls
    dropped = run_transaction(services.engine, lambda connection: work(connection, before))
    if not dry_run:
        forget_content(services.engine, services.now() - CONTENT_DAYS * _DAY)
    return dropped, services.archive.prune(datetime.fromtimestamp(before, UTC), dry_run=dry_run)
