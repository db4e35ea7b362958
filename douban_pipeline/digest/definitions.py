"""Assembles the digest system's code location; contains no logic of its own."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from douban_pipeline.dagster_kit.labels import labelled, reading_from
from douban_pipeline.digest.assets import ARTICLES, assets_for
from douban_pipeline.digest.checks import checks_for
from douban_pipeline.digest.jobs import jobs
from douban_pipeline.digest.partitions import partitions_for
from douban_pipeline.digest.push.jobs import jobs as push_jobs
from douban_pipeline.digest.resources import services_resource
from douban_pipeline.digest.schedules import schedules_for
from douban_pipeline.digest.sensors import sensors as push_sensors
from douban_pipeline.digest.sensors import sensors_for
from douban_pipeline.digest.settings import DigestSettings, load_settings

FEED_POLLS = "feed_polls"
"""The asset of the feeds system whose entries are digested too."""


def build_defs(
    *, settings: DigestSettings | None = None, resource_overrides: Mapping[str, Any] | None = None
) -> dg.Definitions:
    """Return the code location.

    Args:
        settings: The settings in force; read from the environment by default.
        resource_overrides: Resources that replace the real ones, for tests.

    Raises:
        SettingsError: A setting is wrong; the message names it.
    """
    settings = settings or load_settings()
    assets = assets_for(partitions_for(settings.schedule_slots, settings.site_timezone))
    return dg.Definitions(
        assets=reading_from(
            labelled(assets, owner=settings.owner), {ARTICLES: FEED_POLLS if settings.feed_sources else None}
        ),
        asset_checks=checks_for(assets),
        jobs=[*jobs, *push_jobs],
        sensors=[*sensors_for(settings), *push_sensors],
        schedules=schedules_for(settings),
        resources={"services": services_resource(settings), **(resource_overrides or {})},
        executor=dg.in_process_executor,
    )
