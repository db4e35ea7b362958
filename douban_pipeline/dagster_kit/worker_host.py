"""Whether a host may work beside others: the same release, one database, a clock that agrees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import DatabaseError, reading
from douban_pipeline.core.platform import Platform

SLIGHTLY_APART = timedelta(seconds=0.5)
"""Clocks that agree this well cannot make a minute hold more requests than allowed: the gate's slots stand 2 % further
apart than the limit asks."""
TOO_FAR_APART = timedelta(seconds=5)
"""Further apart, leases and places at the gate come to be judged wrongly: a waiter after 20 s, the pace after 600 s."""


class WorkerHostError(Exception):
    """A host must not work beside others; the message says why and what to do."""


def check_worker_host(platform: Platform) -> list[str]:
    """Return what is not as it should be on this host, but bearable.

    Raises:
        WorkerHostError: It must not work as it is.
    """
    if platform.engine.dialect.name == "sqlite":
        raise WorkerHostError("the library is an SQLite file, which other hosts cannot reach: set a MariaDB or MySQL")
    try:
        platform.ready()
        apart = clock_apart(platform)
    except (DatabaseError, SQLAlchemyError) as error:
        raise WorkerHostError(str(error)) from error
    if abs(apart) >= TOO_FAR_APART:
        raise WorkerHostError(f"its clock {_told(apart)}: let NTP set it")
    if abs(apart) >= SLIGHTLY_APART:
        return [f"The clock of this host {_told(apart)}: a minute may hold a request more than allowed; let NTP set it"]
    return []


def clock_apart(platform: Platform) -> timedelta:
    """Return how far this host's clock is ahead of the database's (below 0: behind), to half a round trip."""
    with reading(platform.engine) as connection:
        connection.execute(select(1))  # connecting must not count as a part of the round trip
        asked = platform.clock.now()
        theirs: datetime = connection.execute(select(func.utc_timestamp(6))).scalar_one()
        answered = platform.clock.now()
    return asked + (answered - asked) / 2 - theirs.replace(tzinfo=UTC)


def _told(apart: timedelta) -> str:
    side = "ahead of" if apart > timedelta() else "behind"
    return f"is {abs(apart).total_seconds():.1f} s {side} the database's"
