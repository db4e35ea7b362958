"""The sensor that tells people why a run failed."""

from collections.abc import Callable, Iterable, Sequence

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.language import page_text
from douban_pipeline.core.messages.types import Message
from douban_pipeline.core.run_failures import LaunchedBy
from douban_pipeline.dagster_kit.internals import SerializableErrorInfo
from douban_pipeline.dagster_kit.launchpad import PERSON_TAGS
from douban_pipeline.dagster_kit.run_failures import (
    RunEnd,
    end_of,
    events_of,
    innermost_message,
    is_of_assets,
    launched_by,
    op_configs,
    relaunch_path,
)
from douban_pipeline.dagster_kit.runs import BACKFILL_ID_TAG, failed_of_backfill, launch_of, partitions_of_run
from douban_pipeline.douban.links import run_path
from douban_pipeline.douban.partitions import shards
from douban_pipeline.douban.reports.health.alerts import raise_alert, send, send_waiting, without_secrets
from douban_pipeline.douban.reports.health.assets import end_recovered_runs
from douban_pipeline.douban.reports.health.causes import Cause, FailedRun, guard_cause, recorded_by_run, run_cause
from douban_pipeline.douban.services import Services

_GUARD_ERROR = "DagsterAssetCheckFailedError"
_INTERRUPTED = "DagsterExecutionInterruptedError"
_QUEUE_KINDS = frozenset({"sync", "decisions"})
"""Tags of the jobs whose work waits in our tables: the chain's, and those of what people decided or ordered."""
_MOST_SENT = 1
"""A tick may see five failed runs, and a call takes up to five seconds of the minute a tick has."""
_MOST_CAUSES = 10


@dg.run_failure_sensor(
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=page_text("Alerts people of the causes of failed runs: once per cause, not once per run."),
)
def alert_on_run_failure(context: dg.RunFailureSensorContext, services: dg.ResourceParam[Services]) -> None:
    """Alerts people of the causes of failed runs: once per cause, not once per run.

    A run that a blocking guard stopped is reported as that guard, until it passes again; any other failure as job, step
    and error, in Chinese with what it likely means, until the job has succeeded over the same shards, or until it has
    not come back for 30 hours. A job that refused what a person asked for said so to that person, and nobody else is
    alerted. What cannot be sent now is sent by `pipeline_health`. If our
    database cannot be used the message is posted all the same, and then once a run: nobody remembers.
    """
    ui_url = services.settings.ui_url
    causes = causes_of(
        context.instance,
        context.dagster_run,
        context.failure_event,
        ui_url=ui_url,
        recorded=lambda run: recorded_by_run(services, run.run_id),
    )
    if not causes:
        return
    try:
        services.ready()
        end_recovered_runs(services, context.instance)
        for cause in causes:
            raise_alert(services, cause)
        sent = send_waiting(services, most=_MOST_SENT)
    except (SQLAlchemyError, DatabaseError) as error:
        if not services.settings.alert_webhook_url.get_secret_value():
            raise
        context.log.warning(f"the database cannot be used ({type(error).__name__}): posting without remembering it")
        send(services, _unstored_message(services, causes))
        return
    if sent.failed:
        context.log.warning("an alert could not be sent; pipeline_health tries again")


