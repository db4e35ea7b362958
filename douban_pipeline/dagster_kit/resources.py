"""A system's services as a Dagster resource. The services themselves know no Dagster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import dagster as dg

_STATEMENT_SECONDS, _RECYCLE_SECONDS, _MORE_CONNECTIONS = 60, 300, 5


class Closing(Protocol):
    """What a process opens once and closes at its end: a system's services."""

    def close(self) -> None:
        """Close what was opened."""
        ...


P = TypeVar("P", bound=Closing)


def platform_resource(open_platform: Callable[[dg.DagsterRun | None], P]) -> dg.ConfigurableResource[P]:
    """Return the resource that gives each run, or tick of a sensor, services of its own and closes them after it.

    It takes no configuration: settings, and with them secrets, come from the environment alone and never appear in a
    run's config. Who asks for it annotates ``dg.ResourceParam[Services]`` and gets what ``open_platform`` returns,
    which is given the run, or None in a sensor.
    """

    class PlatformResource(dg.ConfigurableResource[P]):
        """Database, sources and settings, as the environment says."""

        # Dagster makes a resource anew from its fields, so what is not config cannot be kept in it.
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
    """Let a run write its events over connections that stay open: Dagster opens one for each event on PostgreSQL."""
    instance.optimize_for_webserver(
        statement_timeout=_STATEMENT_SECONDS * 1000, pool_recycle=_RECYCLE_SECONDS, max_overflow=_MORE_CONNECTIONS
    )
