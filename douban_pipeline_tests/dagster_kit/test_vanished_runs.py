"""A run whose process died together with its code server is told from one that is at work."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from douban_pipeline.dagster_kit.run_failures import end_vanished
from douban_pipeline_tests.harness.fixtures.library import DEAD_PID

HERE = {"dagster/code_location": "douban_pipeline"}


@dg.job
def reports() -> None:
    pass


@pytest.mark.parametrize(
    ("pid", "tags", "status", "ended"),
    [
        (DEAD_PID, HERE, dg.DagsterRunStatus.STARTED, True),
        (os.getppid(), HERE, dg.DagsterRunStatus.STARTED, False),
        (None, HERE, dg.DagsterRunStatus.STARTED, False),
        (DEAD_PID, HERE, dg.DagsterRunStatus.SUCCESS, False),
        # What another location, or a terminal, launched may be on another machine.
        (DEAD_PID, {"dagster/code_location": "feeds"}, dg.DagsterRunStatus.STARTED, False),
        (DEAD_PID, {}, dg.DagsterRunStatus.STARTED, False),
    ],
)
def test_only_a_started_run_of_this_location_without_its_process_is_ended(
    tmp_path: Path, pid: int | None, tags: dict[str, str], status: dg.DagsterRunStatus, ended: bool
) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        run = instance.create_run_for_job(reports, tags=tags, status=status)
        if pid is not None:
            metadata = {"pid": dg.MetadataValue.text(str(pid))}
            instance.report_engine_event("Started process for run.", run, EngineEventData(metadata))
        assert end_vanished(instance, "douban_pipeline") == ([run.run_id] if ended else [])
        found = instance.get_run_by_id(run.run_id)
        assert found is not None
        assert (found.status is dg.DagsterRunStatus.FAILURE) is ended
