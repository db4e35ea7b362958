"""Shared parts of the comment system's Dagster definitions: run tags, the pool, and the resource ``services``."""

from functools import partial

import dagster as dg

from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.dagster_kit.launchpad import person_tags
from douban_pipeline.dagster_kit.resources import platform_resource
from douban_pipeline.dagster_kit.runs import run_tags

SYSTEM = "comments"
"""Value of the tag ``system`` of all runs of this system."""
LOCATION = "__repository__@comments"
"""Repository and code location, as named in `workspace.yaml`."""

SCORE_POOL = "comments_scores"
POOL_LIMITS = {SCORE_POOL: 1}
"""Limits of the code location's pools: one run at a time scores sections, however many are launched."""

tags_of = partial(run_tags, SYSTEM)
"""Returns the run tags of a job, by kind of run."""

PERSON_TAGS = person_tags(SYSTEM)


def services_resource(settings: CommentsSettings) -> dg.ConfigurableResource[CommentsServices]:
    """Return the resource ``services``: the database, lists and settings of one process."""
    return platform_resource(lambda run: open_services(settings, "dagster"))
