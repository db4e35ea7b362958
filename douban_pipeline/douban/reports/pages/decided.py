"""Reviewers' decisions that did not come to an end yet, or came to a bad one lately."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select
from sqlalchemy.sql import ColumnElement

from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import NAMING
from douban_pipeline.douban.store.states import DecisionState

REFUSED_DAYS = 7
MOST = 100
_OPEN = (DecisionState.PENDING, DecisionState.QUEUED)


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """A decision as it is told.

    Attributes:
        state_reason: Why it was refused, or what it waits for.
        unchecked: Whether the subject it names is still to be asked for and compared.
        batch_id: All that was recorded at once.
    """

    decision_id: int
    vod_id: int
    action: str
    douban_id: int
    reviewer: str
    note: str
    state: str
    state_reason: str
    unchecked: bool
    batch_id: str
    at: datetime


def open_decisions(services: Services, connection: Connection) -> tuple[int, list[DecisionLine]]:
    """Return the decisions that wait or are queued: how many, and the oldest."""
    return _decisions(services, connection, _OPEN, [], newest_first=False)


def refused_decisions(services: Services, connection: Connection) -> tuple[int, list[DecisionLine]]:
    """Return the decisions of the last `REFUSED_DAYS` days that were refused: how many, and the newest."""
    since = services.tables.decision.c.created_at >= services.clock.now() - timedelta(days=REFUSED_DAYS)
    return _decisions(services, connection, [DecisionState.REFUSED], [since], newest_first=True)


def _decisions(
    services: Services,
    connection: Connection,
    states: Collection[DecisionState],
    conditions: list[ColumnElement[bool]],
    *,
    newest_first: bool,
) -> tuple[int, list[DecisionLine]]:
    decision = services.tables.decision
    wanted = (decision.c.state.in_(states), *conditions)
    count = connection.execute(select(func.count()).select_from(decision).where(*wanted)).scalar_one()
    order = decision.c.decision_id.desc() if newest_first else decision.c.decision_id
    query = select(decision).where(*wanted).order_by(order).limit(MOST)
    return int(count), [
        DecisionLine(
            row["decision_id"],
            row["vod_id"],
            row["action"],
            row["douban_id"],
            row["reviewer"],
            row["note"],
            row["state"],
            row["state_reason"],
            row["state"] == DecisionState.PENDING and row["action"] in NAMING and row["checked_at"] is None,
            row["batch_id"],
            row["created_at"],
        )
        for row in connection.execute(query).mappings()
    ]
