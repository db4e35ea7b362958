"""What runs by the clock, in the site's time zone. Add schedules here, jobs in the packages they work for."""

from collections.abc import Collection, Iterator
from functools import partial

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.run_retention import pruning
from douban_pipeline.douban.chain.due.jobs import SweepConfig, sweep_library
from douban_pipeline.douban.chain.match.assets import DueRechecksConfig
from douban_pipeline.douban.chain.match.jobs import index_archive, recheck_due_links
from douban_pipeline.douban.jobs import chain_job, shard_range_tags
from douban_pipeline.douban.partitions import SHARDS_PER_RUN
from douban_pipeline.douban.reports.jobs import health_job, reports_job
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.upkeep.jobs import PruneConfig, prune_archive, prune_history

HOURS = 24


BACKFILL_HOUR = 4
"""When the weekly backfill begins, if automation works then."""


def schedules_for(time_zone: str, active_hours: Collection[int] = ()) -> list[dg.ScheduleDefinition]:
    """Return the schedules, on the clock of ``time_zone``.

    Args:
        time_zone: The site's.
        active_hours: Hours in which automation works, none for all: the weekly backfill begins in one of them.
    """
    running = dg.DefaultScheduleStatus.RUNNING
    hour = next((hour for hour in (*range(BACKFILL_HOUR, 24), *range(BACKFILL_HOUR)) if hour in active_hours), None)
    backfill_hour = BACKFILL_HOUR if hour is None else hour

    @dg.schedule(
        job=chain_job,
        cron_schedule=f"0 {backfill_hour} * * 0",
        execution_timezone=time_zone,
        owners=owners(),
        default_status=running,
        description=page_text(
            "Runs all 64 shards on Sunday morning, eight per run, for videos that the sensor did not reach."
        ),
    )
    def weekly_backfill(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        """Runs all 64 shards on Sunday morning, eight per run, for videos that the sensor did not reach."""
        day = f"{context.scheduled_execution_time:%Y-%m-%d}"
        for first in range(0, SHARDS, SHARDS_PER_RUN):
            tags = {"pipeline": "backfill", **shard_range_tags(first, first + SHARDS_PER_RUN - 1)}
            yield dg.RunRequest(run_key=f"{day}:{first:02d}", tags=tags)

    @dg.schedule(
        job=sweep_library,
        cron_schedule="17 * * * *",
        execution_timezone=time_zone,
        owners=owners(),
        default_status=running,
        description=page_text("Sweeps 1/24 of the library per hour, so that every id is checked once a day."),
    )
    def hourly_sweep(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        """Sweeps 1/24 of the library per hour, so that every id is checked once a day."""
        hour = context.scheduled_execution_time.hour
        config = dg.RunConfig(ops={"sweep": SweepConfig(dry_run=False, part=hour, parts=HOURS)})
        return dg.RunRequest(run_config=config)

    @dg.schedule(
        job=recheck_due_links,
        cron_schedule="37 * * * *",
        execution_timezone=time_zone,
        owners=owners(),
        default_status=running,
        description=page_text("Checks 1/24 of the shards per hour for links to be judged again."),
    )
    def hourly_rechecks(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        """Checks 1/24 of the shards per hour for links to be judged again."""
        config = DueRechecksConfig(part=context.scheduled_execution_time.hour, parts=HOURS)
        return dg.RunRequest(run_config=dg.RunConfig(ops={"due_rechecks": config}))

    by_clock = partial(dg.ScheduleDefinition, execution_timezone=time_zone, owners=owners(), default_status=running)
    # Not by automation conditions: every report would have one, and a sensor would ask them, instead of these lines;
    # `on_cron` waits until all 64 shards of what a report reads are new; and its runs belong to no job, so that they
    # lack the tags by which runs are limited, alerted about and deleted.
    nightly_reports = by_clock(
        name="nightly_reports_schedule",
        job=reports_job,
        cron_schedule="30 3 * * *",
        description=page_text("Refreshes the reports before working hours."),
    )
    nightly_prune = by_clock(
        name="nightly_prune",
        job=prune_history,
        cron_schedule="50 4 * * *",
        run_config=pruning("prune"),
        description=page_text("Deletes finished runs and closed tasks after their retention period."),
    )
    frequent_health = by_clock(
        name="frequent_health",
        job=health_job,
        cron_schedule="*/5 * * * *",
        description=page_text("Refreshes the health report every five minutes."),
    )
    weekly_archive = by_clock(
        name="weekly_archive",
        job=prune_archive,
        cron_schedule="30 5 * * 1",
        run_config=dg.RunConfig(ops={"delete_answers": PruneConfig(dry_run=False)}),
        description=page_text("Deletes unreferenced archived answers after their retention period."),
    )
    nightly_index = by_clock(
        name="nightly_index",
        job=index_archive,
        cron_schedule="10 5 * * *",
        description=page_text("Indexes the subjects in archived answers, so that they are found without a request."),
    )
    return [
        weekly_backfill,
        hourly_sweep,
        hourly_rechecks,
        nightly_reports,
        nightly_prune,
        frequent_health,
        weekly_archive,
        nightly_index,
    ]
