"""Runs jobs in the process of a command, without a daemon: the instance's history has them like any other run."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

import dagster as dg

from douban_pipeline.dagster_kit.internals import InstanceRef


def silent_instance() -> dg.DagsterInstance:
    """Return the instance in ``DAGSTER_HOME``, which does not capture the output of runs.

    Capturing starts four processes per run; the terminal's Ctrl-C reaches them too, and two of them print a traceback.
    """
    silent = {"module": "dagster.core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
    reference = InstanceRef.from_dir(os.environ["DAGSTER_HOME"], overrides={"compute_logs": silent})
    return dg.DagsterInstance.from_ref(reference)


def run_job(
    repository: dg.RepositoryDefinition,
    instance: dg.DagsterInstance,
    job: str,
    *,
    ops: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
) -> dg.ExecuteInProcessResult:
    """Run a job and return its result, a failed one too.

    The terminal is left to the command's own progress; all events, including failures, are in the instance, for the UI.

    Raises:
        KeyboardInterrupt: Ctrl-C, which Dagster reports like any other failure of a step. A run that had not begun is
            cancelled: sensors would take it for one under way.
    """
    config = {"ops": ops or {}, "loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    run_id = str(uuid.uuid4())
    try:
        result = repository.get_job(job).execute_in_process(
            instance=instance, raise_on_error=False, run_config=config, tags=dict(tags or {}), run_id=run_id
        )
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        run = instance.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            instance.report_run_canceled(run)
        raise KeyboardInterrupt from None
    if any(_interrupted(event) for event in result.all_events):
        raise KeyboardInterrupt
    return result


def _interrupted(event: dg.DagsterEvent) -> bool:
    error = event.step_failure_data.error if event.is_step_failure else None
    return error is not None and error.cls_name == dg.DagsterExecutionInterruptedError.__name__
