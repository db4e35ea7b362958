"""A system's services as a Dagster resource. The services themselves do not depend on Dagster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import dagster as dg

_STATEMENT_SECONDS, _RECYCLE_SECONDS, _MORE_CONNECTIONS = 60, 300, 5


class Closing(Protocol):
    """An object opened once per process and closed at its end: a system's services."""

    def close(self) -> None:
        """Close everything that was opened."""
        ...


P = TypeVar("P", bound=Closing)


def platform_resource(open_platform: Callable[[dg.DagsterRun | None], P]) -> dg.ConfigurableResource[P]:
    """Return a resource that opens services for each run, or tick of a sensor, and closes them afterwards.

    It has no configuration: settings, including secrets, come from the environment alone and never appear in a run's
    config. Users of the resource annotate ``dg.ResourceParam[Services]`` and get what ``open_platform`` returns when
    called with the run, or with None in a sensor.
    """

    class PlatformResource(dg.ConfigurableResource[P]):
        """Database, sources and settings, configured by the environment."""

        # Dagster recreates a resource from its fields, so only config can be stored in it.
        @contextmanager
        def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[P]:
            if context.run is not None and context.instance is not None:
                keep_connections(context.instance)
            opened = open_platform(context.run)
            try:
                yield opened
            finally:
                opened.close()

    return PlatformResource()


def keep_connections(instance: dg.DagsterInstance) -> None:
    """Let a run write its events over open connections: Dagster opens a new one for each event on PostgreSQL."""
    instance.optimize_for_webserver(
        statement_timeout=_STATEMENT_SECONDS * 1000, pool_recycle=_RECYCLE_SECONDS, max_overflow=_MORE_CONNECTIONS
    )
