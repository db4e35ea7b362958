"""How a run failed, as Dagster's event log has it: what was said, whether any step began, who launches it again."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import dagster as dg

from douban_pipeline.core.owner import is_dead
from douban_pipeline.core.run_failures import LaunchedBy
from douban_pipeline.core.ui.launchpad_links import job_path
from douban_pipeline.dagster_kit.internals import SerializableErrorInfo
from douban_pipeline.dagster_kit.launchpad import location_of
from douban_pipeline.dagster_kit.runs import BACKFILL_ID_TAG, code_location_of, is_automatic

_SAYS_NOTHING = "outside the execution context"
"""In a failure that does not say why: the event before, of whoever noticed, does."""
_BY_ITSELF = "Execution of run for"
"""How a failure begins that a run's own process reports."""
_BETWEEN = " · "


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run that failed.

    Attributes:
        message: Why, in Dagster's words.
        begun: Whether one of its steps began; otherwise nothing of its work was done.
        from_outside: Whether somebody else than its process ended it: Dagster's daemon or code server.
    """

    message: str
    begun: bool
    from_outside: bool


def end_of(instance: dg.DagsterInstance, run: dg.DagsterRun, failure: dg.DagsterEvent | None = None) -> RunEnd:
    """Return how a run ended.

    Dagster's failure of a run whose process vanished, or that could not be handed over, says only that it was marked
    as failed. Whoever marked it wrote the reason into the log before.
    """
    message = (failure.message if failure is not None else "") or ""
    if not message or _SAYS_NOTHING in message:
        message = _BETWEEN.join(filter(None, (_noticed(instance, run), message)))
    begun = bool(events_of(instance, run, dg.DagsterEventType.STEP_START))
    return RunEnd(message, begun, from_outside=not message.startswith(_BY_ITSELF))


def why_failed(instance: dg.DagsterInstance, run: dg.DagsterRun, failure: dg.DagsterEvent) -> str:
    """Return why a run failed, in the words of what stopped it: a step's error, or Dagster's own."""
    end = end_of(instance, run, failure)
    steps = events_of(instance, run, dg.DagsterEventType.STEP_FAILURE)
    if end.from_outside or not steps:
        return end.message
    return innermost_message(steps[0].step_failure_data.error) or end.message


def innermost_message(error: SerializableErrorInfo | None) -> str:
    """Return what the error says that stopped a step; Dagster's own around it says only where."""
    while error is not None and error.cause is not None and error.cls_name and error.cls_name.startswith("Dagster"):
        error = error.cause
    return error.message if error is not None else ""


def events_of(instance: dg.DagsterInstance, run: dg.DagsterRun, kind: dg.DagsterEventType) -> Sequence[dg.DagsterEvent]:
    """Return the events of a kind that a run has, in order."""
    records = instance.get_records_for_run(run.run_id, of_type=kind).records
    return [event for record in records if (event := record.event_log_entry.dagster_event) is not None]


def _noticed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Return why the run was marked as failed: the last event of Dagster's that tells; empty if none does."""
    for event in reversed(events_of(instance, run, dg.DagsterEventType.ENGINE_EVENT)):
        message, error = event.message or "", event.engine_event_data.error
        if error is not None:
            return ": ".join(filter(None, (_first_line(message), _first_line(error.message))))
        if "terminated by signal" in message or "unexpectedly exited" in message:
            return message
    return ""


def end_vanished(instance: dg.DagsterInstance, location: str | None) -> list[str]:
    """Mark the runs of a code location as failed whose process is gone from this machine; return their ids.

    Its code server sees that a run's process died, unless it died with it: then Dagster takes the run for a started one
    until it has run longer than it may. Only where the launcher starts processes beside the caller's own.
    """
    if location is None or not isinstance(instance.run_launcher, dg.DefaultRunLauncher):
        return []
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        pids = [
            str(event.engine_event_data.metadata["pid"].value)
            for event in events_of(instance, run, dg.DagsterEventType.ENGINE_EVENT)
            if "pid" in event.engine_event_data.metadata
        ]
        if code_location_of(run) == location and pids and is_dead(f"{run.run_id}@{socket.gethostname()}:{pids[-1]}"):
            instance.report_run_failed(
                run, f"The run's process (pid {pids[-1]}) is gone: process died with its server."
            )
            ended.append(run.run_id)
    return ended


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def launched_by(run: dg.DagsterRun, *, queue_kinds: frozenset[str]) -> LaunchedBy:
    """Return who launches the work of a run again.

    Args:
        run: The run.
        queue_kinds: Values of the tag ``pipeline`` of jobs whose work waits in our tables. A backfill, and a run that a
            person gave a config, may cover what does not wait there.
    """
    if run.tags.get("pipeline") in queue_kinds and BACKFILL_ID_TAG not in run.tags and not run.run_config.get("ops"):
        return LaunchedBy.QUEUE
    return LaunchedBy.TIMER if is_automatic(run) else LaunchedBy.PERSON


def is_of_assets(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Return whether a run materializes assets; otherwise its job is one of ops, with a launchpad."""
    if run.job_name.startswith("__") or run.asset_selection or run.asset_check_selection:
        return True
    return bool(events_of(instance, run, dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED))


def relaunch_path(run: dg.DagsterRun) -> str:
    """Return the path in Dagster's UI of the launchpad of a job of ops with the config of ``run``; empty without a UI.

    Dagster fills it in from the run itself, however long the config is.
    """
    location = location_of(run)
    return f"{job_path(run.job_name, location)}/setup-from-run/{run.run_id}" if location else ""


def op_configs(run: dg.DagsterRun) -> list[Mapping[str, Any]]:
    """Return the config of each op of a run that has one."""
    ops = cast("Mapping[str, Mapping[str, Any]]", run.run_config.get("ops") or {})
    return [each["config"] for each in ops.values() if each.get("config")]
