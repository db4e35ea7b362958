"""What all Dagster definitions of this system share: the tags of runs, its pools, and the resource ``services``."""

from functools import partial
from typing import Annotated

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.launchpad import AtLeast, Filled, location_of, person_tags
from douban_pipeline.dagster_kit.resources import platform_resource
from douban_pipeline.dagster_kit.runs import run_tags
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import Settings

SYSTEM = "douban"
"""Value of the tag ``system`` in all runs of this system."""

SEARCH_POOL = "douban_search"
DOUBAN_POOL = "douban_subjects"
LLM_POOL = "douban_intros"
DECISIONS_POOL = "douban_decisions"
ORDERED_INTROS_POOL = "douban_ordered_intros"
POOL_LIMITS = {SEARCH_POOL: 3, DOUBAN_POOL: 3, LLM_POOL: 3, DECISIONS_POOL: 1, ORDERED_INTROS_POOL: 1}
"""Every pool of the code location: how many runs may use one source at once. The gate paces their requests.

Three for the chain: while one run begins and another writes, a third still makes requests.
"""

tags_of = partial(run_tags, SYSTEM)
"""Function that returns the tags of a job by the kind of its runs."""

PERSON_TAGS = person_tags(SYSTEM)

OVERRIDE = page_text("Write although the row is locked; refused otherwise.")
"""Description of a field that all jobs share in which people decide what is written."""

_NO_VIDEO = page_text("A video's id is in mac_vod.vod_id.")
VideoId = Annotated[int, AtLeast(1, _NO_VIDEO)]
VideoIds = Annotated[list[int], AtLeast(1, _NO_VIDEO)]
SomeVideoIds = Annotated[
    list[int], AtLeast(1, _NO_VIDEO), Filled(page_text("Write the ids of videos (mac_vod.vod_id)."))
]
"""Fields of jobs' configs for videos: one, any number, and at least one."""


def services_resource(settings: Settings) -> dg.ConfigurableResource[Services]:
    """Return the resource ``services``: database, sources and settings of one process."""
    return platform_resource(lambda run: open_services(settings, location=location_of(run) or LOCATION))
