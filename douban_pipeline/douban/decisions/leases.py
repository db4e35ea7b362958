"""Who applies a decision: one run at a time, and all of a video's together.

As with tasks, a run leases what it works on; others leave it alone until it is done, is known to be dead, or was silent
for too long. Whoever settles a decision must still hold it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, or_, select, update

from douban_pipeline.core.database import reading, run_statement, run_transaction
from douban_pipeline.core.owner import is_dead
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Decision
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tables import OwnTables

LEASE = timedelta(minutes=5)
"""How long a decision stays with a run that gives no sign of life: longer than any subject is waited for."""


def free_decision(tables: OwnTables, now: datetime) -> ColumnElement[bool]:
    """Return the condition that no run holds a decision."""
    until = tables.decision.c.lease_until
    return or_(until.is_(None), until < now)


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
        decision = self.services.tables.decision
        query = (
            select(decision)
            .where(decision.c.vod_id.in_(vod_ids), decision.c.state == DecisionState.PENDING)
            .order_by(decision.c.decision_id)
            .with_for_update()
        )

        def take(connection: Connection) -> dict[int, list[Decision]]:
            by_video: dict[int, list[Decision]] = {}
            taken: set[int] = set()
            for row in connection.execute(query).mappings():
                others = row["lease_owner"] != self.owner
                if others and row["lease_until"] is not None and row["lease_until"] >= now:
                    taken.add(row["vod_id"])
                by_video.setdefault(row["vod_id"], []).append(Decision.from_row(row))
            ours = {vod_id: found for vod_id, found in by_video.items() if vod_id not in taken}
            keys = [each.decision_id for found in ours.values() for each in found]
            if keys:
                lease = {"lease_owner": self.owner, "lease_until": now + LEASE}
                connection.execute(update(decision).where(decision.c.decision_id.in_(keys)).values(**lease))
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
        keys = self._held()
        table = self.services.tables.decision
        mine = (table.c.decision_id.in_(keys), table.c.lease_owner == self.owner, table.c.lease_until.is_not(None))
        if keys:
            run_statement(self.services.engine, update(table).where(*mine).values(lease_until=now + LEASE))
        self._renewed_at = now

    def release(self) -> None:
        """Release the decisions that this run did not get to."""
        keys = self._held()
        table = self.services.tables.decision
        mine = (table.c.decision_id.in_(keys), table.c.lease_owner == self.owner)
        if keys:
            run_statement(self.services.engine, update(table).where(*mine).values(lease_until=None))

    def _held(self) -> Sequence[int]:
        # By key, in order: an update by lease_owner would lock through an index that leasing changes.
        table = self.services.tables.decision
        query = select(table.c.decision_id).where(table.c.lease_owner == self.owner, table.c.lease_until.is_not(None))
        with reading(self.services.engine) as connection:
            return sorted(connection.execute(query).scalars())


def release_dead_decisions(services: Services) -> list[str]:
    """Free the decisions of owners whose process is gone; return those owners."""
    table = services.tables.decision
    held = (table.c.state == DecisionState.PENDING, table.c.lease_until.is_not(None))
    with reading(services.engine) as connection:
        found = connection.execute(select(table.c.decision_id, table.c.lease_owner).where(*held)).tuples().all()
    dead = {owner for _, owner in found if is_dead(owner)}
    if dead:
        keys = sorted(key for key, owner in found if owner in dead)
        run_statement(
            services.engine,
            update(table).where(table.c.decision_id.in_(keys), table.c.lease_owner.in_(dead)).values(lease_until=None),
        )
    return sorted(dead)
