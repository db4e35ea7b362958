"""Runs of one job in a shared instance: those in progress, those that failed, and what follows for the next run.

Several code locations share an instance, each with its own partitions: a date-range backfill of one must not be read
as a run over another's shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

# Tags that Dagster gives a run, as its UI shows them and its documentation names them.
PARTITION_NAME_TAG = "dagster/partition"
ASSET_PARTITION_RANGE_START_TAG = "dagster/asset_partition_range_start"
ASSET_PARTITION_RANGE_END_TAG = "dagster/asset_partition_range_end"
BACKFILL_ID_TAG = "dagster/backfill"
CODE_LOCATION_TAG = "dagster/code_location"
SCHEDULE_NAME_TAG = "dagster/schedule_name"
SENSOR_NAME_TAG = "dagster/sensor_name"

AD_HOC_JOB = "__ASSET_JOB"
"""Dagster's own job, of which runs of chosen assets are runs."""

UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

PAUSE = timedelta(minutes=10)
"""How long after a failure a sensor tries again, equal to a task's first retry delay."""

SHORT_PAUSE = timedelta(minutes=1)
"""How long a partition is paused after a single failed run."""

_MOST_FAILED = 200


@dataclass(frozen=True, slots=True)
class JobRuns:
    """Runs of a job, and ad-hoc runs of its assets (which are runs of Dagster's own job), in one code location.

    Attributes:
        instance: The instance to search.
        location: Name of the code location; None searches all. A run without a location, because it was not launched
            through one, counts as this location's.
        job: Name of the job.
        assets: The job's assets; empty if ad-hoc runs do not count.
    """

    instance: dg.DagsterInstance
    location: str | None
    job: str
    assets: frozenset[dg.AssetKey] = frozenset()

    def under_way(self) -> list[dg.DagsterRun]:
        """Return the runs that are queued or in progress, including those launched by hand."""
        return [record.dagster_run for record in self._records(UNDER_WAY)]

    def failed_since(self, since: datetime) -> list[tuple[dg.DagsterRun, datetime]]:
        """Return the runs that failed after ``since``, each with its end time."""
        records = self._records([dg.DagsterRunStatus.FAILURE], since, _MOST_FAILED)
        return [(record.dagster_run, record.update_timestamp.replace(tzinfo=UTC)) for record in records]

    def _records(
        self, statuses: Sequence[dg.DagsterRunStatus], since: datetime | None = None, limit: int | None = None
    ) -> Iterator[dg.RunRecord]:
        for job in (self.job, AD_HOC_JOB) if self.assets else (self.job,):
            wanted = dg.RunsFilter(job_name=job, statuses=statuses, updated_after=since)
            for record in self.instance.get_run_records(filters=wanted, limit=limit):
                if self._covers(record.dagster_run):
                    yield record

    def _covers(self, run: dg.DagsterRun) -> bool:
        if self.location is not None and code_location_of(run) not in (self.location, None):
            return False
        return run.job_name == self.job or not self.assets.isdisjoint(run.asset_selection or ())


SYSTEM_TAG = "system"
"""Tag of a run whose value is the name of the run's system."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of a run: a code location or, for a run launched without one, the system named by its tag.

    Attributes:
        location: Name of the code location; None for a process that was started without one.
        system: Value of `SYSTEM_TAG` in runs of the system.
    """

    location: str | None
    system: str

    def owns(self, run: dg.DagsterRun) -> bool:
        """Return whether ``run`` belongs to this owner. A run without location and system belongs to every owner."""
        location = code_location_of(run)
        if location is None:
            return run.tags.get(SYSTEM_TAG, self.system) == self.system
        return location == self.location if self.location is not None else run.tags.get(SYSTEM_TAG) == self.system


def code_location_of(run: dg.DagsterRun) -> str | None:
    """Return the name of the code location through which a run was launched; None if it has none."""
    origin = run.remote_job_origin
    return origin.location_name if origin is not None else run.tags.get(CODE_LOCATION_TAG)


