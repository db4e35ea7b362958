"""Checks whether an installation can work: one result per check, each with its remedy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from douban_pipeline.core.check_results import CheckResult, State, opening_results, print_results, worst
from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.clock_skew import SLIGHT_SKEW, clock_skew
from douban_pipeline.core.console import plain
from douban_pipeline.core.database import reading
from douban_pipeline.core.database_errors import asked_database, explained
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.environment import ENV_FILE
from douban_pipeline.core.files import open_to_others
from douban_pipeline.core.grants import missing_table_grants
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.platform import Platform
from douban_pipeline.core.server_version import server_name
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.core.system import System, chosen, every_system
from douban_pipeline.ops.installed import library_result

_NAMED = 4


def _look(services: Platform) -> str:
    setting = getattr(services.settings, "database_setting", services.settings.variable("database_url"))
    return terminal_text("check {setting} and that the server runs").format(setting=setting)


def _keep_clocks() -> str:
    return terminal_text("keep the clocks of all machines synchronised with NTP")


def _run_grants(option: str = "") -> str:
    command = f"`douban-pipeline grants{option}`"
    return terminal_text("run what {command} prints, as the database's owner").format(command=command)


def check(names: Sequence[str] | None, *, dagster: bool, sources: bool, as_json: bool) -> bool:
    """Check everything the systems need, print the results, and return whether no check failed.

    Nothing is changed, except what every request leaves: a place at the gate, and an archived answer.

    Args:
        names: Systems; those of ``DOUBAN_PIPELINE_SYSTEMS`` by default.
        dagster: Also check Dagster's instance.
        sources: Send one request to each source.
        as_json: Print JSON.
    """
    found = list(_results(names, dagster=dagster, sources=sources))
    results, by_system = [result for _, result in found], worst_states(found)
    passed = all(result.state != "fail" for result in results)
    if as_json:
        content = {"ok": passed, "systems": by_system, "findings": [result.to_json() for result in results]}
        plain(json.dumps(content, ensure_ascii=False))
    else:
        print_results(results)
        if len(by_system) > 1:
            plain(", ".join(f"{system}: {state}" for system, state in by_system.items()))
    return passed


def worst_states(found: Iterable[tuple[str, CheckResult]]) -> dict[str, State]:
    """Return the worst state of each system, and of Dagster, by name."""
    states: dict[str, State] = {}
    for system, result in found:
        states[system] = worst((states.get(system, "ok"), result.state))
    return states


def _results(names: Sequence[str] | None, *, dagster: bool, sources: bool) -> Iterator[tuple[str, CheckResult]]:
    """Yield each result with the name of its system; those of Dagster belong to no system."""
    try:
        systems = chosen(names)
    except SettingsError as error:
        base = next(system for system in every_system() if system.is_base)
        systems = []
        yield from ((base.name, result) for result in opening_results(error))
    if (mode := open_to_others(Path(ENV_FILE))) and systems:
        file = Path(ENV_FILE).absolute()
        readable = terminal_text("{file} holds secrets and others may read it (mode {mode})").format(
            file=file, mode=mode
        )
        yield systems[0].name, CheckResult("secrets", "warn", readable, f"`chmod 600 {file}`")
    for system in systems:
        yield from ((system.name, result) for result in system_results(system, sources=sources))
    systems = [system for system in systems if system.absent_library is None]
    if dagster:
        # Dagster and our code location take longer to load than everything else, so a monitor may omit them.
        from douban_pipeline.ops.dagster_checks import dagster_results

        yield from (("dagster", result) for result in dagster_results(SystemClock().now(), systems))


def system_results(system: System, *, sources: bool) -> Iterator[CheckResult]:
    """Check the settings, the database and other needs of a system; its name precedes each result but the base's.

    The first failure of the database skips the remaining checks of it.
    """
    for result in _questions(system, sources=sources):
        yield result if system.is_base else replace(result, name=f"{system.name}.{result.name}")


def _questions(system: System, *, sources: bool) -> Iterator[CheckResult]:
    if (absent := library_result(system)) is not None:
        yield absent
        return
    try:
        with system.opened() as services:
            operations = system.operations()
            yield CheckResult("settings", "ok", operations.mode(services))
            found = []
            for result in _database_results(system, services):
                found.append(result)
                yield result
            failed = {result.name for result in found if result.state == "fail"}
            if not failed:
                try:
                    yield from operations.checks(services)
                except SQLAlchemyError as error:
                    yield _refused("database", error, _look(services))
            yield from operations.outside_checks(services, ask=sources, usable=failed <= {"grants"})
    except (SettingsError, DatabaseError) as error:
        yield from opening_results(error)


def _database_results(system: System, services: Platform) -> Iterator[CheckResult]:
    """Check a system's database up to the first failure."""
    place, engine = place_result(system, services), services.engine
    if place is not None:
        yield place
        if place.state == "fail":
            return
    questions: list[tuple[str, Callable[[], CheckResult], str]] = [
        ("tables", lambda: tables_result(engine, services.tree), _look(services)),
        ("grants", lambda: _grants_result(system, services), _run_grants(system.option)),
        ("clock", lambda: clock_result(engine, SystemClock()), _keep_clocks()),
    ]
    if engine.dialect.name != "sqlite":
        questions.insert(0, ("server", lambda: server_result(engine), _look(services)))
    for name, question, advice in questions:
        result = look(name, question, advice)
        yield result
        if result.state == "fail":
            return


