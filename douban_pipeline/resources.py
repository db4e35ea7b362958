"""What the Dagster faces are given to work with. Add resources here; the things themselves know no Dagster."""

from collections.abc import Iterator

import dagster as dg

from douban_pipeline.services import Services, open_services
from douban_pipeline.settings import Settings


def services_resource(settings: Settings) -> dg.ResourceDefinition:
    """Return the resource ``services``: database, sources and settings of one process.

    It takes no configuration: settings, and with them secrets, come from the environment alone and never appear
    in a run's config.
    """

    @dg.resource(description="Database, sources and settings, as the environment says.")
    def services(_context: dg.InitResourceContext) -> Iterator[Services]:
        opened = open_services(settings)
        try:
            yield opened
        finally:
            opened.close()

    return services
