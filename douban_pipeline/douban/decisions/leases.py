"""Who applies a decision: one run at a time, and all of a video's together.

As with tasks, a run leases what it works on; others leave it alone until it is done, is known to be dead, or was silent
for too long. Whoever settles a decision must still hold it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import ColumnElement, Connection, and_, or_, select

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.leases import Leases
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tables import OwnTables

LEASE = timedelta(minutes=5)
"""How long a decision stays with a run that gives no sign of life: longer than any subject is waited for."""


@cache
def decision_leases(tables: OwnTables) -> Leases:
    """Return the leases of decisions; a free one still names the run that applied or looked at it last."""
    decision = tables.decision
    return Leases(decision.c.decision_id, decision.c.lease_owner, decision.c.lease_until, keeps_owner=True)


def due_decision(tables: OwnTables, now: datetime) -> ColumnElement[bool]:
    """Return the condition that a decision is pending and waits for no source any more."""
    decision = tables.decision
    return and_(
        decision.c.state == DecisionState.PENDING, or_(decision.c.run_after.is_(None), decision.c.run_after <= now)
    )


@dataclass(slots=True)
class DecisionLeases:
    """The pending decisions that one run holds.

    Attributes:
        services: Database and time.
        owner: The run's name, see `owner.owner_name`.
    """

    services: Services
    owner: str
    _renewed_at: datetime | None = field(default=None, init=False)

    def lease(self, vod_ids: Collection[int]) -> list[list[Decision]]:
        """Lease the pending decisions about videos; return them, a list a video in the order of ``vod_ids``.

        Those of a video are leased together or not at all: one that another run holds decides over the rest.
        """
        now = self.services.clock.now()
        leases, decision = decision_leases(self.services.tables), self.services.tables.decision
        pending = (decision.c.vod_id.in_(vod_ids), decision.c.state == DecisionState.PENDING)
        query = select(decision).where(*pending).order_by(decision.c.decision_id).with_for_update()
        taken = select(decision.c.vod_id).where(*pending, ~leases.available([self.owner], now))

        def take(connection: Connection) -> dict[int, list[Decision]]:
            rows = connection.execute(query).mappings().all()
            others = set(connection.execute(taken).scalars())
            free = [row for row in rows if row["vod_id"] not in others]
            leases.take(connection, self.owner, [row["decision_id"] for row in free], now=now, until=now + LEASE)
            ours: dict[int, list[Decision]] = {}
            for row in free:
                ours.setdefault(row["vod_id"], []).append(Decision.from_row(row))
            return ours

        found = run_transaction(self.services.engine, take)
        self._renewed_at = now
        return [found[vod_id] for vod_id in vod_ids if vod_id in found]

    def ours(self, decision_id: int) -> ColumnElement[bool]:
        """Return the condition that a decision is pending and this run's."""
        table = self.services.tables.decision
        return and_(
            table.c.decision_id == decision_id,
            table.c.state == DecisionState.PENDING,
            table.c.lease_owner == self.owner,
        )

    def renew(self) -> None:
        """Renew the leases that this run holds, if the last renewal is some time ago."""
        now = self.services.clock.now()
        if self._renewed_at is None or now - self._renewed_at < LEASE / 5:
            return
        leases, keys = decision_leases(self.services.tables), self._held()
        if keys:
            run_transaction(self.services.engine, lambda c: leases.renew(c, self.owner, keys, now + LEASE))
        self._renewed_at = now

    def release(self) -> None:
        """Release the decisions that this run did not get to."""
        leases, keys = decision_leases(self.services.tables), self._held()
        if keys:
            run_transaction(self.services.engine, lambda c: leases.put_back(c, self.owner, keys))

    def _held(self) -> list[int]:
        with reading(self.services.engine) as connection:
            return decision_leases(self.services.tables).held(connection, self.owner)


def release_dead_decisions(services: Services) -> list[str]:
    """Free the decisions of owners whose process is gone; return those owners."""
    pending = services.tables.decision.c.state == DecisionState.PENDING
    return decision_leases(services.tables).put_back_dead(services.engine, [pending])