def place_result(system: System, services: Platform) -> CheckResult | None:
    """Check that the database is the one that the system works on; None where it works on none but its own tables."""
    try:
        return system.operations().place(services)
    except DatabaseError as error:
        return CheckResult("database", "fail", error.problem, error.remedy or _look(services))
    except (SQLAlchemyError, OSError) as error:
        return _refused("database", error, _look(services))


def look(name: str, question: Callable[[], CheckResult], remedy: str) -> CheckResult:
    """Return the result of a check; an exception becomes a result too, so that the other checks still run."""
    try:
        return question()
    except DatabaseError as error:
        return CheckResult(name, "fail", error.problem, error.remedy or remedy)
    except (SQLAlchemyError, OSError) as error:
        return _refused(name, error, remedy)


def _refused(name: str, error: SQLAlchemyError | OSError, remedy: str) -> CheckResult:
    """Return the result for an error of a database: a sentence about its setting, where that is known."""
    if isinstance(error, DBAPIError) and any(asked_database(error)):
        told = explained(error)
        return CheckResult(name, "fail", told.problem, told.remedy)
    # SQLAlchemy's own text continues with the statement and a link.
    return CheckResult(name, "fail", str(getattr(error, "orig", None) or error), remedy)


def server_result(engine: Engine) -> CheckResult:
    """Name the server and its version.

    Raises:
        DatabaseError: It is too old.
    """
    with reading(engine) as connection:
        return CheckResult("server", "ok", server_name(connection))


def tables_result(engine: Engine, tree: MigrationTree) -> CheckResult:
    """Check that a system's tables exist and are of this release.

    Args:
        engine: Their database.
        tree: Their migrations.

    Raises:
        DatabaseError: They are of a newer release.
    """
    # Connecting would create the file.
    absent = engine.dialect.name == "sqlite" and not Path(engine.url.database or "").is_file()
    found = None if absent else tree.understood(engine)
    if found == tree.head:
        return CheckResult("tables", "ok", terminal_text("our tables are at version {found}").format(found=found))
    if found is None:
        command = f"`douban-pipeline setup{tree.option}`"
        missing = terminal_text("our tables do not exist")
        return CheckResult("tables", "fail", missing, terminal_text("run {command}").format(command=command))
    message = terminal_text("our tables are at version {found}, this release needs {head}").format(
        found=found, head=tree.head
    )
    command = f"`douban-pipeline upgrade{tree.option}`"
    remedy = terminal_text("stop Dagster and run {command}").format(command=command)
    return CheckResult("tables", "fail", message, remedy)


def _grants_result(system: System, services: Platform) -> CheckResult:
    engine = services.engine
    if engine.dialect.name == "sqlite":
        return CheckResult("grants", "ok", terminal_text("SQLite has no accounts"))
    own = missing_table_grants(engine, services.tree.metadata.sorted_tables)
    missing = [*system.operations().missing_rights(services), *own]
    if not missing:
        return CheckResult("grants", "ok", terminal_text("this account has the rights it needs"))
    left = len(missing) - _NAMED
    more = terminal_text(" and {left} more").format(left=left) if left > 0 else ""
    named = f"{', '.join(missing[:_NAMED])}{more}"
    return CheckResult(
        "grants", "fail", terminal_text("this account lacks {named}").format(named=named), _run_grants(system.option)
    )


def missing_rights(system: System) -> list[str]:
    """Return the privileges that a system's account lacks; its tables need not be there yet."""
    with system.opened() as services:
        if services.engine.dialect.name == "sqlite":
            return []
        own = missing_table_grants(services.engine, services.tree.metadata.sorted_tables)
        try:
            return [*system.operations().missing_rights(services), *own]
        except DatabaseError as error:
            return [error.problem, *own]


def clock_result(engine: Engine, clock: Clock) -> CheckResult:
    """Compare the database's clock with this machine's."""
    if engine.dialect.name == "sqlite":
        return CheckResult("clock", "ok", terminal_text("SQLite has no clock of its own"))
    skew = clock_skew(engine, clock)
    if abs(skew) >= SLIGHT_SKEW:
        message = (
            terminal_text("this machine's clock is {total_seconds:.1f} s ahead of the database's").format(
                total_seconds=abs(skew.total_seconds())
            )
            if skew.total_seconds() > 0
            else terminal_text("this machine's clock is {total_seconds:.1f} s behind the database's").format(
                total_seconds=abs(skew.total_seconds())
            )
        )
        return CheckResult("clock", "warn", message, _keep_clocks())
    agrees = terminal_text("the database's clock agrees with this machine's")
    return CheckResult("clock", "ok", agrees)
