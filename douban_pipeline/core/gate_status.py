"""Rows of the gate's table: decoded into rules, encoded again, and summarised for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sqlalchemy import Engine, Row, Table, inspect, select

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.clock import day_of
from douban_pipeline.core.database import reading
from douban_pipeline.core.gate_evidence import EMPTY_IN_A_ROW, DoubtWindow, FindingEvidence
from douban_pipeline.core.gate_outcomes import CallOutcomes
from douban_pipeline.core.gate_rules import SAFETY, GateRow, GateState
from douban_pipeline.core.gate_types import Budget, QueuedCall
from douban_pipeline.core.gate_usage import GateUsage, Minute
from douban_pipeline.core.language import terminal_text

# Keys of the stored usage, in addition to the counters' own.
_OUTCOMES, _EVIDENCE = "calls", "evidence"


@dataclass(frozen=True, slots=True)
class GateStatus:
    """One source as reports show it.

    Attributes:
        source: Its name.
        state: closed (calls pass), open (none) or half_open (one probe).
        open_until: When an open breaker lets a probe pass.
        reason: Why it is not closed; empty when it is.
        failures: Failed calls in a row.
        granted: Calls admitted since the row was created.
        requests_per_minute: The configured limit.
        concurrency: Calls allowed at the same time, over all processes, as configured.
        at_once: Calls admitted at the same time now: fewer after the source throttled.
        in_use: Places in use now.
        waiting: Callers queued for a place.
        next_slot_at: Earliest time of the next call.
        updated_at: Last change of the row.
        requests_per_day: Calls allowed per day; None is no limit.
        used_today: Calls admitted today, in the zone of the gate.
        tokens_per_minute: Tokens allowed in any minute; None is no limit.
        tokens_per_day: Tokens allowed per day; None is no limit.
        tokens_today: Tokens of today's calls: as used, or the estimate while that is unknown.
        changed_by: The person who opened or closed it; empty if it changed automatically.
        minutes: The last 60 minutes, oldest first, only those with traffic.
        doubt: Why its empty answers are not trusted at present, in Chinese; empty if they are.
        doubts: Periods in which its empty answers proved nothing, oldest first; see `gate_evidence`.
    """

    source: str
    state: GateState
    open_until: datetime | None
    reason: str
    failures: int
    granted: int
    requests_per_minute: float
    concurrency: int
    at_once: int
    in_use: int
    waiting: int
    next_slot_at: datetime
    updated_at: datetime
    requests_per_day: int | None = None
    used_today: int = 0
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    tokens_today: int = 0
    changed_by: str = ""
    minutes: tuple[Minute, ...] = ()
    doubt: str = ""
    doubts: tuple[DoubtWindow, ...] = ()


def decode(row: Row[Any], zone: tzinfo, empty_limit: int = EMPTY_IN_A_ROW) -> GateRow:
    """Return the `GateRow` of a stored row.

    Args:
        row: The row as stored.
        zone: Time zone of its days.
        empty_limit: How many empty answers in a row make the source doubted.

    Raises:
        ValueError: It cannot be read; KeyError and TypeError may be raised too.
    """
    stored = row.usage or {}
    return GateRow(
        source=row.source,
        next_slot_at=row.next_slot_at,
        interval=timedelta(milliseconds=row.interval_ms),
        concurrency=row.concurrency,
        holders=[_holder(item) for item in row.holders],
        state=GateState(row.state),
        open_until=row.open_until,
        probe_owner=row.probe_owner,
        probe_until=row.probe_until,
        failures=row.failures,
        granted=row.granted,
        reason=row.reason,
        changed_by=row.changed_by,
        budget=Budget(row.requests_per_day, row.tokens_per_minute, row.tokens_per_day),
        usage=GateUsage.from_json(row.usage),
        outcomes=CallOutcomes.from_json(stored.get(_OUTCOMES)),
        evidence=FindingEvidence.from_json(stored.get(_EVIDENCE)),
        zone=zone,
        empty_limit=empty_limit,
    )


def encode(row: GateRow) -> dict[str, object]:
    """Return the columns changed by calls and people; limits are written by `Gate.configure` alone."""
    return {
        "next_slot_at": row.next_slot_at,
        "holders": [
            {
                "owner": holder.owner,
                "until": holder.until.isoformat(),
                "slot_at": holder.slot_at.isoformat() if holder.slot_at else None,
                "granted_at": holder.granted_at.isoformat() if holder.granted_at else None,
                "answered_by": holder.answered_by.isoformat() if holder.answered_by else None,
                "tokens": holder.tokens,
                **({"urgent": True} if holder.urgent else {}),
                **({"follows": True} if holder.follows else {}),
                **({"since": holder.since.isoformat()} if holder.since else {}),
                **({"joined_at": holder.joined_at.isoformat()} if holder.joined_at else {}),
            }
            for holder in row.holders
        ],
        "state": row.state.value,
        "open_until": row.open_until,
        "probe_owner": row.probe_owner,
        "probe_until": row.probe_until,
        "failures": row.failures,
        "granted": row.granted,
        "reason": " ".join(row.reason.split())[:500],
        "changed_by": " ".join(row.changed_by.split())[:64],
        # One JSON column: an older release ignores the keys it does not know.
        "usage": {
            **row.usage.to_json(),
            _OUTCOMES: row.outcomes.to_json(),
            _EVIDENCE: row.evidence.to_json(),
        },
    }


def status_of(row: GateRow, updated_at: datetime, now: datetime) -> GateStatus:
    """Return the status of ``row`` at ``now``, for people."""
    at_once = row.outcomes.at_once(row.concurrency)
    queued = sum(holder.until > now for holder in row.holders)
    requests, tokens = row.usage.of_day(day_of(now, row.zone).date)
    return GateStatus(
        source=row.source,
        state=row.state,
        open_until=row.open_until,
        reason=row.reason,
        failures=row.failures,
        granted=row.granted,
        requests_per_minute=round(60 * SAFETY / row.interval.total_seconds(), 2),
        concurrency=row.concurrency,
        at_once=at_once,
        in_use=min(queued, at_once),
        waiting=max(queued - at_once, 0),
        next_slot_at=row.next_slot_at,
        updated_at=updated_at,
        requests_per_day=row.budget.requests_per_day,
        used_today=requests,
        tokens_per_minute=row.budget.tokens_per_minute,
        tokens_per_day=row.budget.tokens_per_day,
        tokens_today=tokens,
        changed_by=row.changed_by,
        minutes=row.usage.last_minutes(now),
        doubt=row.evidence.sentence,
        doubts=tuple(row.evidence.windows),
    )


_MOMENT = timedelta(minutes=2)
"""A pause that ends within this time passes by itself before anybody has read of it."""


def closed_gates(engine: Engine, table: Table, now: datetime) -> dict[str, CheckResult]:
    """Return a failure for each source whose gate lets no call pass, or a warning: by a person, or for a moment."""
    with reading(engine) as connection:
        if not inspect(connection).has_table(table.name, schema=table.schema):
            return {}
        query = select(table.c.source, table.c.reason, table.c.changed_by, table.c.open_until)
        rows = connection.execute(query.where(table.c.state != GateState.CLOSED.value).order_by(table.c.source)).all()
    found = {}
    for row in rows:
        soon = row.open_until is not None and now < row.open_until <= now + _MOMENT
        message = terminal_text("its gate takes no calls: {reason}").format(reason=row.reason)
        remedy = terminal_text("see source_gates, or set_gate")
        found[row.source] = CheckResult("gate", "warn" if row.changed_by or soon else "fail", message, remedy)
    return found


def _holder(stored: Any) -> QueuedCall:
    return QueuedCall(
        str(stored["owner"]),
        datetime.fromisoformat(stored["until"]),
        _moment(stored["slot_at"]),
        _moment(stored.get("granted_at")),
        _moment(stored.get("answered_by")),  # an older release does not store it
        int(stored.get("tokens", 0)),
        bool(stored.get("urgent", False)),
        _moment(stored.get("since")),
        _moment(stored.get("joined_at")),
        bool(stored.get("follows", False)),
    )


def _moment(stored: str | None) -> datetime | None:
    return datetime.fromisoformat(stored) if stored else None
