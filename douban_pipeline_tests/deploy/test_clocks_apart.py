"""Two hosts whose clocks differ share one gate: what a minute then holds, as deploy/celery/README.md states it."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from douban_pipeline.core.clock_skew import LARGEST_SKEW, SLIGHT_SKEW
from douban_pipeline.core.gate_rules import SAFETY, GateRow
from douban_pipeline.core.gate_types import Admitted, WaitForTurn

START = datetime(2026, 1, 1, tzinfo=UTC)
RATE = 30
MINUTES = 8
HOLD = timedelta(seconds=120)


def calls(apart: float) -> list[float]:
    """Let two hosts call as often as the gate lets them, one with a clock ``apart`` seconds ahead; return when."""
    interval = timedelta(seconds=60 * SAFETY / RATE)
    row = GateRow("douban", START, interval, concurrency=2)
    numbers, made = count(), []
    # When (really), who, with whose clock: each asks, waits as told, calls at once, and asks for its next call.
    asking = [(0.0, f"behind:{next(numbers)}", 0.0), (0.1, f"ahead:{next(numbers)}", apart)]
    while asking:
        at, owner, ahead = heapq.heappop(asking)
        if at >= MINUTES * 60:
            continue
        answer = row.ask(owner, START + timedelta(seconds=at + ahead), HOLD)
        if isinstance(answer, Admitted):
            made.append(at)
            row.forget(owner)
            owner = f"{owner.partition(':')[0]}:{next(numbers)}"
            heapq.heappush(asking, (at + 0.05, owner, ahead))
        else:
            assert isinstance(answer, WaitForTurn)
            heapq.heappush(asking, (at + answer.seconds, owner, ahead))
    return made


def most_in_a_minute(moments: list[float]) -> int:
    return max(bisect_left(moments, begin + 60) - index for index, begin in enumerate(moments))


@pytest.mark.parametrize("apart", [0.0, SLIGHT_SKEW.total_seconds()])
def test_clocks_that_agree_keep_the_limit(apart: float) -> None:
    assert RATE - 2 <= most_in_a_minute(calls(apart)) <= RATE


@pytest.mark.parametrize("apart", [2.0, LARGEST_SKEW.total_seconds()])
def test_clocks_a_little_apart_exceed_it_by_what_the_difference_holds_and_only_for_a_minute(apart: float) -> None:
    made = calls(apart)
    assert most_in_a_minute(made) <= RATE + math.ceil(apart * RATE / 60)
    assert len(made) <= RATE * MINUTES


def test_clocks_far_apart_do_double_the_rate_so_that_such_a_host_must_not_work() -> None:
    assert len(calls(700.0)) > 1.8 * RATE * MINUTES
