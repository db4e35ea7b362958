"""Assembles the TMDB system's code location; contains no logic of its own."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from douban_pipeline.dagster_kit.labels import labelled
from douban_pipeline.tmdb.assets import assets
from douban_pipeline.tmdb.checks import checks
from douban_pipeline.tmdb.jobs import jobs
from douban_pipeline.tmdb.resources import services_resource
from douban_pipeline.tmdb.schedules import schedules_for
from douban_pipeline.tmdb.sensors import sensors_for
from douban_pipeline.tmdb.settings import TmdbSettings, load_settings


def build_defs(
    *, settings: TmdbSettings | None = None, resource_overrides: Mapping[str, Any] | None = None
) -> dg.Definitions:
    """Return the code location.

    Raises:
        SettingsError: A setting is wrong; the message names it.
    """
    settings = settings or load_settings()
    return dg.Definitions(
        assets=labelled(assets, owner=settings.owner),
        asset_checks=checks,
        jobs=jobs,
        sensors=sensors_for(settings),
        schedules=schedules_for(settings),
        resources={"services": services_resource(settings), **(resource_overrides or {})},
        executor=dg.in_process_executor,
    )
