"""While work waits the scarcest source's allowance is used: videos in work, gates and latencies on virtual time."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from datetime import timedelta
from itertools import count
from random import Random

import pytest

from douban_pipeline.core.gate_rules import SAFETY, GateRow
from douban_pipeline.core.gate_types import Admitted, WaitForTurn
from douban_pipeline.douban.pace import requests_at_once, videos_at_once
from douban_pipeline_tests.harness.fixtures.clocks import START

HOLD = timedelta(seconds=50)
WARM_UP, ASKING = 20.0, 0.01
SEARCH, DOUBAN = "search", "douban"


def latency(rng: Random) -> float:
    """Return how long an answer takes: 0.5 s on average, up to 1.5 s."""
    return min(0.3 + rng.expovariate(5), 1.5)


def video(rng: Random) -> list[str]:
    """Return whom a video asks, in order: 1.2 searches and 1.3 subjects on average."""
    again = [SEARCH, DOUBAN] if rng.random() < 0.2 else []
    return [SEARCH, DOUBAN, *again, *([DOUBAN] if rng.random() < 0.1 else [])]


def gate(source: str, rate: int, at_once: int) -> GateRow:
    return GateRow(source, START, timedelta(milliseconds=math.ceil(60_000 * SAFETY / rate)), at_once)


def granted(
    rates: dict[str, int], at_once: dict[str, int], in_work: int, until: float, *, runs: int = 1
) -> dict[str, list[float]]:
    """Let ``runs`` with ``in_work`` videos each ask both sources; return when each call was let through (seconds).

    As in `core.gate`, one caller of a run at a time asks a gate for its turn, and asking takes some milliseconds.
    """
    rng = Random(1)
    gates = {source: gate(source, rates[source], at_once[source]) for source in rates}
    calls: dict[str, list[float]] = {source: [] for source in rates}
    lines: dict[tuple[int, str], deque[int]] = defaultdict(deque)
    plans = {place: video(rng) for place in range(runs * in_work)}
    agenda: list[tuple[float, int, str]] = []

    def arrive(at: float, place: int) -> None:
        line = lines[place % runs, plans[place][0]]
        line.append(place)
        if len(line) == 1:
            heapq.heappush(agenda, (at, place, f"{place}:{next(numbers)}"))

    calling: set[str] = set()
    numbers = count(1)
    for place in plans:
        arrive(rng.uniform(0, 1), place)
    while agenda[0][0] < until:
        at, place, owner = heapq.heappop(agenda)
        now, source = START + timedelta(seconds=at), plans[place][0]
        if owner in calling:
            calling.remove(owner)
            gates[source].leave(owner, None, now, rng)
            plans[place] = plans[place][1:] or video(rng)
            arrive(at + 0.01, place)
            continue
        answer = gates[source].ask(owner, now, HOLD)
        if isinstance(answer, WaitForTurn):
            heapq.heappush(agenda, (at + answer.seconds + ASKING, place, owner))
            continue
        assert isinstance(answer, Admitted)
        calls[source].append(at)
        calling.add(owner)
        heapq.heappush(agenda, (at + latency(rng), place, owner))
        line = lines[place % runs, source]
        line.popleft()
        if line:
            heapq.heappush(agenda, (at + ASKING, line[0], f"{line[0]}:{next(numbers)}"))
    return calls


def used(calls: list[float], rate: int, window: float) -> float:
    return sum(at > WARM_UP for at in calls) / (window / 60 * rate)


@pytest.mark.parametrize(("rate", "window"), [(30, 300.0), (300, 60.0), (600, 40.0)])
@pytest.mark.parametrize("runs", [1, 3])
def test_whoever_limits_the_work_is_used_to_95_percent_and_never_beyond_its_limit(
    rate: int, window: float, runs: int
) -> None:
    rates = {SEARCH: rate, DOUBAN: rate}
    at_once = {SEARCH: requests_at_once(rate), DOUBAN: requests_at_once(rate, least=2)}
    in_work = videos_at_once(at_once[SEARCH], at_once[DOUBAN])
    calls = granted(rates, at_once, in_work, WARM_UP + window, runs=runs)
    assert max(used(times, rate, window) for times in calls.values()) >= 0.95
    for times in calls.values():
        assert all(later - earlier >= 59.999 for earlier, later in zip(times, times[rate:], strict=False))


@pytest.mark.parametrize(("search", "douban", "window"), [(20, 30, 300.0), (200, 300, 60.0)])
def test_the_scarce_search_does_not_wait_for_answers_of_douban(search: int, douban: int, window: float) -> None:
    at_once = {SEARCH: requests_at_once(search), DOUBAN: requests_at_once(douban, least=2)}
    calls = granted(
        {SEARCH: search, DOUBAN: douban}, at_once, videos_at_once(at_once[SEARCH], at_once[DOUBAN]), WARM_UP + window
    )
    assert used(calls[SEARCH], search, window) >= 0.95


def test_what_the_plan_allows_at_its_rates_is_not_exceeded() -> None:
    assert (requests_at_once(30, least=2), requests_at_once(60, least=2)) == (2, 2)
    assert (requests_at_once(20), requests_at_once(60)) == (1, 2)
    assert requests_at_once(60_000) == 32
