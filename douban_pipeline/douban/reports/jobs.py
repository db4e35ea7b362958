"""Jobs that refresh reports and health; schedules launch them. Jobs of a single report are in its own package."""

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.douban.reports.health.assets import pipeline_health
from douban_pipeline.douban.resources import tags_of
from douban_pipeline.douban.upkeep.assets import source_gates
from douban_pipeline.douban.upkeep.jobs import HEALTH_TAGS

reports_job = dg.define_asset_job(
    "nightly_reports",
    selection=dg.AssetSelection.groups("reports"),
    owners=owners(),
    tags=tags_of("reports"),
    description=page_text(
        "Refreshes the review queue, the reports, the precision of automatic links, and the CMS drift."
    ),
)

health_job = dg.define_asset_job(
    "watch_health",
    selection=dg.AssetSelection.assets(source_gates, pipeline_health),
    owners=owners(),
    tags=HEALTH_TAGS,
    description=page_text(
        "Measures the pipeline and its sources, runs the checks that warn, and sends waiting alerts."
    ),
)

jobs = [reports_job, health_job]
