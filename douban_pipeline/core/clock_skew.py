"""How far this machine's clock is from the database's, and how far it may be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, func, select

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading

SLIGHT_SKEW = timedelta(seconds=0.5)
"""Clocks that agree better than this cannot make a minute hold more requests than allowed: the gate's slots are 2 %
further apart than the limit asks."""
LARGEST_SKEW = timedelta(seconds=5)
"""From here on leases and places at the gate come to be judged wrongly: a waiter after 20 s, the pace after 600 s."""


def clock_skew(engine: Engine, clock: Clock) -> timedelta:
    """Return how far ``clock`` is ahead of the database's (below 0: behind), to half a round trip; of SQLite's, 0.

    Raises:
        SQLAlchemyError: The database cannot be asked.
    """
    if engine.dialect.name == "sqlite":
        return timedelta()  # it takes this machine's
    on_postgresql = engine.dialect.name == "postgresql"
    ask = select(func.timezone("UTC", func.clock_timestamp()) if on_postgresql else func.utc_timestamp(6))
    with reading(engine) as connection:
        connection.execute(select(1))  # connecting must not count as a part of the round trip
        asked = clock.now()
        theirs: datetime = connection.execute(ask).scalar_one()
        answered = clock.now()
    return asked + (answered - asked) / 2 - theirs.replace(tzinfo=UTC)


def skew_text(skew: timedelta) -> str:
    """Return a `clock_skew` in words that continue "this clock is"."""
    side = "ahead of" if skew > timedelta() else "behind"
    return f"{abs(skew).total_seconds():.1f} s {side} the database's"
