"""Schedules of the feeds system; polls are launched by the sensor."""

from functools import partial

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.run_retention import pruning
from douban_pipeline.feeds.jobs import prune_feeds, review_job


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
            name="hourly_feeds_review",
            job=review_job,
            cron_schedule="7 * * * *",
            description=page_text("Re-analyses all sources every hour, and rewrites the page."),
        ),
        by_clock(
            name="nightly_feeds_prune",
            job=prune_feeds,
            cron_schedule="20 4 * * *",
            run_config=pruning("prune"),
            description=page_text("Deletes polls, raw answers and runs after their retention period."),
        ),
    ]
