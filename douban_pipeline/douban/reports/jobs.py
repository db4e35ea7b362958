"""Jobs that refresh reports and health; schedules launch them. Jobs of a single report are in its own package."""

import dagster as dg

from douban_pipeline.core.ui.language import described
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
    description=described(
        "更新给人看的报告：审核队列、各报告、自动关联的正确率、CMS 差异。",
        "Refreshes the review queue, the reports, the precision of automatic links, and the CMS drift.",
    ),
)

health_job = dg.define_asset_job(
    "watch_health",
    selection=dg.AssetSelection.assets(source_gates, pipeline_health),
    owners=owners(),
    tags=HEALTH_TAGS,
    description=described(
        "测量流水线和数据源，检查并提醒，发送等待中的告警。",
        "Measures the pipeline and its sources, runs the checks that warn, and sends waiting alerts.",
    ),
)

jobs = [reports_job, health_job]
