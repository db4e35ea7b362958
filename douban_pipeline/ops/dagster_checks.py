"""Whether Dagster's instance is fit to work: it opens, its daemons live, its pools have the limits they need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime

import dagster as dg
from dagster._core.storage.runs import SqliteRunStorage
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.douban.jobs import POOL_LIMITS
from douban_pipeline.ops.checking import CheckResult

HEARTBEAT_SECONDS = 120
"""Age from which a heartbeat is stale; a daemon that lives sends one every 30 s."""
_MOST_SHOWN = 300


def dagster_results(now: datetime) -> Iterator[CheckResult]:
    """Look at the instance in ``DAGSTER_HOME``; nothing of it is changed."""
    if not os.environ.get("DAGSTER_HOME"):
        remedy = "name the folder that holds Dagster's dagster.yaml, or say --no-dagster"
        yield CheckResult("instance", "fail", "DAGSTER_HOME is not set", remedy)
        return
    remedy = "check DAGSTER_HOME, its dagster.yaml, the variables that this names, and that PostgreSQL answers"
    try:
        with dg.DagsterInstance.get() as instance:
            results = [_instance(instance), _daemons(instance, now), _pools(instance)]
    except (dg.DagsterError, SQLAlchemyError, OSError) as error:
        message = " ".join(str(getattr(error, "orig", None) or error).split())[:_MOST_SHOWN]
        yield CheckResult("instance", "fail", f"it cannot be opened: {message}", remedy)
        return
    yield from results


def _instance(instance: dg.DagsterInstance) -> CheckResult:
    running = len(instance.get_run_ids(filters=dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])))
    message = f"{instance.root_directory}, {running} runs under way"
    if isinstance(instance.run_storage, SqliteRunStorage):
        return CheckResult(
            "instance", "warn", f"{message}, on SQLite", "for months of use, take deploy/dagster.yaml (PostgreSQL)"
        )
    return CheckResult("instance", "ok", message)


def _daemons(instance: dg.DagsterInstance, now: datetime) -> CheckResult:
    heartbeats = instance.get_daemon_heartbeats()
    ages = {
        name: now.timestamp() - heartbeats[name].timestamp if name in heartbeats else None
        for name in sorted(instance.get_required_daemon_types())
    }
    stale = [
        f"{name} {'never' if age is None else f'{age:.0f} s ago'}"
        for name, age in ages.items()
        if age is None or age > HEARTBEAT_SECONDS
    ]
    if stale:
        message = f"last heartbeat of {', '.join(stale)}"
        return CheckResult(
            "daemon", "fail", message, "start dagster-daemon, or read its log: nothing is launched without it"
        )
    ailing = [name for name in ages if heartbeats[name].errors]
    if ailing:
        message = f"{', '.join(ailing)} reports errors"
        return CheckResult(
            "daemon", "warn", message, "read the log of dagster-daemon, or *Deployment* → *Daemons* in the UI"
        )
    return CheckResult("daemon", "ok", f"{len(ages)} daemons, heartbeats of the last {HEARTBEAT_SECONDS} s")


def _pools(instance: dg.DagsterInstance) -> CheckResult:
    limits = {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits() if not pool.from_default}
    missing = [pool for pool in POOL_LIMITS if pool not in limits]
    if missing:
        return CheckResult("pools", "fail", f"no limit is set for {', '.join(missing)}", "run `douban-pipeline setup`")
    return CheckResult("pools", "ok", ", ".join(f"{pool} {limits[pool]}" for pool in POOL_LIMITS))
