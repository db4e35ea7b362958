"""The first look: a run that fails says why, in the words of what stopped it."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from dagster import DagsterError

from douban_pipeline.core.errors import OperatingError
from douban_pipeline.dagster_kit.internals import SerializableErrorInfo
from douban_pipeline.douban import trial
from douban_pipeline_tests.harness.fixtures.library import Library


def test_a_run_that_fails_says_why(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = SerializableErrorInfo("OSError: No space left on device", [], "OSError")
    wrapper = SerializableErrorInfo("Error occurred while executing op", [], f"Dagster{DagsterError.__name__}", cause)
    failure = SimpleNamespace(is_step_failure=True, step_failure_data=SimpleNamespace(error=wrapper))
    failed = SimpleNamespace(run_id="r", success=False, all_events=[failure])
    monkeypatch.setattr(trial, "silent_instance", nullcontext)
    monkeypatch.setattr(trial, "run_job", lambda *_, **__: failed)
    library = library.renewed(dry_run=True)
    with pytest.raises(OperatingError, match="No space left on device"):
        trial.judge_some(library.services, 5, print)
