"""The budget's plan: how a day's polls are distributed; computed regularly from all sources, used after every poll."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.language import terminal_text
from douban_pipeline.feeds import budget
from douban_pipeline.feeds.budget import density
from douban_pipeline.feeds.intensity import DAY, HOUR, SLOTS, Floats, Knowledge, everyone_of, profiles_of
from douban_pipeline.feeds.scheduler import PlannedCheck
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store import entries, polls, stats
from douban_pipeline.feeds.store.sources import hosts_of_active
from douban_pipeline.feeds.store.stats import publication_moments

BOUNDS = (0.25, 4.0)
"""Least and greatest correction: what lies beyond is not the plan's error, but polls that cannot be made."""
SHORTEST, LONGEST = 600, 2 * HOUR
"""Seconds of a span that is counted: the review is hourly, and what it missed for longer was an outage."""
KEPT, MOST_KEPT = 7 * DAY, 48
"""Seconds for which spans are kept, so that an outage does not empty them, and how many."""
MOST_FAILED, MOST_LATE = 0.5, 0.05
"""Share of polls that failed, and of sources that waited for their poll, from which a span is not counted."""
LATE = 600
"""Seconds that a source may wait for its poll."""
_EVEN = 0.1
"""Part of a day's polls that is spread evenly: the hours of few sources say little of the others."""


@dataclass(frozen=True, slots=True)
class PlanSpan:
    """Polls between two plans.

    Attributes:
        start: When the earlier plan was made.
        end: When the later one was made.
        planned: Polls planned for the time between, without a correction.
        correction: The correction in force.
        made: Polls made.
    """

    start: int
    end: int
    planned: float
    correction: float
    made: int

    def to_json(self) -> list[float]:
        """Return the stored form."""
        return list(astuple(self))

    @classmethod
    def from_json(cls, stored: Sequence[float]) -> PlanSpan:
        """Return the span from its stored form.

        Raises:
            TypeError, ValueError: It was stored by another release.
        """
        start, end, planned, correction, made = stored
        return cls(int(start), int(end), float(planned), float(correction), int(made))


@dataclass(frozen=True, slots=True)
class Spent:
    """What happened since the last plan: polls made, failed ones among them, and the share of sources that wait."""

    made: int
    failed: int
    late: float


def counted(span: PlanSpan, spent: Spent) -> bool:
    """Return whether a span says anything of the plan: polls could be made in it."""
    usual = SHORTEST <= span.end - span.start <= LONGEST
    return usual and spent.failed <= MOST_FAILED * spent.made and spent.late <= MOST_LATE and span.planned > 0


