"""The unpartitioned asset that measures the pipeline itself and sends alerts."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.presentation import local_time, share_text
from douban_pipeline.dagster_kit.metadata import shown_table
from douban_pipeline.dagster_kit.run_failures import end_vanished
from douban_pipeline.dagster_kit.runs import code_location_of, has_recovered, passed, was_launched_again
from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.chain.match.assets import scored_matches
from douban_pipeline.douban.chain.match.revisits import revisit_doubted
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.intros.assets import ai_intros
from douban_pipeline.douban.reports.health import alerts, samples
from douban_pipeline.douban.reports.health.causes import (
    GUARD,
    MEASURED,
    RUN,
    SHARED,
    current_causes,
    guard_of,
    job_of,
    launch_in,
)
from douban_pipeline.douban.reports.health.metrics import Health, duration, measure, total
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.shown_status import ShownStatus
from douban_pipeline.douban.upkeep.gates import gate_row
from douban_pipeline.douban.wording import ALERT_KINDS, TASK_STATUSES, TASK_TYPES, VERDICTS, word_for

MOST_SENT = 5
"""Most alerts sent by one measurement, each a call of at most five seconds; the others wait for the next."""
_RECENT = timedelta(minutes=30)
_SECONDS_PER_HOUR = 3600


@dg.asset(
    # Open tasks, verdicts, outcomes and ids, and the cost of intros.
    deps=[due_videos, scored_matches, synced_fields, ai_intros],
    group_name="health",
    kinds={"mysql", "python"},
)
@page_docstring
def pipeline_health(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Health of the pipeline: queue, failures, durations, sources, verdicts and costs, refreshed every few minutes.

    Cheap: every query uses an index. Each measurement is kept in `mac_douban_health` for 15 days, for the checks, which
    warn before people notice. The asset also maintains the alerts (`mac_douban_alert`): an opened breaker, videos that
    failed five times in a row, a used-up budget, a failed guard and a failed run are each sent once for as long as they
    last, to the webhook `DOUBAN_PIPELINE_ALERT_WEBHOOK_URL` if it is set. A task that was requeued after a failure
    counts as failed; one that waits for a closed source does not.
    """
    for run_id in end_vanished(context.instance, code_location_of(context.run)):
        context.log.warning(f"the process of run {run_id} is gone: it is marked as failed")
    services.ready()
    zone = services.settings.zone
    before = samples.newest_before(services, services.clock.now(), within=_RECENT)
    # While nothing is due, no run of the chain does it.
    revisit_doubted(services)
    health = measure(services)
    samples.keep(services, samples.HealthSample.of(health))
    alerts.settle(services, MEASURED, current_causes(services, health, before))
    alerts.end_quiet_runs(services)
    end_recovered_runs(services, context.instance)
    end_passed_guards(services, context.instance)
    sending = alerts.send_waiting(services, most=MOST_SENT)
    if sending.failed:
        context.log.warning(f"{sending.failed} alerts could not be sent; they are tried again")
    open_alerts = alerts.open_alerts(services)
    return dg.MaterializeResult(
        metadata={
            "alerts": shown_table(_alert_rows(open_alerts, zone)),
            "sources": shown_table([gate_row(gate, health.at, zone) for gate in health.gates]),
            "outcomes": shown_table(_outcome_rows(health)),
            "queue": shown_table(_queue_rows(health, zone)),
            "closed_tasks": shown_table(_closed_rows(health)),
            "verdicts": shown_table(_verdict_rows(health)),
            **_numbers(health),
            "oldest_due": _oldest_due(services.settings, health),
            "open_alerts": len(open_alerts),
            "alerts_sent": sending.sent,
        }
    )


def end_recovered_runs(services: Services, instance: dg.DagsterInstance) -> None:
    """Close the alerts of failed runs whose job has succeeded since, so that its next failure opens a new alert.

    What a person launched is done once it succeeded with the same config: another person's success says nothing of it.
    """
    for alert in alerts.open_alerts(services):
        if alert.kind != RUN or job_of(alert.cause) == SHARED:
            continue
        launched = launch_in(alert.cause)
        done = (
            was_launched_again(instance, launched)
            if launched
            else has_recovered(instance, job_of(alert.cause), alert.last_at)
        )
        if done:
            alerts.end_alert(services, alert.cause)


def end_passed_guards(services: Services, instance: dg.DagsterInstance) -> None:
    """Close the alerts of guards that passed in their latest evaluation."""
    for alert in alerts.open_alerts(services):
        if alert.kind == GUARD:
            asset, check = guard_of(alert.cause)
            key = dg.AssetCheckKey(dg.AssetKey.from_user_string(asset), check)
            newest = instance.get_latest_asset_check_evaluation_record(key)
            if newest is not None and passed(newest.evaluation):
                alerts.end_alert(services, alert.cause)


