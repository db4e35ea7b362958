"""Jobs in the process of a command: what Ctrl-C stops is not taken for a run under way."""

from __future__ import annotations

import os
import signal
from typing import Any

import dagster as dg
import pytest

from douban_pipeline.dagster_kit.in_process import run_job
from douban_pipeline.dagster_kit.runs import JobRuns


@dg.op
def stopped_by_the_terminal() -> None:
    """Get Ctrl-C, as from a terminal."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("when", ["before_it_begins", "in_a_step"])
def test_a_run_that_ctrl_c_stops_is_over(when, dagster_instance, monkeypatch):
    handle = dg.DagsterInstance.handle_new_event
    interruptions = [KeyboardInterrupt] if when == "before_it_begins" else []

    def interrupted_once(*given: Any, **options: Any) -> None:
        if interruptions:
            raise interruptions.pop()
        handle(*given, **options)

    monkeypatch.setattr(dg.DagsterInstance, "handle_new_event", interrupted_once)
    job = dg.GraphDefinition(f"stopped_{when}", node_defs=[stopped_by_the_terminal]).to_job()
    repository = dg.Definitions(jobs=[job]).get_repository_def()
    with pytest.raises(KeyboardInterrupt):
        run_job(repository, dagster_instance, f"stopped_{when}")
    assert JobRuns(dagster_instance, None, f"stopped_{when}", frozenset()).under_way() == []
    assert dagster_instance.get_runs_count(dg.RunsFilter(job_name=f"stopped_{when}")) == 1
