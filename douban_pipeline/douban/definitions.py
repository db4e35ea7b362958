"""Joins the packages of the system into one code location, and decides nothing itself."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from douban_pipeline.dagster_kit.labels import labelled, reading_from
from douban_pipeline.douban.chain.deciding import assets as deciding_assets
from douban_pipeline.douban.chain.due import assets as scheduling_assets
from douban_pipeline.douban.chain.due import jobs as scheduling_jobs
from douban_pipeline.douban.chain.linking import assets as linking_assets
from douban_pipeline.douban.chain.linking import jobs as linking_jobs
from douban_pipeline.douban.chain.syncing import assets as syncing_assets
from douban_pipeline.douban.checks import checks
from douban_pipeline.douban.intros import assets as intros_assets
from douban_pipeline.douban.intros import jobs as intros_jobs
from douban_pipeline.douban.jobs import chain_job, decisions_job, ordered_intros_job
from douban_pipeline.douban.reports import jobs as reports_jobs
from douban_pipeline.douban.reports.health import assets as health_assets
from douban_pipeline.douban.reports.health.sensors import alert_on_run_failure
from douban_pipeline.douban.reports.lists import assets as lists_assets
from douban_pipeline.douban.reports.lists import jobs as lists_jobs
from douban_pipeline.douban.reports.pages import assets as reports_assets
from douban_pipeline.douban.reports.precision import assets as precision_assets
from douban_pipeline.douban.reports.precision import jobs as precision_jobs
from douban_pipeline.douban.reports.rescoring import jobs as rescoring_jobs
from douban_pipeline.douban.resources import services_resource
from douban_pipeline.douban.review import assets as review_assets
from douban_pipeline.douban.review import jobs as review_jobs
from douban_pipeline.douban.review.batch import jobs as batch_jobs
from douban_pipeline.douban.review.imports import jobs as import_jobs
from douban_pipeline.douban.schedules import schedules_for
from douban_pipeline.douban.sensors import sensors
from douban_pipeline.douban.settings import Settings, load_settings
from douban_pipeline.douban.undo import assets as undoing_assets
from douban_pipeline.douban.undo import jobs as undoing_jobs
from douban_pipeline.douban.upkeep import assets as sources_assets
from douban_pipeline.douban.upkeep import jobs as sources_jobs

default_assets = [
    deciding_assets.applied_decisions,
    scheduling_assets.due_videos,
    linking_assets.search_candidates,
    linking_assets.scored_matches,
    linking_assets.due_rechecks,
    syncing_assets.synced_fields,
    *intros_assets.assets,
    *reports_assets.assets,
    *lists_assets.assets,
    *review_assets.assets,
    *precision_assets.assets,
    *sources_assets.assets,
    *undoing_assets.assets,
    *health_assets.assets,
]
default_jobs: list[Any] = [
    chain_job,
    decisions_job,
    ordered_intros_job,
    *reports_jobs.jobs,
    *scheduling_jobs.jobs,
    *linking_jobs.jobs,
    *review_jobs.jobs,
    *batch_jobs.jobs,
    *lists_jobs.jobs,
    *import_jobs.jobs,
    *undoing_jobs.jobs,
    *precision_jobs.jobs,
    *intros_jobs.jobs,
    *sources_jobs.jobs,
]


def read_of_others(settings: Settings) -> dict[str, str | None]:
    """Return which assets read what an asset of another system left, by the settings that say so."""
    newcomers = settings.newcomers and "feeds" in settings.systems
    discussed = settings.priority_from_comments and "comments" in settings.systems
    return {
        "due_videos": "feed_polls" if newcomers else None,
        "review_queue": "hot_scores" if discussed else None,
        "search_candidates": "tmdb_matches" if settings.evidence_from_tmdb else None,
    }


def build_defs(
    *, settings: Settings | None = None, resource_overrides: Mapping[str, Any] | None = None
) -> dg.Definitions:
    """Return the whole code location.

    Args:
        settings: The settings in force; read from the environment by default.
        resource_overrides: Resources to put in place of the real ones, for tests.

    Raises:
        SettingsError: A setting is wrong; the message names it.
    """
    settings = settings or load_settings()
    return dg.Definitions(
        assets=reading_from(
            labelled(default_assets, owner=settings.owner, library_url=settings.database_url.get_secret_value()),
            read_of_others(settings),
        ),
        asset_checks=checks,
        jobs=[*default_jobs, *rescoring_jobs.jobs_for(settings)],
        sensors=[*sensors, alert_on_run_failure],
        schedules=schedules_for(settings.site_timezone, settings.active_hours),
        resources={"services": services_resource(settings), **(resource_overrides or {})},
        # A process a step would cost five times the work; parallel calls are threads inside the assets.
        executor=dg.in_process_executor,
    )