def code_location_of_sensor(context: dg.SensorEvaluationContext) -> str | None:
    """Return the name of the code location in which a sensor is evaluated; None in a test."""
    origin = context.code_location_origin
    return origin.location_name if origin is not None else None


def is_automatic(run: dg.DagsterRun) -> bool:
    """Return whether ``run`` was launched by a sensor or a schedule, not by a person."""
    return not run.tags.keys().isdisjoint((SENSOR_NAME_TAG, SCHEDULE_NAME_TAG))


def run_tags(system: str, kind: str) -> dict[str, str]:
    """Return the tags of a job: the system, and the kind of run by which dagster.yaml limits concurrency."""
    return {SYSTEM_TAG: system, "pipeline": kind}


def partition_range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags that make one run cover the partitions ``first`` to ``last``, both included."""
    return {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}


def partitions_of_run(run: dg.DagsterRun, keys: Sequence[str]) -> list[str]:
    """Return which of the partitions ``keys`` a run covers according to its tags; empty if none."""
    single = run.tags.get(PARTITION_NAME_TAG)
    if single is not None:
        return [single] if single in keys else []
    first, last = run.tags.get(ASSET_PARTITION_RANGE_START_TAG), run.tags.get(ASSET_PARTITION_RANGE_END_TAG)
    if first not in keys or last not in keys:
        return []
    return list(keys[keys.index(first) : keys.index(last) + 1])


def paused_partitions(failed: Iterable[tuple[dg.DagsterRun, datetime]], keys: Sequence[str], now: datetime) -> set[str]:
    """Return which of the partitions ``keys`` are paused because of runs that failed within `PAUSE`.

    After one failure, which may be accidental, for `SHORT_PAUSE`; after the second one for `PAUSE`.
    """
    times: dict[str, list[datetime]] = {}
    for run, ended in failed:
        for key in partitions_of_run(run, keys):
            times.setdefault(key, []).append(ended)
    return {key for key, ends in times.items() if len(ends) > 1 or max(ends) > now - SHORT_PAUSE}


def pause_after_failures(ends: Sequence[datetime], now: datetime) -> datetime | None:
    """Return until when a job is paused after failures, None if it is not; ``ends`` are its failures within `PAUSE`.

    After one failure, which may be accidental, for `SHORT_PAUSE`; after the second one for `PAUSE`.
    """
    if not ends:
        return None
    until = max(ends) + (SHORT_PAUSE if len(ends) == 1 else PAUSE)
    return until if until > now else None


def has_recovered(instance: dg.DagsterInstance, job: str, since: datetime) -> bool:
    """Return whether a run of ``job`` succeeded after ``since`` at what the last run that failed before it left undone.

    It must cover the same partitions and at least the same assets: success of another shard does not count.
    """
    before = dg.RunsFilter(job_name=job, statuses=[dg.DagsterRunStatus.FAILURE], updated_before=since)
    after = dg.RunsFilter(job_name=job, statuses=[dg.DagsterRunStatus.SUCCESS], updated_after=since)
    failed = instance.get_runs(before, limit=1)
    return any(not failed or _did_as_much(run, failed[0]) for run in instance.get_runs(after, limit=_MOST_FAILED))


BACKFILL = "backfill-"
"""How the name of a person's launch begins that is a backfill; its id follows. Any other is the id of a run."""


def launch_of(run: dg.DagsterRun) -> str:
    """Return the name of the launch that a run is a part of: of its backfill, or its own id."""
    backfill = run.tags.get(BACKFILL_ID_TAG)
    return f"{BACKFILL}{backfill}" if backfill else run.run_id


def failed_of_backfill(instance: dg.DagsterInstance, launch: str) -> Sequence[dg.RunRecord]:
    """Return the runs of a backfill that failed."""
    tags = {BACKFILL_ID_TAG: launch.removeprefix(BACKFILL)}
    return instance.get_run_records(dg.RunsFilter(tags=tags, statuses=[dg.DagsterRunStatus.FAILURE]))


