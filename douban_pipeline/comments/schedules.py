"""Schedules of the comment system: scores, reports and pruning."""

from functools import partial

import dagster as dg

from douban_pipeline.comments.jobs import prune_comments, report_job, sweep_job
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.run_retention import pruning


def schedules_for(time_zone: str) -> list[dg.ScheduleDefinition]:
    """Return the schedules, in ``time_zone``."""
    by_clock = partial(
        dg.ScheduleDefinition,
        execution_timezone=time_zone,
        owners=owners(),
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    return [
        by_clock(
            name="comment_scores",
            job=sweep_job,
            cron_schedule="*/10 * * * *",
            description=page_text("Scores active sections every ten minutes."),
        ),
        by_clock(
            name="hourly_comment_report",
            job=report_job,
            cron_schedule="25 * * * *",
            description=page_text("Aggregates impressions and refreshes the reports every hour."),
        ),
        by_clock(
            name="nightly_comments_prune",
            job=prune_comments,
            cron_schedule="50 4 * * *",
            run_config=pruning("prune_comment_runs"),
            description=page_text("Deletes expired runs and what visitors left every night."),
        ),
    ]
