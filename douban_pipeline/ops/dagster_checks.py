"""Whether Dagster's instance is fit to work: it opens, its daemons live, its pools have the limits they need."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.storage.runs import SqliteRunStorage
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.douban.jobs import POOL_LIMITS
from douban_pipeline.ops.results import CheckResult
from douban_pipeline.ops.source_checks import reached
from douban_pipeline.ops.systems.registry import System

HEARTBEAT_SECONDS = 120
"""Age from which a heartbeat is stale; a daemon that lives sends one every 30 s."""
_MOST_SHOWN = 300
_SERVER = ("USERNAME", "HOST", "PORT", "DB")


def dagster_results(now: datetime, *, with_douban: bool, others: Iterable[System]) -> Iterator[CheckResult]:
    """Look at the instance in ``DAGSTER_HOME``, and whether it limits the pools of the systems; nothing is changed."""
    wanted = dict(POOL_LIMITS) if with_douban else {}
    for system in others:
        wanted |= system.pool_limits()
    problems = list(home_results())
    yield from problems
    if any(result.state == "fail" for result in problems):
        return
    try:
        with retries_unlogged(), dg.DagsterInstance.get() as instance:
            results = [_instance(instance), _daemons(instance, now), _pools(instance, wanted)]
    except Exception as error:  # noqa: BLE001 (each of Dagster's storages raises errors of its own)
        yield unopened(error)
        return
    yield from results


@contextmanager
def retries_unlogged() -> Iterator[None]:
    """Keep quiet that a database is tried again: what comes of it is said in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def home_results() -> Iterator[CheckResult]:
    """Look at ``DAGSTER_HOME``, its dagster.yaml, the variables that this names, and the broker of runs, if any."""
    home = os.environ.get("DAGSTER_HOME", "")
    if not home:
        remedy = "name the folder that holds Dagster's dagster.yaml, or say --no-dagster"
        yield CheckResult("instance", "fail", "DAGSTER_HOME is not set", remedy)
        return
    if not Path(home).is_absolute() or not Path(home).is_dir():
        problem = "is no folder" if Path(home).is_absolute() else "is no absolute path"
        remedy = "name the folder that holds Dagster's dagster.yaml"
        yield CheckResult("instance", "fail", f"DAGSTER_HOME = {home} {problem}", remedy)
        return
    path = Path(home) / "dagster.yaml"
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (yaml.YAMLError, OSError, ValueError) as error:
        problem = " ".join(str(error).split())[:_MOST_SHOWN]
        yield CheckResult(
            "instance", "fail", f"{path} cannot be read ({problem})", "mend it, or take deploy/dagster.yaml"
        )
        return
    for name in dict.fromkeys(_variables(config)):
        if name not in os.environ:  # an empty password may be meant
            problem = f"{name} is not set, but {path} names it"
            yield CheckResult("instance", "fail", problem, f"put {name} into the environment of every Dagster process")
    for name in ("DAGSTER_CELERY_BROKER", "DAGSTER_CELERY_BACKEND"):
        url = os.environ.get(name, "")
        if name in _variables(config) and "://" in url:
            yield reached("broker", name, url)


def unopened(error: Exception) -> CheckResult:
    """Return what it means that the instance in ``DAGSTER_HOME`` cannot be opened."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, SQLAlchemyError):
        cause = cause.__cause__
    if cause is not None:
        server = "{}@{}:{}/{}".format(*(os.environ.get(f"DAGSTER_PG_{name}", "?") for name in _SERVER))
        why = " ".join(str(getattr(cause, "orig", None) or cause).split())[:_MOST_SHOWN]
        return CheckResult(
            "instance",
            "fail",
            f"Dagster's database does not answer: DAGSTER_PG_… = {server} ({why})",
            "check that PostgreSQL runs and the variables DAGSTER_PG_*",
        )
    why = " ".join(str(error).split())[:_MOST_SHOWN]
    return CheckResult("instance", "fail", f"it cannot be opened: {why}", "check DAGSTER_HOME and its dagster.yaml")


def _variables(config: object) -> Iterator[str]:
    """Yield the environment variables that a value of dagster.yaml names, as ``{env: NAME}``."""
    if isinstance(config, dict):
        if set(config) == {"env"} and isinstance(config["env"], str):
            yield config["env"]
        for value in config.values():
            yield from _variables(value)
    elif isinstance(config, list):
        for value in config:
            yield from _variables(value)


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


def _pools(instance: dg.DagsterInstance, wanted: Mapping[str, int]) -> CheckResult:
    limits = {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits() if not pool.from_default}
    missing = [pool for pool in wanted if pool not in limits]
    if missing:
        return CheckResult("pools", "fail", f"no limit is set for {', '.join(missing)}", "run `douban-pipeline setup`")
    return CheckResult("pools", "ok", ", ".join(f"{pool} {limits[pool]}" for pool in wanted))
