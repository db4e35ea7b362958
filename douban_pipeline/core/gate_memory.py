"""A gate in the memory of one process, for a service whose answers must not wait for a database.

The rules are those of `core.gate`, but other processes do not see the rows: the rates given here are this process's own
share of what a source allows, in addition to the share of all other processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random
from typing import TypeVar

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.errors import GateUnreadable
from douban_pipeline.core.gate_base import BaseGate, checked_limits
from douban_pipeline.core.gate_evidence import EMPTY_IN_A_ROW
from douban_pipeline.core.gate_outcomes import IN_A_ROW
from douban_pipeline.core.gate_rules import GateRow
from douban_pipeline.core.gate_status import GateStatus, status_of
from douban_pipeline.core.gate_types import Budget

T = TypeVar("T")


class MemoryGate(BaseGate):
    """The gate of every source, for this process only.

    Args:
        clock: Source of the current time; also waits.
        rng: Jitter of the breaker.
        hold: How long a call may keep a place; must exceed the longest call.
        zone: Time zone in which the days of quotas begin.
        empty_limit: How many empty answers in a row make a source doubted.
        at_risk: How many calls may fail at once in an outage; further callers wait until those have been answered.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        rng: Random | None = None,
        hold: timedelta = timedelta(seconds=120),
        zone: tzinfo = UTC,
        empty_limit: int = EMPTY_IN_A_ROW,
        at_risk: int = IN_A_ROW,
    ) -> None:
        super().__init__(clock, rng=rng, hold=hold, zone=zone, empty_limit=empty_limit)
        self._at_risk = at_risk
        self._rows: dict[str, GateRow] = {}
        self._changed: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def configure(
        self,
        source: str,
        requests_per_minute: float,
        concurrency: int,
        *,
        requests_per_day: int | None = None,
        tokens_per_minute: int | None = None,
        tokens_per_day: int | None = None,
    ) -> None:
        """Set the limits of ``source``; see `BaseGate.configure`."""
        budget = Budget(requests_per_day, tokens_per_minute, tokens_per_day)
        limits = checked_limits(source, requests_per_minute, concurrency, budget)
        interval = timedelta(milliseconds=limits["interval_ms"])
        with self._lock:
            now = self._changed[source] = self._clock.now()
            row = self._rows.setdefault(
                source,
                GateRow(
                    source,
                    now,
                    interval,
                    concurrency,
                    zone=self._zone,
                    empty_limit=self._empty_limit,
                    at_risk=self._at_risk,
                ),
            )
            row.interval, row.concurrency, row.budget = interval, concurrency, budget

    def status(self) -> list[GateStatus]:
        """Return every source's state, by name."""
        now = self._clock.now()
        with self._lock:
            return [status_of(row, self._changed[source], now) for source, row in sorted(self._rows.items())]

    def _look(self, source: str, question: Callable[[GateRow], T], *, without_row: T) -> T:
        with self._lock:
            row = self._rows.get(source)
            return without_row if row is None else question(row)

    def _change(self, source: str, change: Callable[[GateRow], T]) -> T:
        with self._lock:
            row = self._rows.get(source)
            if row is None:
                raise GateUnreadable(source, "the gate has no row for this source: configure it first")
            self._changed[source] = self._clock.now()
            return change(row)
