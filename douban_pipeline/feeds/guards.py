"""Predicates for the checks of the feeds system; each queries the database and returns what it found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, func, or_, select

from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.feeds import wording
from douban_pipeline.feeds.budget_plan import MAX_GAP
from douban_pipeline.feeds.failures import OTHER, UNAUTHORISED
from douban_pipeline.feeds.scheduler import hit_rate
from douban_pipeline.feeds.services import HOST_CONCURRENCY, FeedsServices
from douban_pipeline.feeds.store import entries, polls
from douban_pipeline.feeds.store.sources import gaps
from douban_pipeline.feeds.store.tables import NEVER_DUE, poll, source, stats
from douban_pipeline.feeds.types import PollOutcome, SourceState

_DAY, _HOUR = 86_400, 3_600
_OVERDUE = 2 * _HOUR
_MANY_FAILURES = 3
_LEAST_CHECKS = 200
LOW_HIT_RATE, HIGH_HIT_RATE = 0.002, 0.8
_MOST = 200


@dataclass(frozen=True, slots=True)
class FeedBreach:
    """A violation of a rule: host, source and problem."""

    host: str
    source: str
    what: str


def starved(services: FeedsServices, connection: Connection) -> Iterator[FeedBreach]:
    """Yield sources that have been due for hours, or were not polled for longer than the longest gap."""
    now = services.now()
    waiting = and_(stats.c.next_due_at < now - _OVERDUE, stats.c.backoff_until < now - _OVERDUE)
    never_asked = and_(
        stats.c.last_check_at < now - MAX_GAP - _OVERDUE,
        stats.c.created_at < now - MAX_GAP - _OVERDUE,
        stats.c.backoff_until <= now,
    )
    query = (
        select(source.c.host, source.c.url, source.c.title, stats.c.next_due_at, stats.c.last_check_at)
        .join_from(source, stats, source.c.source_id == stats.c.source_id)
        .where(source.c.state == SourceState.ACTIVE.value, or_(waiting, never_asked))
        .order_by(stats.c.next_due_at)
        .limit(_MOST)
    )
    for row in connection.execute(query):
        hours = (now - max(row.last_check_at or 0, row.next_due_at or 0)) / _HOUR
        yield FeedBreach(row.host, row.title or row.url, f"已等待 {min(hours, 9999):.1f} 小时没有抓取")


def never_polled(_services: FeedsServices, connection: Connection) -> Iterator[FeedBreach]:
    """Yield active sources that nobody will poll, because they have no time at which they are due."""
    query = (
        select(source.c.host, source.c.url, source.c.title)
        .join_from(source, stats, source.c.source_id == stats.c.source_id, isouter=True)
        .where(source.c.state == SourceState.ACTIVE.value)
        .where(or_(stats.c.source_id.is_(None), stats.c.next_due_at.is_(None), stats.c.next_due_at >= NEVER_DUE))
        .limit(_MOST)
    )
    for row in connection.execute(query):
        yield FeedBreach(row.host, row.title or row.url, "没有抓取时间，不会被抓取")


def over_limit(services: FeedsServices, connection: Connection) -> Iterator[FeedBreach]:
    """Yield hosts with more requests in a minute of the last hour than allowed, counted when they ended."""
    settings = services.settings
    # Requests admitted in one minute may end in the next, as many as can be in progress at once.
    most = settings.requests_per_minute + HOST_CONCURRENCY
    for host, _, requests in polls.requests_by_minute(connection, services.now() - _HOUR):
        if requests > most:
            yield FeedBreach(host, "", f"一分钟 {requests} 次请求，上限 {settings.requests_per_minute}")


def unexplained(_services: FeedsServices, connection: Connection) -> Iterator[FeedBreach]:
    """Yield sources that need a person: those that require a login, or keep failing for no known reason."""
    keeps_failing = and_(stats.c.fail_count >= _MANY_FAILURES, stats.c.error_kind.in_([OTHER, ""]))
    query = (
        select(source.c.host, source.c.url, source.c.title, stats.c.error_kind, stats.c.last_error)
        .join_from(source, stats, source.c.source_id == stats.c.source_id)
        .where(
            source.c.state == SourceState.ACTIVE.value,
            stats.c.fail_count > 0,
            or_(keeps_failing, stats.c.error_kind == UNAUTHORISED),
        )
        .order_by(stats.c.fail_count.desc())
        .limit(_MOST)
    )
    for row in connection.execute(query):
        what = "需要登录或凭据已失效（401）" if row.error_kind == UNAUTHORISED else "反复失败，原因不明"
        yield FeedBreach(row.host, row.title or row.url, f"{what}：{failure_text(row.last_error or '')[:200]}")


def odd_hit_rate(services: FeedsServices, connection: Connection) -> Iterator[FeedBreach]:
    """Yield the share of a day's checks that found something, if it is so low or high that cadences must be wrong."""
    hit = func.coalesce(func.sum(case((poll.c.outcome == PollOutcome.HIT.value, 1), else_=0)), 0)
    answered = [PollOutcome.HIT.value, PollOutcome.MISS.value, PollOutcome.UNCHANGED.value]
    query = select(func.count(), hit).where(poll.c.at >= services.now() - _DAY, poll.c.outcome.in_(answered))
    checks, hits = (int(value) for value in connection.execute(query).one())
    share = hit_rate(hits, checks)
    if checks >= _LEAST_CHECKS and not LOW_HIT_RATE <= share <= HIGH_HIT_RATE:
        found = "太低：问得太勤" if share < LOW_HIT_RATE else "太高：问得太少"
        yield FeedBreach("", "全部来源", f"一天 {checks} 次抓取，命中率 {100 * share:.1f}%，{found}")


def left_unread(services: FeedsServices, connection: Connection) -> Iterator[FeedBreach]:
    """Yield active sources that published something which was not read."""
    for source_id, title, host, gap in gaps(connection, _MOST):
        yield FeedBreach(host, title or source_id, wording.gap_text(gap, services.settings.zone))


def duplicate_entries(services: FeedsServices, connection: Connection) -> Iterable[FeedBreach]:
    """Return entries that are stored twice, one of them within a day."""
    return [
        FeedBreach("", row.source_id, f"{row.times} 条相同的条目：{row.title[:100]}")
        for row in entries.duplicates(connection, services.now() - _DAY, _MOST)
    ]
