"""Whatever callers do, no minute holds more calls than allowed, no day, and no more at a time; and all get through."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from douban_pipeline.core.errors import SourceUnavailable
from douban_pipeline.core.gate_outcomes import CallOutcomes
from douban_pipeline.core.gate_rules import SAFETY, GateRow
from douban_pipeline.core.gate_types import Admitted, Budget, GateRefusal, WaitForTurn
from douban_pipeline.core.gate_usage import GateUsage
from douban_pipeline_tests.core.gate_rows import HOLD, SHANGHAI
from douban_pipeline_tests.harness.fixtures.clocks import START

LONGEST_CALL = 20.0
LAST_MINUTE = 59.999
"""Seconds of a minute, less than rounding to microseconds can take from it."""
MIDNIGHT = 12 * 3600.0
"""Seconds from START to the end of its day in Shanghai."""


@dataclass
class Call:
    """A call that was let through; times in seconds after START."""

    worker: int
    at: float
    tokens: int
    counted: int
    ended: float = math.inf


@dataclass
class Traffic:
    """Workers that call as often as they may, on virtual time: late for their turn, slow, failing, or killed."""

    row: GateRow
    workers: int
    seed: int
    until: float
    start: float = 0.0
    deaths: float = 0.0
    calls: list[Call] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def play(self) -> list[Call]:
        """Let them work, and return their calls in order."""
        rng = Random(self.seed)
        agenda: list[tuple[float, int, str]] = []
        under_way: dict[str, tuple[Call, bool]] = {}
        wanted: dict[str, int] = {}
        for worker in range(self.workers):
            heapq.heappush(agenda, (self.start + rng.uniform(0, 3), worker, f"{worker}:0"))
        while agenda and agenda[0][0] < self.until:
            at, worker, owner = heapq.heappop(agenda)
            now = START + timedelta(seconds=at)
            self.row.usage = GateUsage.from_json(self.row.usage.to_json())  # as between two processes
            if owner in under_way:
                call, failed = under_way.pop(owner)
                used = None if failed else rng.choice([None, rng.randrange(1200)])
                call.counted = 0 if failed else call.tokens if used is None else used
                call.ended = at
                # Failures without end would open the breaker, which is not what this is about.
                self.row.failures, self.row.outcomes = 0, CallOutcomes()
                self.row.leave(owner, SourceUnavailable("s", "r") if failed else None, now, rng, used)
                heapq.heappush(agenda, (at + rng.choice([0.0, rng.uniform(0, 9)]), worker, f"{owner}'"[-40:]))
                continue
            tokens = wanted.setdefault(owner, rng.choice([0, 1, 100, 400, 900, 1500]))
            answer = self.row.ask(owner, now, HOLD, tokens)
            if isinstance(answer, WaitForTurn):
                assert answer.seconds > 0, "waits without end"
                late = rng.choice([0.0, 0.0, rng.uniform(0, 0.5), rng.uniform(0, 15)])
                heapq.heappush(agenda, (at + answer.seconds + late, worker, owner))
            elif isinstance(answer, GateRefusal):
                assert answer.until > now
                self.refused.append(at)
                heapq.heappush(agenda, ((answer.until - START).total_seconds(), worker, owner))
            else:
                assert isinstance(answer, Admitted)
                call = Call(worker, at, tokens, tokens)
                self.check_tokens(call)
                self.calls.append(call)
                if rng.random() >= self.deaths:
                    under_way[owner] = (call, rng.random() < 0.3)
                    heapq.heappush(agenda, (at + rng.uniform(0.01, LONGEST_CALL), worker, owner))
                else:
                    call.ended = at
                    heapq.heappush(agenda, (at + rng.uniform(0, 30), worker, f"{owner}+"[-40:]))
        return self.calls

    def check_tokens(self, new: Call) -> None:
        limit = self.row.budget.tokens_per_minute
        if limit is not None:
            counted = sum(call.counted for call in self.calls if call.at > new.at - LAST_MINUTE)
            assert counted + new.tokens <= limit or not counted


def row_of(rate: int, concurrency: int, **budget: int) -> GateRow:
    interval = timedelta(milliseconds=math.ceil(60_000 * SAFETY / rate))
    return GateRow("source", START, interval, concurrency, budget=Budget(**budget), zone=SHANGHAI)


SEEDS = st.integers(0, 2**32)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 90), st.integers(1, 5), st.integers(1, 8), SEEDS, st.sampled_from([0.0, 0.1]))
def test_no_minute_holds_more_than_allowed_and_no_moment_more_at_once(
    rate: int, concurrency: int, workers: int, seed: int, deaths: float
) -> None:
    calls = Traffic(row_of(rate, concurrency), workers, seed, until=600, deaths=deaths).play()
    times = [call.at for call in calls]
    assert all(later - earlier >= LAST_MINUTE for earlier, later in zip(times, times[rate:], strict=False))
    for call in calls:
        assert sum(other.at <= call.at < other.ended for other in calls) <= concurrency
    # Who comes too late for a turn queues again behind the others: by then, each has had several turns.
    if not deaths and rate * 2 >= workers:
        assert {call.worker for call in calls} == set(range(workers))


@settings(deadline=None, max_examples=30)
@given(st.integers(5, 90), st.integers(1, 5), st.integers(1, 8), SEEDS)
def test_tokens_of_a_minute_stay_within_what_is_allowed_and_nobody_waits_for_ever(
    rate: int, concurrency: int, workers: int, seed: int
) -> None:
    calls = Traffic(row_of(rate, concurrency, tokens_per_minute=1000), workers, seed, until=1200).play()
    times = [call.at for call in calls]
    assert all(later - earlier >= LAST_MINUTE for earlier, later in zip(times, times[rate:], strict=False))
    assert {call.worker for call in calls} == set(range(workers))
    for call in calls:
        # What was known only afterwards is the most that a minute can go beyond its limit.
        minute = [other for other in calls if call.at <= other.at < call.at + LAST_MINUTE]
        corrections = sum(max(other.counted - other.tokens, 0) for other in minute)
        assert sum(other.counted for other in minute) <= max(1000, *(other.tokens for other in minute)) + corrections


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 8), SEEDS)
def test_a_day_holds_its_quota_and_not_one_call_more(quota: int, concurrency: int, workers: int, seed: int) -> None:
    row = row_of(60, concurrency, requests_per_day=quota)
    traffic = Traffic(row, workers, seed, start=MIDNIGHT - 60, until=MIDNIGHT + 300)
    days = Counter(call.at >= MIDNIGHT for call in traffic.play())
    assert max(days.values()) <= quota
    assert not traffic.refused or max(days.values()) == quota
