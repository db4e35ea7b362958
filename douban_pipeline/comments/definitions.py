"""Assembles the comment system's code location; contains no logic of its own."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from douban_pipeline.comments.assets import assets
from douban_pipeline.comments.checks import checks
from douban_pipeline.comments.jobs import jobs
from douban_pipeline.comments.resources import services_resource
from douban_pipeline.comments.schedules import schedules_for
from douban_pipeline.comments.settings import CommentsSettings, load_settings
from douban_pipeline.dagster_kit.labels import labelled


def build_defs(
    *, settings: CommentsSettings | None = None, resource_overrides: Mapping[str, Any] | None = None
) -> dg.Definitions:
    """Return the code location.

    Args:
        settings: The settings; read from the environment by default.

    Raises:
        SettingsError: A setting is invalid; the message names it.
    """
    settings = settings or load_settings()
    return dg.Definitions(
        assets=labelled(assets, owner=settings.owner),
        asset_checks=checks,
        jobs=jobs,
        schedules=schedules_for(settings.site_timezone),
        resources={"services": services_resource(settings), **(resource_overrides or {})},
        executor=dg.in_process_executor,
    )
