"""When a run would only fail again: what rests after a failure, and until when."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from douban_pipeline.douban.chain.due.checks import checks as scheduling_checks
from douban_pipeline.douban.chain.linking.checks import checks as linking_checks
from douban_pipeline.douban.chain.syncing.checks import checks as syncing_checks
from douban_pipeline.douban.intros.checks import checks as intros_checks
from douban_pipeline.douban.jobs import shards_of_run

PAUSE = timedelta(minutes=10)
"""How long after a failure the sensor tries again, as after a task's first."""

SHORT_PAUSE = timedelta(minutes=1)
"""How long a shard rests after a single failed run."""

_MOST = 200


def _blocking(checks: Iterable[dg.AssetChecksDefinition]) -> list[dg.AssetCheckKey]:
    return [spec.key for check in checks for spec in check.check_specs if spec.blocking]


CHAIN_GUARDS = _blocking([*scheduling_checks, *linking_checks, *syncing_checks, *intros_checks])
"""The guards that stop a run of the chain. Each asks about all shards, so one that fails stops every run."""


def failing_guard(instance: dg.DagsterInstance, now: datetime) -> tuple[dg.AssetCheckKey, datetime] | None:
    """Return a guard of the chain that failed within `PAUSE`, and when the next run is worth a try."""
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(CHAIN_GUARDS)
    failed = [
        (record.create_timestamp, key)
        for key, record in found.items()
        if record.status is AssetCheckExecutionRecordStatus.FAILED and _stops(record.evaluation)
    ]
    if not failed:
        return None
    at, key = max(failed, key=lambda item: item[0])
    until = datetime.fromtimestamp(at, UTC) + PAUSE
    return (key, until) if until > now else None


def _stops(evaluation: dg.AssetCheckEvaluation | None) -> bool:
    return evaluation is not None and evaluation.severity is dg.AssetCheckSeverity.ERROR


def shards_at_rest(instance: dg.DagsterInstance, now: datetime) -> set[int]:
    """Return the shards that rest after failed runs; others go on.

    For `SHORT_PAUSE` after one that may have been killed by chance, for `PAUSE` after the second within `PAUSE`.
    """
    failed = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=now - PAUSE)
    times: dict[int, list[datetime]] = {}
    for record in instance.get_run_records(filters=failed, limit=_MOST):
        for shard in shards_of_run(record.dagster_run):
            times.setdefault(shard, []).append(record.update_timestamp.replace(tzinfo=UTC))
    return {shard for shard, ends in times.items() if len(ends) > 1 or max(ends) > now - SHORT_PAUSE}
