"""What would only fail again is not launched every half minute, and runs of other jobs say nothing of the chain's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from douban_pipeline.dagster_kit.runs import PAUSE, SHORT_PAUSE, failing_guard
from douban_pipeline.douban.checks import CHAIN_GUARDS, checks
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.jobs import CHAIN, chain_runs_under_way, paused_shards, shard_range_tags
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.fixtures.locations import add_run

GUARD = CHAIN_GUARDS[0]


def evaluate(
    instance: dg.DagsterInstance,
    passed: bool,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    key: dg.AssetCheckKey = GUARD,
) -> None:
    """Let a check say what it found, now."""
    instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=key.asset_key, check_name=key.name, passed=passed, severity=severity, metadata={}
        )
    )


def now() -> datetime:
    return datetime.now(UTC)


def test_the_guards_are_those_that_stop_a_run_of_the_chain():
    chain = {"due_videos", "search_candidates", "scored_matches", "synced_fields", "ai_intros"}
    blocking = {
        spec.key
        for check in checks
        for spec in check.check_specs
        if spec.blocking and spec.key.asset_key.to_user_string() in chain
    }
    assert set(CHAIN_GUARDS) == blocking
    assert len(blocking) > 10


def test_a_guard_that_failed_pauses_everything_for_ten_minutes(instance):
    evaluate(instance, passed=False)
    found = failing_guard(instance, CHAIN_GUARDS, now())
    assert found is not None
    key, until = found
    assert key == GUARD
    assert timedelta(0) < until - now() <= PAUSE
    assert failing_guard(instance, CHAIN_GUARDS, until) is None


@pytest.mark.parametrize(
    ("passed", "severity", "key"),
    [
        (True, dg.AssetCheckSeverity.ERROR, GUARD),
        (False, dg.AssetCheckSeverity.WARN, GUARD),
        (False, dg.AssetCheckSeverity.ERROR, dg.AssetCheckKey(dg.AssetKey("review_queue"), "another")),
    ],
)
def test_what_stops_no_run_pauses_nothing(instance, passed, severity, key):
    evaluate(instance, passed, severity, key)
    assert failing_guard(instance, CHAIN_GUARDS, now()) is None


def test_a_guard_that_passes_again_ends_the_pause(instance):
    evaluate(instance, passed=False)
    evaluate(instance, passed=True)
    assert failing_guard(instance, CHAIN_GUARDS, now()) is None


def fail(instance, tags, status=dg.DagsterRunStatus.FAILURE):
    """Let a run of the chain have ended just now."""
    job = build_defs(settings=GivenSettings()).get_repository_def().get_job(CHAIN)
    instance.create_run_for_job(job, tags=tags, status=status)


def test_the_shards_of_a_failed_run_are_paused_for_a_minute_and_no_others(instance):
    statuses = dg.DagsterRunStatus
    fail(instance, {"dagster/partition": "05"})
    fail(instance, shard_range_tags(8, 10))
    fail(instance, {"dagster/partition": "06"}, statuses.SUCCESS)
    fail(instance, {"dagster/partition": "07"}, statuses.CANCELED)
    fail(instance, {})
    assert paused_shards(instance, now()) == {5, 8, 9, 10}
    assert paused_shards(instance, now() + SHORT_PAUSE) == set()


def test_a_shard_that_fails_again_is_paused_longer(instance):
    fail(instance, {"dagster/partition": "05"})
    fail(instance, shard_range_tags(4, 6))
    assert paused_shards(instance, now() + SHORT_PAUSE) == {5}
    assert paused_shards(instance, now() + PAUSE) == set()


def test_the_shards_of_runs_elsewhere_are_not_ours(instance):
    job = build_defs(settings=GivenSettings()).get_repository_def().get_job(CHAIN)
    for status in (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE):
        add_run(instance, job, location="douban_pipeline", tags={"dagster/partition": "05"}, status=status)
        add_run(instance, job, location="another_site", tags={"dagster/partition": "06"}, status=status)
    assert chain_runs_under_way(instance, "douban_pipeline").shards == [[5]]
    assert paused_shards(instance, now(), "douban_pipeline") == {5}
    assert sorted(chain_runs_under_way(instance).shards) == [[5], [6]]
