"""The sensor that ensures the report when the run of its slot failed."""

import dagster as dg

from douban_pipeline.core.run_failures import likely_reason
from douban_pipeline.core.ui.language import described
from douban_pipeline.dagster_kit.run_failures import why_failed
from douban_pipeline.dagster_kit.runs import PARTITION_NAME_TAG
from douban_pipeline.digest.jobs import slot_job, watch_digest
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
        description=described(
            "出日报的时段运行失败时，启动 watch_digest 补出日报。",
            "Launches watch_digest when the run of the report's slot failed.",
        ),
    )
    def digest_failure_sensor(context: dg.RunFailureSensorContext) -> dg.RunRequest | dg.SkipReason:
        partition = context.dagster_run.tags.get(PARTITION_NAME_TAG, "")
        try:
            key = SlotKey.parse(partition)
        except ValueError:
            return dg.SkipReason(
                described(f"失败的运行没有时段：{partition}", f"the failed run has no slot: {partition}")
            )
        if key.slot != settings.report_slot:
            return dg.SkipReason(
                described(
                    f"{key} 不是出日报的时段，下一时段会接着做",
                    f"{key} is not the report's slot; the next slot continues its work",
                )
            )
        error = why_failed(context.instance, context.dagster_run, context.failure_event)
        reason = f"运行失败：{likely_reason(error).reason}"[:_LONGEST_REASON]
        config = {"ops": {"watch_reports": {"config": {"grace_minutes": 0, "reason": reason}}}}
        return dg.RunRequest(run_key=f"watch:{context.dagster_run.run_id}", run_config=config)

    return [digest_failure_sensor]