def causes_of(
    instance: dg.DagsterInstance,
    run: dg.DagsterRun,
    failure: dg.DagsterEvent,
    *,
    ui_url: str = "",
    recorded: Callable[[dg.DagsterRun], str] = lambda _: "",
) -> list[Cause]:
    """Return why a run failed: the blocking guards that did not pass, and the steps that failed by themselves.

    Empty where a person's job refused its config.

    Args:
        instance: Where the run is.
        run: The run.
        failure: Its failure.
        ui_url: Address of Dagster's UI, for links to the run and to its launchpad.
        recorded: Returns what a run that a person launched left behind, as a clause.
    """
    steps_failed = events_of(instance, run, dg.DagsterEventType.STEP_FAILURE)
    if steps_failed and all(_is_refusal(run, event.step_failure_data.error) for event in steps_failed):
        return []
    failed = _failed_run(instance, run, end := end_of(instance, run, failure), ui_url.rstrip("/"), recorded)
    guards = [
        guard_cause(
            found.asset_key.to_user_string(),
            found.check_name,
            found.description or "",
            str(found.metadata["shards"].value) if "shards" in found.metadata else "",
        )
        for found in _failed_guards(instance, run)
    ]
    steps = [
        run_cause(failed, event.step_key or "", innermost_message(event.step_failure_data.error))
        for event in steps_failed
        if not _is_guard(event.step_failure_data.error)
        # Stopped from outside, for which the run's own failure has the reason.
        and not (end.from_outside and _is_interrupted(event.step_failure_data.error))
    ]
    # A run may end without any step: killed, timed out, or never started.
    found = [*guards, *steps] or [run_cause(failed, "", end.message)]
    return list({cause.name: cause for cause in found}.values())[:_MOST_CAUSES]


def _failed_run(
    instance: dg.DagsterInstance, run: dg.DagsterRun, end: RunEnd, ui_url: str, recorded: Callable[[dg.DagsterRun], str]
) -> FailedRun:
    by = launched_by(run, queue_kinds=_QUEUE_KINDS)
    dry_run = next((config["dry_run"] for config in op_configs(run) if "dry_run" in config), None)
    backfill = BACKFILL_ID_TAG in run.tags
    by_hand = by is LaunchedBy.PERSON and not is_of_assets(instance, run)
    relaunch = relaunch_path(run) if by_hand else ""
    return FailedRun(
        run.job_name,
        tuple(sorted(_lost_shards(instance, run))),
        tuple(sorted(key.to_user_string() for key in run.asset_selection or ())),
        link=f"{ui_url}{run_path(run.run_id)}" if ui_url else "",
        launched_by=by,
        begun=end.begun,
        recorded=recorded(run) if by_hand and end.begun and dry_run is not True else "",
        dry_run=dry_run,
        launch=launch_of(run) if by_hand or backfill else "",
        relaunch=f"{ui_url}{relaunch}" if ui_url and relaunch else "",
    )


def _lost_shards(instance: dg.DagsterInstance, run: dg.DagsterRun) -> set[str]:
    """Return the shards of a run that failed and, if it is part of a backfill, of all its runs that failed so far."""
    runs = [run]
    if BACKFILL_ID_TAG in run.tags:
        runs += [record.dagster_run for record in failed_of_backfill(instance, launch_of(run))]
    return {shard for each in runs for shard in partitions_of_run(each, shards.get_partition_keys())}


def _failed_guards(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterable[dg.AssetCheckEvaluation]:
    for event in events_of(instance, run, dg.DagsterEventType.ASSET_CHECK_EVALUATION):
        found = event.asset_check_evaluation_data
        if found.blocking and not found.passed and found.severity is dg.AssetCheckSeverity.ERROR:
            yield found


def _is_refusal(run: dg.DagsterRun, error: SerializableErrorInfo | None) -> bool:
    person = run.tags.get("pipeline") == PERSON_TAGS["pipeline"]
    return person and error is not None and error.cls_name == dg.Failure.__name__


def _is_guard(error: SerializableErrorInfo | None) -> bool:
    return error is not None and error.cls_name == _GUARD_ERROR


def _is_interrupted(error: SerializableErrorInfo | None) -> bool:
    return error is not None and error.cls_name == _INTERRUPTED


def _unstored_message(services: Services, causes: Sequence[Cause]) -> Message:
    text = "\n".join(f"{cause.title}\n{cause.detail}" for cause in causes)
    title, text, name = (without_secrets(services.settings, item) for item in (causes[0].title, text, causes[0].name))
    return Message(f"{title}（数据库不可用，可能重复提醒）", text, causes[0].kind, name, services.clock.now())