def planned_between(everyone: Floats, polls_per_day: float, start: float, end: float) -> float:
    """Return the polls planned from ``start`` to ``end``, in local seconds: a day's, spread as sources publish.

    Over a whole day they are a day's, whatever the hours of all sources (``everyone``) are.
    """
    shape = density((1 - _EVEN) * everyone / everyone.sum() + _EVEN / len(everyone))
    edges = np.arange(len(shape) + 1) * DAY / len(shape)
    until = np.concatenate([[0.0], np.cumsum(shape / shape.sum())])
    first, last = (moment // DAY + np.interp(moment % DAY, edges, until) for moment in (start, end))
    return float(polls_per_day * (last - first))


def corrected(spans: Sequence[PlanSpan], before: float, polls_per_day: float) -> float:
    """Return the factor by which more is to be polled than planned, so that the budget is spent.

    Args:
        spans: Counted spans, oldest first.
        before: The correction so far.
        polls_per_day: Polls planned for a day.
    """
    planned = bare = seconds = 0.0
    for span in reversed(spans):
        if seconds >= DAY:
            break
        seconds += span.end - span.start
        planned += span.planned
        bare += span.made / span.correction
    # What is not known of a day is taken to be as before, so that no hour of a first day moves it far.
    missing = max(polls_per_day - planned, 0.0)
    planned, bare = planned + missing, bare + missing / before
    if planned <= 0:
        return before
    return float(np.clip(planned / max(bare, 1e-9), *BOUNDS))


NAME = "budget"
HISTORY_DAYS = 60
MOST_TIMES = 60
_AT_ONCE = 4000
_DAY = 86_400
MAX_GAP = _DAY
"""Maximum seconds between two polls of a source: an unexpected article is found within a day."""
_LEAST = 2
"""Polls per day of a source below which it is told that its host's limit allows no more."""
_MINUTES = 1440
_WEEKEND = 2 / 7
_AWAY = 3600
"""Seconds of back-off from which a source's share of the budget goes to the others."""


@dataclass(frozen=True)
class BudgetPlan:
    """Distribution of a day's polls; see `budget.Allocation`.

    Attributes:
        allocation: The constants, corrected.
        everyone: Publishing hours of all sources, see `intensity.everyone_of`.
        weekend_share: Share of all publications on a weekend.
        polls_per_day: The budget.
        sources: Number of sources it was computed for.
        at: When it was computed.
        correction: Factor by which more is polled than planned, so that the budget is spent; see `corrected`.
        spans: Polls planned and made, by which the correction was found.
        steady: Whether polls ran as usual before it; if they did not, those that were missed follow it.
    """

    allocation: budget.Allocation
    everyone: Floats
    weekend_share: float
    polls_per_day: float
    sources: int
    at: int
    correction: float = 1.0
    spans: Sequence[PlanSpan] = ()
    steady: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "constant": self.allocation.constant,
            "by_host": dict(self.allocation.by_host),
            "polls": self.allocation.polls,
            "everyone": [round(float(each), 8) for each in self.everyone],
            "weekend_share": self.weekend_share,
            "polls_per_day": self.polls_per_day,
            "sources": self.sources,
            "correction": self.correction,
            "spans": [each.to_json() for each in self.spans],
            "steady": self.steady,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> BudgetPlan:
        """Return the plan from its stored form.

        Raises:
            KeyError, TypeError, ValueError: It was stored by another release.
        """
        # An hour in which nobody publishes is stored as 0, whose logarithm is none.
        everyone = np.maximum(np.array(stored["everyone"], dtype=float), 1e-9)
        if everyone.shape != (SLOTS,):
            raise ValueError("hours of another length")
        allocation = budget.Allocation(float(stored["constant"]), dict(stored["by_host"]), float(stored["polls"]))
        share, daily = float(stored["weekend_share"]), float(stored["polls_per_day"])
        correction, spans = float(stored["correction"]), [PlanSpan.from_json(each) for each in stored["spans"]]
        if not BOUNDS[0] <= correction <= BOUNDS[1]:
            raise ValueError("a correction beyond its bounds")
        counts = int(stored["sources"]), int(stored["at"])
        return cls(allocation, everyone, share, daily, *counts, correction, spans, bool(stored["steady"]))


def offset_of(zone: tzinfo, now: int) -> int:
    """Return by how many seconds a zone's clock is ahead of UTC."""
    ahead = datetime.fromtimestamp(now, UTC).astimezone(zone).utcoffset()
    return int(ahead.total_seconds()) if ahead is not None else 0


def crowded_hosts(engine: Engine, settings: FeedsSettings) -> list[str]:
    """Return a sentence for each host whose limit of requests leaves its sources too few polls a day."""
    with reading(engine) as connection:
        counts = Counter(hosts_of_active(connection).values())
    limit = settings.requests_per_minute
    said = terminal_text(
        "{host} has {count} sources, and {limit} requests a minute: {polls:.1f} polls a day for each of them"
    )
    return [
        said.format(host=host, count=count, limit=limit, polls=_MINUTES * limit / count)
        for host, count in counts.most_common()
        if _MINUTES * limit < _LEAST * count
    ]


def make_plan(engine: Engine, settings: FeedsSettings, now: int) -> BudgetPlan | None:
    """Compute the plan from all active sources, store and return it; None without a source.

    What was polled since the plan before corrects it. Sources are read a few thousand at a time, so that memory does
    not grow with their number; and twice, because the hours of all sources enter into each source's.
    """
    with reading(engine) as connection:
        hosts = hosts_of_active(connection)
        if not hosts:
            return None
        before = read_plan(connection)
        learned = (
            _corrected(connection, before, offset_of(settings.zone, now), now)
            if before is not None
            else (1.0, [], False)
        )
        correction, spans, steady = learned
        ids = _polled(connection, hosts, now)
        slots, weekend = np.zeros(SLOTS), np.zeros(2)
        for knowledge in _each(connection, ids, settings, now):
            slots += knowledge.slots.sum(axis=0)
            weekend += knowledge.weekend.sum(axis=0)
        everyone = everyone_of(slots[None, :])
        share = float(np.clip(weekend[1] / weekend.sum(), 0.02, 0.98)) if weekend.sum() else _WEEKEND
        densities = [
            budget.daily_density(knowledge, profiles_of(knowledge, everyone, share), now)
            for knowledge in _each(connection, ids, settings, now)
        ]
    daily = float(settings.polls_per_source_per_day * len(hosts))
    allocation = budget.allocate(
        np.concatenate(densities),
        [hosts[each] for each in ids],
        daily,
        max_gap=MAX_GAP,
        host_polls_per_day=_MINUTES * settings.requests_per_minute,
    )
    corrected = allocation.corrected(correction)
    made = BudgetPlan(corrected, everyone, share, daily, len(hosts), now, correction, spans, steady)
    run_transaction(engine, lambda connection: polls.write_plan(connection, NAME, made.to_json(), now))
    return made


def _polled(connection: Connection, hosts: Mapping[str, str], now: int) -> list[str]:
    """Return the sources among which the budget is shared: without those that are in back-off for longer.

    If most of them are, it is an outage, after which all are polled again.
    """
    away = stats.in_back_off(connection, now + _AWAY)
    ids = [each for each in hosts if each not in away]
    return ids if 2 * len(ids) > len(hosts) else [*hosts]


def _corrected(
    connection: Connection, before: BudgetPlan | None, offset: int, now: int
) -> tuple[float, list[PlanSpan], bool]:
    """Return the correction from what was polled since the plan before, its spans, and whether polls ran as usual."""
    if before is None:
        return 1.0, [], False
    daily = before.allocation.polls
    planned = planned_between(before.everyone, daily, before.at + offset, now + offset)
    made, failed = polls.made_between(connection, before.at, now)
    late = stats.count_due(connection, now - LATE)[0] / max(before.sources, 1)
    span = PlanSpan(before.at, now, planned, before.correction, made)
    steady = counted(span, Spent(made, failed, late))
    spans = [each for each in before.spans if each.end > now - KEPT][-MOST_KEPT:]
    if not steady or not before.steady:
        return before.correction, spans, steady
    spans.append(span)
    return corrected(spans, before.correction, daily), spans, steady


def read_plan(connection: Connection) -> BudgetPlan | None:
    """Return the stored plan; None if there is none, or it is of another release."""
    stored = polls.read_plan(connection, NAME)
    try:
        return None if stored is None else BudgetPlan.from_json(stored)
    except (KeyError, TypeError, ValueError):
        return None


def _each(connection: Connection, ids: Sequence[str], settings: FeedsSettings, now: int) -> Iterator[Knowledge]:
    offset = offset_of(settings.zone, now)
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        found = entries.publication_seconds(connection, some, now - HISTORY_DAYS * _DAY)
        times = [[moment for moment in found[each] if moment <= now][-MOST_TIMES:] for each in some]
        yield Knowledge.of(times, offset)


@dataclass(frozen=True)
class BudgetPlanner:
    """Chooses the next polls by a plan; a `scheduler.CheckPlanner`.

    Attributes:
        plan: The plan.
        host: The source's host.
        settings: The current settings.
    """

    plan: BudgetPlan
    host: str
    settings: FeedsSettings

    def next_check(self, conn: Connection, stats: dict[str, Any], now: int, floor: int) -> PlannedCheck:
        """Return when the budget schedules the source's next poll, and why then."""
        times = [each for each in publication_moments(conn, stats["source_id"], MOST_TIMES) if each <= now]
        knowledge = Knowledge.of([times], offset_of(self.settings.zone, now))
        look = budget.next_look(
            knowledge,
            profiles_of(knowledge, self.plan.everyone, self.plan.weekend_share),
            0,
            self.plan.allocation,
            host=self.host,
            polls_per_day=self.plan.polls_per_day,
            now=now,
            max_gap=MAX_GAP,
            floor=floor,
        )
        _, slow = knowledge.rates(np.array([0]), np.array([float(now)]))
        why = {
            "profile": "budget",
            "bound": look.bound,
            "expected": round(look.expected, 4),
            "share": round(look.share, 6),
            "a_day": round(float(slow[0]), 3),
            "known": len(times),
        }
        return PlannedCheck(look.at, why)
