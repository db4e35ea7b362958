"""What the Dagster faces are given to work with. Add resources here; the things themselves know no Dagster."""

from collections.abc import Iterator

import dagster as dg

from douban_pipeline.dagster_kit.launchpad import location_of
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import Settings

_STATEMENT_SECONDS, _RECYCLE_SECONDS, _MORE_CONNECTIONS = 60, 300, 5


def services_resource(settings: Settings) -> dg.ResourceDefinition:
    """Return the resource ``services``: database, sources and settings of one process.

    It takes no configuration: settings, and with them secrets, come from the environment alone and never appear
    in a run's config.
    """

    @dg.resource(description="Database, sources and settings, as the environment says.")
    def services(context: dg.InitResourceContext) -> Iterator[Services]:
        if context.run is not None and context.instance is not None:
            keep_connections(context.instance)
        opened = open_services(settings, location=location_of(context.run) or LOCATION)
        try:
            yield opened
        finally:
            opened.close()

    return services


def keep_connections(instance: dg.DagsterInstance) -> None:
    """Let a run write its events over connections that stay open: Dagster opens one for each event on PostgreSQL."""
    instance.optimize_for_webserver(
        statement_timeout=_STATEMENT_SECONDS * 1000, pool_recycle=_RECYCLE_SECONDS, max_overflow=_MORE_CONNECTIONS
    )
