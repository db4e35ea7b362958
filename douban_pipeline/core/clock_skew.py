"""How far this machine's clock differs from the database's, and how far it may."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, func, select

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading

SLIGHT_SKEW = timedelta(seconds=0.5)
"""Up to this difference no minute can hold more requests than allowed: the gate's slots are 2 % further apart than the
limit requires."""
LARGEST_SKEW = timedelta(seconds=5)
"""From this difference on, leases and places at the gate are misjudged: a waiter after 20 s, the pace after 600 s."""


def clock_skew(engine: Engine, clock: Clock) -> timedelta:
    """Return how far ``clock`` is ahead of the database's (negative: behind), to half a round trip; 0 for SQLite.

    Raises:
        SQLAlchemyError: The database cannot be queried.
    """
    if engine.dialect.name == "sqlite":
        return timedelta()  # SQLite uses this machine's clock
    on_postgresql = engine.dialect.name == "postgresql"
    ask = select(func.timezone("UTC", func.clock_timestamp()) if on_postgresql else func.utc_timestamp(6))
    with reading(engine) as connection:
        connection.execute(select(1))  # so that connecting does not count as part of the round trip
        asked = clock.now()
        theirs: datetime = connection.execute(ask).scalar_one()
        answered = clock.now()
    return asked + (answered - asked) / 2 - theirs.replace(tzinfo=UTC)


def skew_text(skew: timedelta) -> str:
    """Return a `clock_skew` as text that continues "this clock is"."""
    side = "ahead of" if skew > timedelta() else "behind"
    return f"{abs(skew).total_seconds():.1f} s {side} the database's"
