"""Shared by all Dagster definitions of the digest: the tags of its runs, its pool, and the resource ``services``."""

from functools import partial

import dagster as dg

from douban_pipeline.dagster_kit.launchpad import location_of, person_tags
from douban_pipeline.dagster_kit.resources import platform_resource
from douban_pipeline.dagster_kit.runs import run_tags
from douban_pipeline.digest.services import LOCATION, DigestServices, open_services
from douban_pipeline.digest.settings import DigestSettings

SYSTEM = "digest"
"""Value of the tag ``system`` in all runs of this system."""

SLOT_POOL = "digest_slots"
POOL_LIMITS = {SLOT_POOL: 2}
"""Pools of the code location: how many slots may be in progress at once."""

tags_of = partial(run_tags, SYSTEM)
"""Returns the tags of a job by the kind of its runs."""

PERSON_TAGS = person_tags(SYSTEM)


def services_resource(settings: DigestSettings) -> dg.ConfigurableResource[DigestServices]:
    """Return the resource ``services``: database, sources and settings of one process."""
    return platform_resource(lambda run: open_services(settings, location=location_of(run) or LOCATION))
