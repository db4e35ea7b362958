"""Which runs of a shared instance count as those of a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from douban_pipeline.dagster_kit.runs import JobRuns, code_location_of, partition_range_tags, partitions_of_run
from douban_pipeline_tests.harness.fixtures.locations import add_run, daily_digest, foreign

KEYS = ["00", "01", "02", "03"]


@dg.asset(partitions_def=dg.StaticPartitionsDefinition(KEYS))
def first() -> None:
    """Of our job."""


@dg.asset(partitions_def=dg.StaticPartitionsDefinition(KEYS))
def another() -> None:
    """Of our code location, but of no job."""


ours = dg.Definitions(
    assets=[first, another], jobs=[dg.define_asset_job("our_job", selection=[first])]
).get_repository_def()
STARTED, FAILURE = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE


def our_runs(instance: dg.DagsterInstance, location: str | None = "ours") -> JobRuns:
    return JobRuns(instance, location, "our_job", frozenset({first.key}))


def test_runs_of_the_job_and_ad_hoc_runs_of_its_assets_count_in_its_own_location_alone(
    instance: dg.DagsterInstance,
) -> None:
    job, ad_hoc = ours.get_job("our_job"), ours.get_job("__ASSET_JOB")
    mine, others = frozenset({first.key}), frozenset({another.key})
    counted = {
        add_run(instance, job, location="ours").run_id,
        add_run(instance, ad_hoc, location="ours", assets=mine).run_id,
        instance.create_run_for_job(job, status=STARTED).run_id,  # `dg launch`: through no code location
    }
    elsewhere = {
        add_run(instance, job, location="theirs").run_id,
        add_run(instance, ad_hoc, location="theirs", assets=mine).run_id,
    }
    add_run(instance, ad_hoc, location="ours", assets=others)
    add_run(instance, foreign.get_job("digest_job"), location="theirs")
    add_run(instance, job, location="ours", status=dg.DagsterRunStatus.SUCCESS)
    assert {run.run_id for run in our_runs(instance).under_way()} == counted
    assert {run.run_id for run in our_runs(instance, location=None).under_way()} == counted | elsewhere


def test_failed_runs_are_returned_with_the_time_of_their_end(instance: dg.DagsterInstance) -> None:
    job = ours.get_job("our_job")
    failed = add_run(instance, job, location="ours", status=FAILURE)
    add_run(instance, job, location="theirs", status=FAILURE)
    now = datetime.now(UTC)
    [(run, ended)] = our_runs(instance).failed_since(now - timedelta(minutes=1))
    assert run.run_id == failed.run_id
    assert abs(ended - now) < timedelta(minutes=1)
    assert our_runs(instance).failed_since(now + timedelta(minutes=1)) == []


def test_a_run_names_the_location_it_was_launched_through(instance: dg.DagsterInstance) -> None:
    job = ours.get_job("our_job")
    assert code_location_of(add_run(instance, job, location="ours")) == "ours"
    assert code_location_of(instance.create_run_for_job(job)) is None
    assert code_location_of(dg.DagsterRun("our_job", tags={"dagster/code_location": "ours"})) == "ours"


@pytest.mark.parametrize(
    ("tags", "covered"),
    [
        ({"dagster/partition": "02"}, ["02"]),
        (partition_range_tags("01", "03"), ["01", "02", "03"]),
        (partition_range_tags("03", "03"), ["03"]),
        ({}, []),
        ({"dagster/partition": "2026-01-01"}, []),
        (partition_range_tags("2026-01-01", "2026-01-31"), []),
        (partition_range_tags("2026-01-01", "03"), []),
        ({"dagster/partition": "02|zh"}, []),
        ({"dagster/asset_partition_range_start": "01"}, []),
    ],
)
def test_a_run_covers_the_partitions_that_its_tags_name(tags: dict[str, str], covered: list[str]) -> None:
    assert partitions_of_run(dg.DagsterRun("our_job", tags=tags), KEYS) == covered


def test_partitions_of_another_definition_are_none_of_ours(instance: dg.DagsterInstance) -> None:
    tags = partition_range_tags("2026-01-01", "2026-01-31")
    run = add_run(
        instance, foreign.get_job("__ASSET_JOB"), location="feeds", tags=tags, assets=frozenset({daily_digest.key})
    )
    assert partitions_of_run(run, KEYS) == []
