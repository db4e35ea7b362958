"""Schedules of the digest: its slots, the watchdog and the check after them, and pruning."""

from collections.abc import Iterator
from datetime import time
from functools import partial
from typing import Any

import dagster as dg

from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.run_retention import pruning
from douban_pipeline.digest.guards import REPORT_LATE
from douban_pipeline.digest.jobs import SLOT_TAGS, check_job, prune_digest, slot_job, watch_digest
from douban_pipeline.digest.partitions import partition_of
from douban_pipeline.digest.report_watch import GRACE
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.slots import SlotKey


def schedules_for(settings: DigestSettings) -> list[dg.ScheduleDefinition]:
    """Return the schedules, in the site's time zone."""
    by_clock: Any = partial(
        dg.ScheduleDefinition,
        execution_timezone=settings.site_timezone,
        owners=owners(),
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )

    @dg.schedule(
        name="digest_slots",
        job=slot_job,
        cron_schedule=[_cron(slot) for slot in settings.schedule_slots],
        execution_timezone=settings.site_timezone,
        owners=owners(),
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=page_text("Launches each slot at its time."),
    )
    def digest_slots(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        moment = context.scheduled_execution_time.astimezone(settings.zone)
        key = SlotKey(moment.date(), f"{moment:%H:%M}")
        yield dg.RunRequest(run_key=str(key), partition_key=partition_of(key), tags=SLOT_TAGS)

    report = settings.report_slot
    look = _cron(report, int(REPORT_LATE.total_seconds() / 60) + 1)
    return [
        digest_slots,
        by_clock(
            name="digest_watchdog",
            job=watch_digest,
            cron_schedule=[_cron(report, int(GRACE.total_seconds() / 60)), look],
            description=page_text(
                "Makes the day's report and puts it into the outbox, if its slot did not; a quarter "
                "of an hour later, alerts if no channel accepted the report."
            ),
        ),
        by_clock(
            name="digest_look",
            job=check_job,
            cron_schedule=look,
            description=page_text("Checks that the day's slots succeeded and its report was delivered."),
        ),
        by_clock(
            name="nightly_digest_prune",
            job=prune_digest,
            cron_schedule="40 4 * * *",
            run_config=pruning("prune"),
            description=page_text("Deletes raw answers and runs after their retention period."),
        ),
    ]


def _cron(slot: str, later: int = 0) -> str:
    """Return the cron expression for ``later`` minutes after a slot, every day."""
    at = time.fromisoformat(slot)
    minutes = (at.hour * 60 + at.minute + later) % (24 * 60)
    return f"{minutes % 60} {minutes // 60} * * *"
