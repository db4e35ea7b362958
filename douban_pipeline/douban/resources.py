"""What the Dagster faces are given to work with. Add resources here; the things themselves know no Dagster."""

import dagster as dg

from douban_pipeline.dagster_kit.launchpad import location_of
from douban_pipeline.dagster_kit.resources import platform_resource
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import Settings


def services_resource(settings: Settings) -> dg.ConfigurableResource[Services]:
    """Return the resource ``services``: database, sources and settings of one process."""
    return platform_resource(lambda run: open_services(settings, location=location_of(run) or LOCATION))
