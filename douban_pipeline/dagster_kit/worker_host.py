"""Whether a host may run jobs of all installed systems, together with others: same release, shared database, correct
clock; and the modules that its workers preload."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.clock_skew import LARGEST_SKEW, SLIGHT_SKEW, clock_skew, skew_text
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.system import chosen


class WorkerHostError(Exception):
    """A host must not work together with others; the message states the reason and the remedy."""


def check_worker_host(engine: Engine, clock: Clock, ready: Callable[[], object]) -> list[str]:
    """Return warnings about this host that do not prevent it from working.

    Args:
        engine: Engine of a system's tables.
        clock: This host's clock.
        ready: Raises `DatabaseError` if the tables are not of this release.

    Raises:
        WorkerHostError: The host must not work in its present state.
    """
    if engine.dialect.name == "sqlite":
        shown = engine.url.render_as_string(hide_password=True)
        raise WorkerHostError(f"{shown} is an SQLite file, which other hosts cannot reach: set a database on a server")
    try:
        ready()
        skew = clock_skew(engine, clock)
    except (DatabaseError, SQLAlchemyError) as error:
        raise WorkerHostError(str(error)) from error
    if abs(skew) >= LARGEST_SKEW:
        raise WorkerHostError(f"its clock is {skew_text(skew)}: let NTP set it")
    if abs(skew) >= SLIGHT_SKEW:
        effect = "a minute may hold a request more than allowed"
        return [f"The clock of this host is {skew_text(skew)}: {effect}; let NTP set it"]
    return []


def check_host() -> list[str]:
    """Return warnings about this host: problems that do not prevent work.

    Raises:
        WorkerHostError: The host must not work in its current state.
        SettingsError: A setting is wrong.
    """
    warnings: list[str] = []
    for system in chosen():
        with system.opened() as services:
            warnings += check_worker_host(services.engine, services.clock, services.ready)
    return list(dict.fromkeys(warnings))


def locations() -> list[str]:
    """Return the modules of the installed code locations."""
    return [system.location for system in chosen()]
