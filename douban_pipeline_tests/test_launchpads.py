"""What every launchable job of every location says of itself, and that a launch writes only when it is told to."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest
import yaml

from douban_pipeline_tests.harness.reference import LOCATIONS

pytestmark = pytest.mark.quick

WRITE_AS_THEY_OPEN = {
    # Read only.
    "video_history",
    # `queue_changed` is what writes.
    "rescore_library",
    # It makes up for what is missing, and does nothing where nothing is.
    "watch_digest",
}
"""Jobs with a config that have no dry run, each with its reason."""


def every_job() -> Iterator[tuple[str, dg.JobDefinition]]:
    for module in LOCATIONS.values():
        repository = importlib.import_module(module).defs.get_repository_def()
        yield from ((job.name, job) for job in repository.get_all_jobs() if not job.name.startswith("__"))


JOBS = dict(every_job())
OPENED = {name: job for name, job in JOBS.items() if job.run_config}
"""Jobs whose launchpad opens with a config of their own."""


def shown_configs(job: dg.JobDefinition) -> list[object]:
    """Return the configs to copy in a job's description."""
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", job.description or "", re.DOTALL)]


def takes_config(job: dg.JobDefinition) -> bool:
    schemas = [node.definition.config_schema for node in job.nodes if isinstance(node.definition, dg.OpDefinition)]
    return any(getattr(schema.config_type, "fields", None) for schema in schemas if schema)


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if takes_config(job)])
def test_the_description_holds_a_config_to_copy_that_is_valid(name: str) -> None:
    found = shown_configs(JOBS[name])
    assert found
    for config in found:
        assert dg.validate_run_config(JOBS[name], config)


@pytest.mark.parametrize("name", OPENED)
def test_the_description_says_what_is_written_and_when_to_launch(name: str) -> None:
    assert "**会写什么** " in (JOBS[name].description or "")
    assert "**何时启动** " in (JOBS[name].description or "")


@pytest.mark.parametrize("name", OPENED)
def test_a_launch_writes_nothing_unless_it_is_told_to(name: str) -> None:
    [(_, opened)] = OPENED[name].run_config["ops"].items()
    assert (opened["config"].get("dry_run") is True) is (name not in WRITE_AS_THEY_OPEN)


def test_what_is_launched_by_itself_is_told_to_write() -> None:
    real, tick = [], datetime(2026, 11, 23, 5, tzinfo=UTC)
    for module in LOCATIONS.values():
        repository = importlib.import_module(module).defs.get_repository_def()
        for schedule in repository.schedule_defs:
            if schedule.job_name in OPENED and schedule.job_name not in WRITE_AS_THEY_OPEN:
                with dg.build_schedule_context(scheduled_execution_time=tick) as context:
                    [request] = schedule.evaluate_tick(context).run_requests
                [(_, given)] = request.run_config["ops"].items()
                assert given["config"]["dry_run"] is False, schedule.name
                real.append(schedule.job_name)
    assert {*real} >= {"sweep_library", "prune_history", "prune_archive", "prune_feeds", "prune_digest"}
    assert {*real} >= {"tmdb_retention", "prune_comments"}
