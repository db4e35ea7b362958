"""The sensor that launches sending. It makes one indexed query; its skip reasons state why nothing runs."""

import dagster as dg

from douban_pipeline.core.database import DatabaseError, reading
from douban_pipeline.core.ui.language import described
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.runs import PAUSE, JobRuns, code_location_of_sensor
from douban_pipeline.digest.push import outbox
from douban_pipeline.digest.push.jobs import PUSH_TAGS, push_notifications
from douban_pipeline.digest.push.rules import PushType, may_go_out
from douban_pipeline.digest.services import DigestServices

INTERVAL_SECONDS = 30
_MOST_FAILED = 5
"""Failed runs within ten minutes after which the sensor pauses: two failures do not delay a report."""


@dg.sensor(
    job=push_notifications,
    minimum_interval_seconds=INTERVAL_SECONDS,
    owners=owners(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=described(
        "有消息到期时启动 push_notifications，同时只有一次运行。",
        "Launches push_notifications when a message is due; one run at a time.",
    ),
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
        following = described(f"；下次重发在 {when}", f"; the next retry is at {when}") if when else ""
        return dg.SkipReason(described("没有要发送的消息", "no message is due") + following)
    runs = JobRuns(context.instance, code_location_of_sensor(context), push_notifications.name)
    if runs.under_way():
        return dg.SkipReason(
            described(
                f"有 {due} 条消息要发送；已有运行在进行，稍后再看",
                f"{due} messages are due; a run is in progress; the next tick checks again",
            )
        )
    if len(runs.failed_since(services.clock.now() - PAUSE)) >= _MOST_FAILED:
        return dg.SkipReason(
            described(
                f"有 {due} 条消息要发送，但最近 {_MOST_FAILED} 次运行失败：暂停十分钟",
                f"{due} messages are due, but the last {_MOST_FAILED} runs failed: paused for ten minutes",
            )
        )
    return dg.RunRequest(tags={**PUSH_TAGS, "digest/due": str(due)})


sensors = [push_sensor]
