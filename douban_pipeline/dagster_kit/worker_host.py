"""Whether a host may work beside others: the same release, one database, a clock that agrees."""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.clock_skew import LARGEST_SKEW, SLIGHT_SKEW, clock_skew, skew_text
from douban_pipeline.core.database import DatabaseError
from douban_pipeline.core.platform import Platform


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
        skew = clock_skew(platform.engine, platform.clock)
    except (DatabaseError, SQLAlchemyError) as error:
        raise WorkerHostError(str(error)) from error
    if abs(skew) >= LARGEST_SKEW:
        raise WorkerHostError(f"its clock is {skew_text(skew)}: let NTP set it")
    if abs(skew) >= SLIGHT_SKEW:
        effect = "a minute may hold a request more than allowed"
        return [f"The clock of this host is {skew_text(skew)}: {effect}; let NTP set it"]
    return []
