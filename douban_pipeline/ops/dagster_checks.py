"""Checks Dagster's instance: it can be opened, its daemons are alive, its pools have the required limits."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import dagster as dg
import typer
import yaml
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.check_results import CheckResult, print_results, reached
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.system import System
from douban_pipeline.dagster_kit.internals import SqliteRunStorage
from douban_pipeline.ops.workspace import server_results, workspace_results

HEARTBEAT_SECONDS = 120
"""Age from which a heartbeat is stale; a live daemon sends one every 30 s."""
_MOST_SHOWN = 300
_SERVER = ("USERNAME", "HOST", "PORT", "DB")


def dagster_results(now: datetime, systems: Iterable[System]) -> Iterator[CheckResult]:
    """Check the instance in ``DAGSTER_HOME`` and its limits for the systems' pools; nothing is changed."""
    systems = list(systems)
    wanted = {pool: limit for system in systems for pool, limit in system.pool_limits().items()}
    problems = list(home_results(omissible=True))
    yield from problems
    if any(result.state == "fail" for result in problems):
        return
    home = Path(os.environ["DAGSTER_HOME"])
    yield from workspace_results(home, systems, os.environ)
    yield from server_results(home, os.environ)
    try:
        with retries_unlogged(), dg.DagsterInstance.get() as instance:
            results = [_instance(instance), _daemons(instance, now), _pools(instance, wanted)]
    except Exception as error:  # noqa: BLE001 (each of Dagster's storages raises errors of its own)
        yield unopened(error)
        return
    yield from results


@contextmanager
def opened_instance() -> Iterator[dg.DagsterInstance]:
    """Yield the instance in ``DAGSTER_HOME``.

    Raises:
        typer.Exit: It cannot be opened; the reason was printed.
    """
    try:
        with retries_unlogged():
            instance = dg.DagsterInstance.get()
    except Exception as error:
        print_results([unopened(error)])
        raise typer.Exit(2) from error
    with instance:
        yield instance


@contextmanager
def retries_unlogged() -> Iterator[None]:
    """Suppress log messages about retries of a database: the check reports the outcome in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def home_results(*, omissible: bool = False) -> Iterator[CheckResult]:
    """Check ``DAGSTER_HOME``, its dagster.yaml, the variables named there, and the broker of runs, if any.

    Args:
        omissible: Whether the command that asks has an option to leave Dagster out.
    """
    home = os.environ.get("DAGSTER_HOME", "")
    if not home:
        remedy = terminal_text("set it to the folder that holds Dagster's dagster.yaml")
        remedy += terminal_text(", or add --no-dagster") if omissible else ""
        yield CheckResult("instance", "fail", terminal_text("DAGSTER_HOME is not set"), remedy)
        return
    if not Path(home).is_absolute() or not Path(home).is_dir():
        absolute = Path(home).is_absolute()
        problem = terminal_text("is not a folder") if absolute else terminal_text("is not an absolute path")
        remedy = terminal_text("set it to the folder that holds Dagster's dagster.yaml")
        yield CheckResult("instance", "fail", f"DAGSTER_HOME = {home} {problem}", remedy)
        return
    path = Path(home) / "dagster.yaml"
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (yaml.YAMLError, OSError, ValueError) as error:
        problem = " ".join(str(error).split())[:_MOST_SHOWN]
        unreadable = terminal_text("{path} cannot be read ({problem})").format(path=path, problem=problem)
        mend = terminal_text("correct it, or use deploy/dagster.yaml")
        yield CheckResult("instance", "fail", unreadable, mend)
        return
    for name in dict.fromkeys(_variables(config)):
        if name not in os.environ:  # an empty password may be intended
            problem = terminal_text("{name} is not set, but {path} names it").format(name=name, path=path)
            remedy = terminal_text("put {name} into the environment of every Dagster process").format(name=name)
            yield CheckResult("instance", "fail", problem, remedy)
    for name in ("DAGSTER_CELERY_BROKER", "DAGSTER_CELERY_BACKEND"):
        url = os.environ.get(name, "")
        if name in _variables(config) and "://" in url:
            yield reached("broker", name, url)


def unopened(error: Exception) -> CheckResult:
    """Return the result for an instance in ``DAGSTER_HOME`` that cannot be opened."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, SQLAlchemyError):
        cause = cause.__cause__
    if cause is not None:
        server = "{}@{}:{}/{}".format(*(os.environ.get(f"DAGSTER_PG_{name}", "?") for name in _SERVER))
        why = " ".join(str(getattr(cause, "orig", None) or cause).split())[:_MOST_SHOWN]
        return CheckResult(
            "instance",
            "fail",
            terminal_text("Dagster's database does not answer: DAGSTER_PG_… = {server} ({why})").format(
                server=server, why=why
            ),
            terminal_text("check that PostgreSQL runs and the variables DAGSTER_PG_*"),
        )
    why = " ".join(str(error).split())[:_MOST_SHOWN]
    problem = terminal_text("it cannot be opened: {why}").format(why=why)
    remedy = terminal_text("check DAGSTER_HOME and its dagster.yaml")
    return CheckResult("instance", "fail", problem, remedy)


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
    root = instance.root_directory
    message = terminal_text("{root}, {running} runs under way").format(root=root, running=running)
    if isinstance(instance.run_storage, SqliteRunStorage):
        remedy = terminal_text("for permanent use, take deploy/dagster.yaml (PostgreSQL)")
        return CheckResult("instance", "warn", message + terminal_text(", on SQLite"), remedy)
    return CheckResult("instance", "ok", message)


def _daemons(instance: dg.DagsterInstance, now: datetime) -> CheckResult:
    heartbeats = instance.get_daemon_heartbeats()
    ages = {
        name: now.timestamp() - heartbeats[name].timestamp if name in heartbeats else None
        for name in sorted(instance.get_required_daemon_types())
    }
    stale = [
        f"{name} {terminal_text('never') if age is None else terminal_text('{age:.0f} s ago').format(age=age)}"
        for name, age in ages.items()
        if age is None or age > HEARTBEAT_SECONDS
    ]
    if stale:
        message = terminal_text("last heartbeat of {stale}").format(stale=", ".join(stale))
        remedy = terminal_text("start dagster-daemon, or read its log: nothing is launched without it")
        return CheckResult("daemon", "fail", message, remedy)
    ailing = [name for name in ages if heartbeats[name].errors]
    if ailing:
        message = terminal_text("{ailing} reports errors").format(ailing=", ".join(ailing))
        remedy = terminal_text("read the log of dagster-daemon, or *Deployment* → *Daemons* in the UI")
        return CheckResult("daemon", "warn", message, remedy)
    count, seconds = len(ages), HEARTBEAT_SECONDS
    alive = terminal_text("{count} daemons, heartbeats of the last {seconds} s").format(count=count, seconds=seconds)
    return CheckResult("daemon", "ok", alive)


def _pools(instance: dg.DagsterInstance, wanted: Mapping[str, int]) -> CheckResult:
    limits = {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits() if not pool.from_default}
    missing = [pool for pool in wanted if pool not in limits]
    if missing:
        named = ", ".join(missing)
        unset = terminal_text("no limit is set for {named}").format(named=named)
        remedy = terminal_text("run `douban-pipeline setup`")
        return CheckResult("pools", "fail", unset, remedy)
    return CheckResult("pools", "ok", ", ".join(f"{pool} {limits[pool]}" for pool in wanted))
