"""Shared by all Dagster definitions of the feeds system: the tags of its runs, its pool, and the resource
``services``."""

from functools import partial

import dagster as dg

from douban_pipeline.dagster_kit.launchpad import location_of, person_tags
from douban_pipeline.dagster_kit.resources import platform_resource
from douban_pipeline.dagster_kit.runs import run_tags
from douban_pipeline.feeds.services import LOCATION, FeedsServices, open_services
from douban_pipeline.feeds.settings import FeedsSettings

SYSTEM = "feeds"
"""Value of the tag ``system`` in all runs of this system."""

POLL_POOL = "feeds_web"
POOL_LIMITS = {POLL_POOL: 2}
"""Pools of the code location: how many runs may poll at once. Requests are paced by the gates."""

tags_of = partial(run_tags, SYSTEM)
"""Returns the tags of a job by the kind of its runs."""

PERSON_TAGS = person_tags(SYSTEM)


def services_resource(settings: FeedsSettings) -> dg.ConfigurableResource[FeedsServices]:
    """Return the resource ``services``: database, sources and settings of one process."""
    return platform_resource(lambda run: open_services(settings, location=location_of(run) or LOCATION))