def _oldest_due(settings: Settings, health: Health) -> str:
    oldest = health.oldest_due
    if oldest is None:
        return "—"
    return f"{oldest.vod_id} {oldest.title} · {local_time(oldest.since, settings.zone)}"


def _numbers(health: Health) -> dict[str, int | float]:
    """Return the numbers that Dagster plots over time; unknown ones are left out."""
    hour, oldest, today = total(health.last_hour), health.oldest_due, health.verdict_days[-1]
    numbers: dict[str, int | float | None] = {
        "due": health.due,
        "oldest_due_hours": round((health.at - oldest.since).total_seconds() / _SECONDS_PER_HOUR, 2) if oldest else 0.0,
        "unchecked": health.statuses[ShownStatus.UNCHECKED],
        "not_found": health.statuses[ShownStatus.NOT_FOUND],
        "in_review": health.in_review,
        "open_tasks": sum(item.count for item in health.open_tasks),
        "succeeded_last_hour": hour.succeeded,
        "failed_last_hour": hour.failed,
        "failure_share_last_hour": hour.failure_share,
        "failure_share_last_day": total(health.last_day).failure_share,
        **{
            f"requests_last_hour_{gate.source}": sum(minute.granted for minute in gate.minutes) for gate in health.gates
        },
        "verdicts_today": sum(today.counts.values()),
        "review_share_today": today.review_share,
        "spent_usd_today": health.spending.usd,
        "budget_usd_per_day": health.spending.budget_usd,
        "intros_written_today": health.spending.written,
        "intros_failed_today": health.spending.failed,
    }
    return {name: round(value, 4) for name, value in numbers.items() if value is not None}


def _queue_rows(health: Health, zone: ZoneInfo) -> list[dict[str, object]]:
    return [
        {
            page_text("task"): word_for(TASK_TYPES, item.task_type),
            page_text("status"): word_for(TASK_STATUSES, item.status),
            page_text("count"): item.count,
            page_text("not yet due"): item.later,
            page_text("earliest start"): local_time(item.oldest, zone),
            page_text("queued first"): local_time(item.created, zone),
        }
        for item in health.open_tasks
    ]


def _closed_rows(health: Health) -> list[dict[str, object]]:
    return [
        {
            page_text("task"): word_for(TASK_TYPES, item.task_type),
            page_text("result"): word_for(TASK_STATUSES, item.status),
            page_text("count"): item.count,
            page_text("mean time"): "" if item.mean_seconds is None else duration(item.mean_seconds),
            page_text("95 % within"): "" if item.p95_seconds is None else duration(item.p95_seconds),
        }
        for item in health.closed_tasks
    ]


def _outcome_rows(health: Health) -> list[dict[str, object]]:
    return [
        {
            page_text("task"): word_for(TASK_TYPES, task_type),
            page_text("period"): period,
            page_text("succeeded"): found.succeeded,
            page_text("failed (with retries)"): found.failed,
            page_text("skipped"): found.skipped,
            page_text("failure rate"): share_text(found.failure_share),
        }
        for period, outcomes in (
            (page_text("last hour"), health.last_hour),
            (page_text("last 24 hours"), health.last_day),
        )
        for task_type, found in outcomes.items()
    ]


def _verdict_rows(health: Health) -> list[dict[str, object]]:
    return [
        {
            page_text("date"): f"{day.day:%Y-%m-%d}",
            **{name: day.counts.get(status, 0) for status, name in VERDICTS.items()},
            page_text("share in review"): share_text(day.review_share),
        }
        for day in reversed(health.verdict_days)
        if day.counts
    ]


def _alert_rows(found: Iterable[alerts.Alert], zone: ZoneInfo) -> list[dict[str, object]]:
    def sending(sent_at: datetime | None, error: str) -> str:
        if sent_at:
            return local_time(sent_at, zone)
        return page_text("not sent: {error}").format(error=error) if error else page_text("not sent")

    return [
        {
            page_text("kind", "column"): word_for(ALERT_KINDS, alert.kind),
            page_text("alert"): alert.title,
            page_text("detail", "column"): alert.detail,
            page_text("times", "column"): alert.times,
            page_text("first", "column"): local_time(alert.first_at, zone),
            page_text("newest"): local_time(alert.last_at, zone),
            page_text("sent", "column"): sending(alert.sent_at, alert.send_error),
        }
        for alert in sorted(found, key=lambda alert: alert.alert_id, reverse=True)
    ]


assets = [pipeline_health]
