"""Jobs that refresh reports and health; schedules launch them. Jobs of a single report are in its own package."""

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.launchpad import asset_job_manual
from douban_pipeline.douban.reports.health.assets import pipeline_health
from douban_pipeline.douban.resources import tags_of
from douban_pipeline.douban.review.assets import MOST_SHOWN, ReviewQueueConfig, review_queue
from douban_pipeline.douban.upkeep.assets import source_gates
from douban_pipeline.douban.upkeep.jobs import HEALTH_TAGS

reports_job = dg.define_asset_job(
    "nightly_reports",
    selection=dg.AssetSelection.groups("reports"),
    owners=owners(),
    tags=tags_of("reports"),
    description=asset_job_manual(
        page_text("Refreshes the review queue, the reports, the precision of automatic links, and the CMS drift."),
        writes=page_text(
            "Files of HOME/reports; brakes of strata that are not precise enough; locked values that the CMS "
            "lost, where `DOUBAN_PIPELINE_RESTORE_LOCKED=true`."
        ),
        when=page_text("By itself every night; by hand when a list should be of now."),
        ops={review_queue.node_def.name: ReviewQueueConfig(most_requests=100, most=MOST_SHOWN)},
    ),
)

health_job = dg.define_asset_job(
    "watch_health",
    selection=dg.AssetSelection.assets(source_gates, pipeline_health),
    owners=owners(),
    tags=HEALTH_TAGS,
    description=asset_job_manual(
        page_text("Measures the pipeline and its sources, runs the checks that warn, and sends waiting alerts."),
        writes=page_text("Rows of `mac_douban_alert`, and messages to the webhook."),
        when=page_text("By itself every five minutes; by hand after something was mended."),
    ),
)

jobs = [reports_job, health_job]
