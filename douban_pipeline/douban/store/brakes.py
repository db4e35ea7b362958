"""Brakes on strata: while one is on, nothing in its stratum is confirmed automatically.

Measured precision pulls a brake, only a person lifts it. Whoever judges or writes asks `active`. Strata that lack one
thing are held back without a brake; one that a person lifted opens them, and pulled again closes them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.matching.strata import OPENINGS


@dataclass(frozen=True, slots=True)
class Brake:
    """The newest brake of a stratum.

    Attributes:
        stratum: The stratum, see `matching.strata`.
        reason: Why it was pulled, for people.
        lower_bound: Lower bound of the precision at that time, 0 to 1.
        target: What it fell short of.
        labels: Decisions of people it was measured by.
        pulled_at: When.
        lifted_at: When a person lifted it; None while it is on.
        lifted_by: Who did.
        lift_note: Why.
    """

    stratum: str
    reason: str
    lower_bound: float
    target: float
    labels: int
    pulled_at: datetime
    lifted_at: datetime | None = None
    lifted_by: str = ""
    lift_note: str = ""

    @property
    def on(self) -> bool:
        """Whether it holds its stratum back."""
        return self.lifted_at is None


def active(connection: Connection, tables: OwnTables) -> frozenset[str]:
    """Return the strata whose brake is on."""
    brake = tables.brake
    return frozenset(connection.execute(select(brake.c.stratum).where(brake.c.lifted_at.is_(None))).scalars())


def opened(connection: Connection, tables: OwnTables) -> frozenset[str]:
    """Return the strata that a person opened (`matching.strata.OPENINGS`): closed until a person lifts their brake."""
    brake = tables.brake
    query = select(brake.c.stratum).where(brake.c.stratum.in_(OPENINGS), brake.c.lifted_at.is_not(None))
    return frozenset(connection.execute(query).scalars())


def newest(connection: Connection, tables: OwnTables) -> dict[str, Brake]:
    """Return the newest brake of every stratum that ever had one, the strata in order."""
    rows = connection.execute(select(tables.brake).order_by(tables.brake.c.stratum)).mappings()
    return {row["stratum"]: Brake(**row) for row in rows}


def pull(connection: Connection, tables: OwnTables, brake: Brake) -> bool:
    """Put a brake on; return whether it was off. One that is on is not changed."""
    table = tables.brake
    if brake.stratum in active(connection, tables):
        return False
    connection.execute(delete(table).where(table.c.stratum == brake.stratum))
    connection.execute(
        insert(table).values(
            stratum=brake.stratum,
            reason=brake.reason[:500],
            lower_bound=brake.lower_bound,
            target=brake.target,
            labels=brake.labels,
            pulled_at=brake.pulled_at,
        )
    )
    return True


def lift(
    connection: Connection, tables: OwnTables, strata: Collection[str], *, reviewer: str, note: str, at: datetime
) -> None:
    """Lift the brakes of ``strata`` that are on."""
    table = tables.brake
    connection.execute(
        update(table)
        .where(table.c.stratum.in_(strata), table.c.lifted_at.is_(None))
        .values(lifted_at=at, lifted_by=reviewer[:64], lift_note=note[:500])
    )
