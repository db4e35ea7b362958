"""The sensors of the digest: one ensures the report when the run of its slot failed, one launches sending."""

import dagster as dg

from douban_pipeline.core.database import reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.run_failures import likely_reason
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.run_failures import why_failed
from douban_pipeline.dagster_kit.runs import PARTITION_NAME_TAG, PAUSE, JobRuns, code_location_of_sensor
from douban_pipeline.digest.jobs import slot_job, watch_digest
from douban_pipeline.digest.push import outbox
from douban_pipeline.digest.push.jobs import PUSH_TAGS, PushConfig, push_notifications
from douban_pipeline.digest.push.rules import PushType, may_go_out
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.slots import SlotKey

_LONGEST_REASON = 300


def sensors_for(settings: DigestSettings) -> list[dg.SensorDefinition]:
    """Return the sensors."""

    @dg.run_failure_sensor(
        name="digest_failure_sensor",
        monitored_jobs=[slot_job],
        request_job=watch_digest,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=page_text("Launches watch_digest when the run of the report's slot failed."),
    )
    def digest_failure_sensor(context: dg.RunFailureSensorContext) -> dg.RunRequest | dg.SkipReason:
        partition = context.dagster_run.tags.get(PARTITION_NAME_TAG, "")
        try:
            key = SlotKey.parse(partition)
        except ValueError:
            return dg.SkipReason(page_text("the failed run has no slot: {partition}").format(partition=partition))
        if key.slot != settings.report_slot:
            return dg.SkipReason(
                page_text("{key} is not the report's slot; the next slot continues its work").format(key=key)
            )
        error = why_failed(context.instance, context.dagster_run, context.failure_event)
        reason = f"运行失败：{likely_reason(error).reason}"[:_LONGEST_REASON]
        config = {"ops": {"watch_reports": {"config": {"grace_minutes": 0, "reason": reason}}}}
        return dg.RunRequest(run_key=f"watch:{context.dagster_run.run_id}", run_config=config)

    return [digest_failure_sensor]


INTERVAL_SECONDS = 30
_MOST_FAILED = 5
"""Failed runs within ten minutes after which the sensor pauses: two failures do not delay a report."""


@dg.sensor(
    job=push_notifications,
    minimum_interval_seconds=INTERVAL_SECONDS,
    owners=owners(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=page_text("Launches push_notifications when a message is due; one run at a time."),
)
def push_sensor(
    context: dg.SensorEvaluationContext, services: dg.ResourceParam[DigestServices]
) -> dg.RunRequest | dg.SkipReason:
    """Launches `push_notifications` when a message is due, or a sender died; one run at a time."""
    try:
        services.ready()
    except DatabaseError as error:
        return dg.SkipReason(str(error))
    now, settings = services.now(), services.settings
    allowed = [each for each in PushType if may_go_out(each, now, settings.quiet, settings.zone)]
    with reading(services.engine) as connection:
        due, abandoned, later = outbox.waiting(connection, now, allowed)
    if not due and not abandoned:
        when = local_time(later, settings.zone) if later else ""
        following = page_text("; the next retry is at {when}").format(when=when) if when else ""
        return dg.SkipReason(page_text("no message is due") + following)
    runs = JobRuns(context.instance, code_location_of_sensor(context), push_notifications.name)
    if runs.under_way():
        return dg.SkipReason(
            page_text("{due} messages are due; a run is in progress; the next tick checks again").format(due=due)
        )
    if len(runs.failed_since(services.clock.now() - PAUSE)) >= _MOST_FAILED:
        return dg.SkipReason(
            page_text("{due} messages are due, but the last {most_failed} runs failed: paused for ten minutes").format(
                due=due, most_failed=_MOST_FAILED
            )
        )
    sending = dg.RunConfig(ops={"push": PushConfig(dry_run=False)})
    return dg.RunRequest(run_config=sending, tags={**PUSH_TAGS, "digest/due": str(due)})


sensors = [push_sensor]
