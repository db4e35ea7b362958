"""How the installed systems beside the core are, for the home page: what their own checks find, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.check_results import CheckResult, State, opening_results, worst
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import read_in
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.core.system import System, system_named

LOOK_SECONDS = 10.0
"""How long the page waits for the checks of all systems together."""

WORDS: dict[State, str] = {"ok": "正常", "warn": "留意", "fail": "故障"}


@dataclass(frozen=True, slots=True)
class SystemState:
    """The state of a system.

    Attributes:
        title: What people call it.
        page: Where they look first: a page of the service, or a path of Dagster's UI.
        state: Its worst result.
        said: What is wrong and what to do, a line each; empty if nothing is.
    """

    title: str
    page: str
    state: State
    said: str


def system_states(names: Sequence[str], *, seconds: float | None = None) -> list[SystemState]:
    """Return the state of each of the named systems but the core's, whose page this is.

    They are looked at side by side; one that does not answer within ``seconds`` (`LOOK_SECONDS`) is said not to.
    """
    seconds = LOOK_SECONDS if seconds is None else seconds
    systems = [system for system in map(system_named, names) if not system.is_base]
    if not systems:
        return []
    threads = ThreadPoolExecutor(len(systems), thread_name_prefix="system-state")
    looks = [threads.submit(_results, system) for system in systems]
    done, _ = wait(looks, timeout=seconds)
    threads.shutdown(wait=False, cancel_futures=True)
    command = "douban-pipeline check --system all"
    late = [CheckResult("checks", "warn", f"检查在 {seconds:g} 秒内没有结束", f"请运行 {command}")]
    return [
        _state(system, look.result() if look in done else late) for system, look in zip(systems, looks, strict=True)
    ]


def _results(system: System) -> list[CheckResult]:
    with read_in("zh"):
        return _looked_at(system)


def _looked_at(system: System) -> list[CheckResult]:
    operations = system.operations()
    try:
        with system.opened() as services:
            if services.tree.current(services.engine) is None:
                remedy = f"第一次运行时建立，或运行 douban-pipeline setup{system.option}"
                return [CheckResult("tables", "warn", "它的表还没有建立", remedy)]
            return list(operations.checks(services.ready()))
    except (SettingsError, DatabaseError) as error:
        return opening_results(error)
    except SQLAlchemyError as error:
        return [CheckResult("database", "fail", str(getattr(error, "orig", None) or error).strip())]
    except ModuleNotFoundError as error:
        return [CheckResult("libraries", "fail", missing_library(error.name, system.name))]


def _state(system: System, results: Sequence[CheckResult]) -> SystemState:
    state = worst(each.state for each in results)
    wrong = sorted((each for each in results if each.state != "ok"), key=lambda each: each.state != state)
    lines = [f"{each.message}{f'：{each.remedy}' if each.remedy else ''}" for each in wrong]
    return SystemState(system.title, system.page, state, "\n".join(lines))
