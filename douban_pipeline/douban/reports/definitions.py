"""What the reports hand over to the code location: assets, checks, jobs, and the sensor that alerts."""

from typing import Any

from douban_pipeline.douban.reports.health.assets import assets as health_assets
from douban_pipeline.douban.reports.health.checks import checks as health_checks
from douban_pipeline.douban.reports.health.sensors import alert_on_run_failure
from douban_pipeline.douban.reports.jobs import jobs as reports_jobs
from douban_pipeline.douban.reports.lists.assets import assets as lists_assets
from douban_pipeline.douban.reports.lists.jobs import jobs as lists_jobs

assets = [*lists_assets, *health_assets]
checks = health_checks
jobs: list[Any] = [*reports_jobs, *lists_jobs]
sensors = [alert_on_run_failure]
