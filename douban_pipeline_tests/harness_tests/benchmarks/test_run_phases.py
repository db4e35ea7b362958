"""Where a run's time went is read from its events."""

from __future__ import annotations

import time

import dagster as dg
import pytest

from douban_pipeline_tests.harness.benchmarks.run_phases import phases, phases_of

Kind = dg.DagsterEventType


def test_time_outside_of_steps_is_dagsters() -> None:
    found = phases(
        100.0,
        [
            (109.0, Kind.RUN_SUCCESS, ""),
            (100.2, Kind.RUN_ENQUEUED, ""),
            (101.0, Kind.RUN_STARTING, ""),
            (103.0, Kind.STEP_START, "first"),
            (104.0, Kind.STEP_SUCCESS, "first"),
            (104.5, Kind.STEP_START, "second"),
            (108.5, Kind.STEP_FAILURE, "second"),
        ],
    )
    assert (found.wall, found.queued, found.starting) == pytest.approx((9.0, 1.0, 2.0))
    assert (found.steps, found.between, found.dagster) == pytest.approx((5.0, 1.0, 4.0))
    assert found.longest == (("second", pytest.approx(4.0)), ("first", pytest.approx(1.0)))


@dg.op
def waits() -> None:
    """Takes its time."""


@dg.job
def waiting() -> None:
    """One step."""
    waits()


def test_a_real_runs_events_are_understood() -> None:
    asked_at = time.time()
    with dg.DagsterInstance.ephemeral() as instance:
        run = waiting.execute_in_process(instance=instance)
        # As the daemon does before a process of its own executes the run.
        starting = dg.DagsterEvent(event_type_value=Kind.RUN_STARTING.value, job_name="waiting")
        instance.report_dagster_event(starting, run_id=run.run_id)
        found = phases_of(instance, run.run_id, asked_at)
    assert [name for name, _ in found.longest] == ["waits"]
    assert found.wall >= found.steps > 0
