"""Joins the packages of the system into one code location, and decides nothing itself."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from douban_pipeline.dagster_kit.labels import labelled, reading_from
from douban_pipeline.douban.chain import definitions as chain
from douban_pipeline.douban.checks import checks
from douban_pipeline.douban.intros.assets import assets as intros_assets
from douban_pipeline.douban.intros.jobs import jobs as intros_jobs
from douban_pipeline.douban.jobs import jobs
from douban_pipeline.douban.quality.assets import assets as quality_assets
from douban_pipeline.douban.quality.jobs import jobs_for as quality_jobs
from douban_pipeline.douban.reports import definitions as reports
from douban_pipeline.douban.resources import services_resource
from douban_pipeline.douban.review import definitions as review
from douban_pipeline.douban.schedules import schedules_for
from douban_pipeline.douban.sensors import sensors
from douban_pipeline.douban.settings import Settings, load_settings
from douban_pipeline.douban.undo.assets import assets as undo_assets
from douban_pipeline.douban.undo.jobs import jobs as undo_jobs
from douban_pipeline.douban.upkeep.assets import assets as upkeep_assets
from douban_pipeline.douban.upkeep.jobs import jobs as upkeep_jobs

assets = [
    *chain.assets,
    *intros_assets,
    *reports.assets,
    *review.assets,
    *quality_assets,
    *upkeep_assets,
    *undo_assets,
]


def read_of_others(settings: Settings) -> dict[str, str | None]:
    """Return which assets read what an asset of another system left, by the settings that say so."""
    newcomers = "feeds" in settings.systems
    discussed = "comments" in settings.systems
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
            labelled(assets, owner=settings.owner, library_url=settings.database_url.get_secret_value()),
            read_of_others(settings),
        ),
        asset_checks=checks,
        jobs=[
            *jobs,
            *chain.jobs,
            *intros_jobs,
            *review.jobs,
            *reports.jobs,
            *quality_jobs(settings),
            *undo_jobs,
            *upkeep_jobs,
        ],
        sensors=[*sensors, *reports.sensors],
        schedules=schedules_for(settings.site_timezone, settings.active_hours),
        resources={"services": services_resource(settings), **(resource_overrides or {})},
        # A process a step would cost five times the work; parallel calls are threads inside the assets.
        executor=dg.in_process_executor,
    )
