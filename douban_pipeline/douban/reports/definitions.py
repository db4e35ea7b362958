"""What the reports hand over to the code location: assets, checks, jobs, and the sensor that alerts."""

from typing import Any

from douban_pipeline.douban.reports.health.assets import assets as health_assets
from douban_pipeline.douban.reports.health.checks import checks as health_checks
from douban_pipeline.douban.reports.health.sensors import alert_on_run_failure
from douban_pipeline.douban.reports.jobs import jobs as reports_jobs
from douban_pipeline.douban.reports.lists.assets import assets as lists_assets
from douban_pipeline.douban.reports.lists.jobs import jobs as lists_jobs
from douban_pipeline.douban.reports.pages.assets import assets as pages_assets
from douban_pipeline.douban.reports.precision.assets import assets as precision_assets
from douban_pipeline.douban.reports.precision.checks import checks as precision_checks
from douban_pipeline.douban.reports.precision.jobs import jobs as precision_jobs
from douban_pipeline.douban.reports.rescoring.jobs import jobs_for as rescoring_jobs
from douban_pipeline.douban.settings import Settings

assets = [*pages_assets, *lists_assets, *precision_assets, *health_assets]
checks = [*precision_checks, *health_checks]
sensors = [alert_on_run_failure]


def jobs_for(settings: Settings) -> list[Any]:
    """Return the jobs, those with launchpads filled in from the settings among them."""
    return [*reports_jobs, *lists_jobs, *precision_jobs, *rescoring_jobs(settings)]
