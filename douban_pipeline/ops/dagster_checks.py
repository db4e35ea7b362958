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

from douban_pipeline.core.address_checks import reached
from douban_pipeline.core.check_results import CheckResult, print_results
from douban_pipeline.core.system import System
from douban_pipeline.core.ui.language import said
from douban_pipeline.dagster_kit.internals import SqliteRunStorage

HEARTBEAT_SECONDS = 120
"""Age from which a heartbeat is stale; a live daemon sends one every 30 s."""
_MOST_SHOWN = 300
_SERVER = ("USERNAME", "HOST", "PORT", "DB")


def dagster_results(now: datetime, systems: Iterable[System]) -> Iterator[CheckResult]:
    """Check the instance in ``DAGSTER_HOME`` and its limits for the systems' pools; nothing is changed."""
    wanted = {pool: limit for system in systems for pool, limit in system.pool_limits().items()}
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


def home_results() -> Iterator[CheckResult]:
    """Check ``DAGSTER_HOME``, its dagster.yaml, the variables named there, and the broker of runs, if any."""
    home = os.environ.get("DAGSTER_HOME", "")
    if not home:
        remedy = said(
            "设为 Dagster 的 dagster.yaml 所在的文件夹，或加 --no-dagster",
            "set it to the folder that holds Dagster's dagster.yaml, or add --no-dagster",
        )
        yield CheckResult("instance", "fail", said("没有设置 DAGSTER_HOME", "DAGSTER_HOME is not set"), remedy)
        return
    if not Path(home).is_absolute() or not Path(home).is_dir():
        absolute = Path(home).is_absolute()
        problem = said("不是文件夹", "is not a folder") if absolute else said("不是绝对路径", "is not an absolute path")
        remedy = said(
            "设为 Dagster 的 dagster.yaml 所在的文件夹", "set it to the folder that holds Dagster's dagster.yaml"
        )
        yield CheckResult("instance", "fail", f"DAGSTER_HOME = {home} {problem}", remedy)
        return
    path = Path(home) / "dagster.yaml"
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (yaml.YAMLError, OSError, ValueError) as error:
        problem = " ".join(str(error).split())[:_MOST_SHOWN]
        unreadable = said(f"{path} 无法读取（{problem}）", f"{path} cannot be read ({problem})")
        mend = said("改正它，或使用 deploy/dagster.yaml", "correct it, or use deploy/dagster.yaml")
        yield CheckResult("instance", "fail", unreadable, mend)
        return
    for name in dict.fromkeys(_variables(config)):
        if name not in os.environ:  # an empty password may be intended
            problem = said(f"没有设置 {name}，而 {path} 用到它", f"{name} is not set, but {path} names it")
            remedy = said(
                f"把 {name} 放进每个 Dagster 进程的环境变量",
                f"put {name} into the environment of every Dagster process",
            )
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
            said(
                f"Dagster 的数据库没有应答：DAGSTER_PG_… = {server}（{why}）",
                f"Dagster's database does not answer: DAGSTER_PG_… = {server} ({why})",
            ),
            said(
                "检查 PostgreSQL 是否在运行，以及变量 DAGSTER_PG_*",
                "check that PostgreSQL runs and the variables DAGSTER_PG_*",
            ),
        )
    why = " ".join(str(error).split())[:_MOST_SHOWN]
    problem = said(f"无法打开：{why}", f"it cannot be opened: {why}")
    remedy = said("检查 DAGSTER_HOME 及其 dagster.yaml", "check DAGSTER_HOME and its dagster.yaml")
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
    message = said(f"{root}，{running} 个运行进行中", f"{root}, {running} runs under way")
    if isinstance(instance.run_storage, SqliteRunStorage):
        remedy = said(
            "长期使用请改用 deploy/dagster.yaml（PostgreSQL）",
            "for permanent use, take deploy/dagster.yaml (PostgreSQL)",
        )
        return CheckResult("instance", "warn", message + said("，使用 SQLite", ", on SQLite"), remedy)
    return CheckResult("instance", "ok", message)


def _daemons(instance: dg.DagsterInstance, now: datetime) -> CheckResult:
    heartbeats = instance.get_daemon_heartbeats()
    ages = {
        name: now.timestamp() - heartbeats[name].timestamp if name in heartbeats else None
        for name in sorted(instance.get_required_daemon_types())
    }
    stale = [
        f"{name} {said('从未', 'never') if age is None else said(f'{age:.0f} 秒前', f'{age:.0f} s ago')}"
        for name, age in ages.items()
        if age is None or age > HEARTBEAT_SECONDS
    ]
    if stale:
        message = said(f"最近的心跳：{', '.join(stale)}", f"last heartbeat of {', '.join(stale)}")
        remedy = said(
            "启动 dagster-daemon，或查看其日志：没有它什么也不会启动",
            "start dagster-daemon, or read its log: nothing is launched without it",
        )
        return CheckResult("daemon", "fail", message, remedy)
    ailing = [name for name in ages if heartbeats[name].errors]
    if ailing:
        message = said(f"{', '.join(ailing)} 报告了错误", f"{', '.join(ailing)} reports errors")
        remedy = said(
            "查看 dagster-daemon 的日志，或界面中的 *Deployment* → *Daemons*",
            "read the log of dagster-daemon, or *Deployment* → *Daemons* in the UI",
        )
        return CheckResult("daemon", "warn", message, remedy)
    count, seconds = len(ages), HEARTBEAT_SECONDS
    alive = said(f"{count} 个守护进程，{seconds} 秒内有心跳", f"{count} daemons, heartbeats of the last {seconds} s")
    return CheckResult("daemon", "ok", alive)


def _pools(instance: dg.DagsterInstance, wanted: Mapping[str, int]) -> CheckResult:
    limits = {pool.name: pool.limit for pool in instance.event_log_storage.get_pool_limits() if not pool.from_default}
    missing = [pool for pool in wanted if pool not in limits]
    if missing:
        named = ", ".join(missing)
        unset = said(f"没有设置上限：{named}", f"no limit is set for {named}")
        remedy = said("运行 `douban-pipeline setup`", "run `douban-pipeline setup`")
        return CheckResult("pools", "fail", unset, remedy)
    return CheckResult("pools", "ok", ", ".join(f"{pool} {limits[pool]}" for pool in wanted))
