"""One source's row in memory, and calls through it, for the tests of the gate's rules."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from zoneinfo import ZoneInfo

from douban_pipeline.core.errors import SourceError, SourceUnavailable
from douban_pipeline.core.gate_rules import GateRow
from douban_pipeline.core.gate_types import Admitted, Budget, WaitForTurn
from douban_pipeline_tests.harness.fixtures.clocks import START

HOLD = timedelta(seconds=60)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DOWN = SourceUnavailable("douban", "HTTP 500")
SHANGHAI = ZoneInfo("Asia/Shanghai")


def row(concurrency: int = 2, interval: timedelta = 2 * SECOND, **budget: int) -> GateRow:
    """Return the row of a source in Shanghai that nobody called yet."""
    return GateRow("douban", START, interval, concurrency, budget=Budget(**budget), zone=SHANGHAI)


def called(gate: GateRow, error: SourceError | None, at: timedelta = timedelta(), thing: str = "") -> None:
    """Make a call at START + ``at``, or as soon after as the gate lets it, that ends at once and as ``error`` says."""
    while isinstance(answer := gate.ask("me", START + at, HOLD, thing=thing), WaitForTurn):
        at += timedelta(seconds=answer.seconds)
    assert isinstance(answer, Admitted)
    gate.leave("me", error, START + at, Random(1), thing=thing)