def was_launched_again(instance: dg.DagsterInstance, launch: str) -> bool:
    """Return whether what a person launched, and what failed, has succeeded since: all of a backfill, or a run.

    A later run of the same job must have had the same config or, in place of a run of a backfill, the same partitions.
    """
    if launch.startswith(BACKFILL):
        return all(_succeeded_since(instance, failed) for failed in failed_of_backfill(instance, launch))
    failed = instance.get_run_record_by_id(launch)
    if failed is None:
        return False
    after = dg.RunsFilter(
        job_name=failed.dagster_run.job_name,
        statuses=[dg.DagsterRunStatus.SUCCESS],
        created_after=failed.create_timestamp,
    )
    wanted = failed.dagster_run.run_config
    return any(run.run_config == wanted for run in instance.get_runs(after, limit=_MOST_FAILED))


def _succeeded_since(instance: dg.DagsterInstance, failed: dg.RunRecord) -> bool:
    job = failed.dagster_run.job_name
    later = dg.RunsFilter(job_name=job, statuses=[dg.DagsterRunStatus.SUCCESS], created_after=failed.create_timestamp)
    return any(_did_as_much(run, failed.dagster_run) for run in instance.get_runs(later, limit=_MOST_FAILED))


def _did_as_much(run: dg.DagsterRun, other: dg.DagsterRun) -> bool:
    tags = (PARTITION_NAME_TAG, ASSET_PARTITION_RANGE_START_TAG, ASSET_PARTITION_RANGE_END_TAG)
    if any(run.tags.get(tag) != other.tags.get(tag) for tag in tags):
        return False
    if run.asset_selection is None or other.asset_selection is None:
        return run.asset_selection is None
    return other.asset_selection <= run.asset_selection


def blocking_checks(
    checks: Iterable[dg.AssetChecksDefinition], assets: Iterable[dg.AssetKey]
) -> list[dg.AssetCheckKey]:
    """Return the blocking ones of ``checks`` on ``assets``, which a run of these must pass."""
    wanted = set(assets)
    return [
        spec.key for check in checks for spec in check.check_specs if spec.blocking and spec.key.asset_key in wanted
    ]


def failing_guard(
    instance: dg.DagsterInstance, guards: Sequence[dg.AssetCheckKey], now: datetime
) -> tuple[dg.AssetCheckKey, datetime] | None:
    """Return one of ``guards`` that failed within `PAUSE`, and when the next run should be tried.

    A guard checks all partitions, so a failed one stops every run.
    """
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(guards)
    failed = [(record.create_timestamp, key) for key, record in found.items() if _stops(record.evaluation)]
    if not failed:
        return None
    at, key = max(failed, key=lambda item: item[0])
    until = datetime.fromtimestamp(at, UTC) + PAUSE
    return (key, until) if until > now else None


def passed(evaluation: object) -> bool:
    """Return whether a check has ended and passed, by the `evaluation` of its record.

    Until it has ended the record holds the plan of an evaluation there, whatever Dagster's annotation says.
    """
    return isinstance(evaluation, dg.AssetCheckEvaluation) and evaluation.passed


def _stops(evaluation: object) -> bool:
    """Return whether a check has ended and failed in a way that stops runs."""
    if not isinstance(evaluation, dg.AssetCheckEvaluation):
        return False
    return not evaluation.passed and evaluation.severity is dg.AssetCheckSeverity.ERROR


def set_pool_limits(instance: dg.DagsterInstance, limits: Mapping[str, int]) -> None:
    """Set the limit of every pool in ``instance``; safe to repeat.

    `pools.default_limit` of dagster.yaml does not apply at a pool's first use, so each limit is set explicitly.
    """
    for pool, limit in limits.items():
        instance.event_log_storage.set_concurrency_slots(pool, limit)
