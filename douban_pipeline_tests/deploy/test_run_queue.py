"""What the run queue of each deployment lets through: no code location can starve another, and no backfill another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon

from douban_pipeline.dagster_kit.runs import code_location_of
from douban_pipeline.douban.jobs import DECISION_TAGS
from douban_pipeline.douban.resources import PERSON_TAGS
from douban_pipeline_tests.deploy.files import PROJECT
from douban_pipeline_tests.harness.fixtures.locations import add_run

OURS, THEIRS = "douban_pipeline", "feeds"
QUEUED = dg.DagsterRunStatus.QUEUED


@dg.job
def work() -> None:
    """Anything."""


FILES = ("dagster.yaml", "deploy/dagster.yaml", "deploy/celery/dagster.yaml")
VALUES = "deploy/kubernetes/values.yaml"


def queue_of(path: str) -> dict[str, Any]:
    written = yaml.safe_load((PROJECT / path).read_text())
    if path == VALUES:
        queue = written["dagsterDaemon"]["runCoordinator"]["config"]["queuedRunCoordinator"]
        limits = {
            "max_concurrent_runs": queue["maxConcurrentRuns"],
            "tag_concurrency_limits": queue["tagConcurrencyLimits"],
        }
        return {"run_coordinator": queue_of(FILES[0])["run_coordinator"], "concurrency": {"runs": limits}}
    return {key: written[key] for key in ("run_coordinator", "concurrency")}


@pytest.fixture
def instance(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[dg.DagsterInstance]:
    """An instance with the run queue of the checkout, or of another file, and nothing else of its configuration."""
    queue = queue_of(getattr(request, "param", FILES[0]))
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump({**queue, "telemetry": {"enabled": False}}))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        yield instance


def let_through(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return the runs that Dagster's daemon would launch now."""
    with QueuedRunCoordinatorDaemon(interval_seconds=1) as daemon:
        return daemon._get_runs_to_dequeue(instance, instance.get_concurrency_config(), fixed_iteration_time=None)


def add_runs(
    instance: dg.DagsterInstance,
    count: int,
    location: str,
    tags: dict[str, str] | None = None,
    status: dg.DagsterRunStatus = QUEUED,
) -> None:
    for _ in range(count):
        add_run(instance, work, location=location, status=status, tags=tags)


def test_every_deployment_has_the_same_queue() -> None:
    assert queue_of(FILES[0]) == queue_of(FILES[1]) == queue_of(FILES[2])


def test_a_location_with_a_long_queue_leaves_room_for_the_others(instance: dg.DagsterInstance) -> None:
    add_runs(instance, 8, OURS, status=dg.DagsterRunStatus.STARTED)
    add_runs(instance, 4, OURS)
    add_runs(instance, 2, THEIRS)
    assert Counter(map(code_location_of, let_through(instance))) == {OURS: 2, THEIRS: 2}


def test_the_places_suffice_for_five_locations() -> None:
    runs = queue_of("dagster.yaml")["concurrency"]["runs"]
    of_a_location = next(item for item in runs["tag_concurrency_limits"] if item["key"] == "dagster/code_location")
    assert runs["max_concurrent_runs"] >= 5 * of_a_location["limit"]


def test_the_limits_of_each_kind_of_run_hold(instance: dg.DagsterInstance) -> None:
    for kind in ("sync", "backfill", "intake", "person"):
        add_runs(instance, 3, OURS, {"pipeline": kind})
    found = Counter(run.tags["pipeline"] for run in let_through(instance))
    assert found == {"sync": 2, "backfill": 1, "intake": 1, "person": 3}


def test_each_backfill_has_two_runs_at_work_and_none_waits_for_another(instance: dg.DagsterInstance) -> None:
    for location, backfill in ((OURS, "aaaaaaaa"), (THEIRS, "bbbbbbbb")):
        add_runs(instance, 3, location, {"dagster/backfill": backfill})
    assert Counter(run.tags["dagster/backfill"] for run in let_through(instance)) == {"aaaaaaaa": 2, "bbbbbbbb": 2}


@pytest.mark.parametrize("instance", [*FILES, VALUES], indirect=True)
def test_whatever_else_runs_there_is_a_place_for_what_people_decided(instance: dg.DagsterInstance) -> None:
    """All that sensors, schedules and backfills launch, and a report or a job by hand beside them."""
    for kind in ("sync", "backfill", "intake"):
        add_runs(instance, 9, OURS, {"pipeline": kind})
    for backfill in ("aaaaaaaa", "bbbbbbbb", "cccccccc"):
        add_runs(instance, 9, OURS, {"dagster/backfill": backfill})
    add_runs(instance, 1, OURS, {"pipeline": "reports"})
    at_work = []
    while runs := let_through(instance):
        for run in runs:
            instance.handle_new_event(
                dg.EventLogEntry(
                    error_info=None,
                    level="info",
                    user_message="",
                    run_id=run.run_id,
                    timestamp=0.0,
                    dagster_event=dg.DagsterEvent("PIPELINE_START", run.job_name),
                )
            )
        at_work += runs
    kinds = Counter(run.tags.get("pipeline", "by hand") for run in at_work)
    assert kinds == {"sync": 2, "backfill": 1, "intake": 1, "by hand": 4, "reports": 1}
    add_runs(instance, 1, OURS, DECISION_TAGS)
    assert [run.tags["pipeline"] for run in let_through(instance)] == ["decisions"]


def test_what_people_decided_goes_before_what_people_launch(instance: dg.DagsterInstance) -> None:
    add_runs(instance, 9, OURS, status=dg.DagsterRunStatus.STARTED)
    add_runs(instance, 3, OURS, PERSON_TAGS)
    add_runs(instance, 1, OURS, DECISION_TAGS)
    assert [run.tags["pipeline"] for run in let_through(instance)] == ["decisions"]
