"""Shared by all Dagster definitions of TMDB: the tags of its runs, its pools, and the resource ``services``."""

from functools import partial

import dagster as dg

from douban_pipeline.dagster_kit.launchpad import location_of, person_tags
from douban_pipeline.dagster_kit.resources import platform_resource
from douban_pipeline.dagster_kit.runs import run_tags
from douban_pipeline.tmdb.services import LOCATION, TmdbServices, open_services
from douban_pipeline.tmdb.settings import TmdbSettings

SYSTEM = "tmdb"
"""Value of the tag ``system`` in all runs of this system."""

GRAPH_POOL, API_POOL = "tmdb_graph", "tmdb_api"
POOL_LIMITS = {GRAPH_POOL: 1, API_POOL: 1}
"""Pools of the code location: one for writing to the graph, one for TMDB, whose rate a single run can use up."""

tags_of = partial(run_tags, SYSTEM)
"""Returns the tags of a job by the kind of its runs."""

PERSON_TAGS = person_tags(SYSTEM)


def services_resource(settings: TmdbSettings) -> dg.ConfigurableResource[TmdbServices]:
    """Return the resource ``services``: store, client and graph of one process."""
    return platform_resource(lambda run: open_services(settings, location=location_of(run) or LOCATION))
