"""Whether an installation is fit to work, looked at from outside: one finding a question, each with its remedy."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.clock_skew import SLIGHT_SKEW, clock_skew, skew_text
from douban_pipeline.core.database import DatabaseError, reading
from douban_pipeline.core.errors import SourceError
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.douban.services import Services, open_services
from douban_pipeline.douban.settings import load_settings, variable
from douban_pipeline.douban.store import migrations
from douban_pipeline.ops.console import plain, silence_beta_warnings
from douban_pipeline.ops.grants import missing_grants, missing_table_grants
from douban_pipeline.ops.results import CheckResult, State, print_results
from douban_pipeline.ops.source_checks import asked_results, reached_results
from douban_pipeline.ops.systems import registry
from douban_pipeline.ops.systems.registry import System

LOW_DISK_MB, FULL_DISK_MB = 2_000, 200
"""Free space under which HOME is low, and under which it counts as full; 10⁶ bytes."""
_NAMED = 4
_MEND = "mend the variable, in the environment or in .env"


def check(names: Sequence[str] | None, *, dagster: bool, sources: bool, as_json: bool) -> bool:
    """Check everything the systems need, print it, and return whether nothing failed.

    Nothing is changed, but for what every request leaves behind: a place at the gate, and an archived answer.

    Args:
        names: Systems; those of ``DOUBAN_PIPELINE_SYSTEMS`` by default.
        dagster: Look at Dagster's instance too.
        sources: Ask each source once.
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
    """Return the worst that was found of each system, and of Dagster, by name."""
    states: dict[str, State] = {}
    for system, result in found:
        states[system] = max(states.get(system, "ok"), result.state, key=("ok", "warn", "fail").index)
    return states


def _results(names: Sequence[str] | None, *, dagster: bool, sources: bool) -> Iterator[tuple[str, CheckResult]]:
    """Yield what was found, each with the system that it is of; what is Dagster's is of none."""
    try:
        with_douban, others = registry.chosen(names)
    except SettingsError:  # Douban's, which are explained below
        with_douban, others = True, ()
    if with_douban:
        yield from ((registry.DOUBAN, result) for result in _douban_results(sources=sources))
    for system in others:
        yield from ((system.name, result) for result in system_results(system))
    if dagster:
        # Dagster and our code location take longer to load than everything else: a monitor may do without.
        silence_beta_warnings()
        from douban_pipeline.ops.dagster_checks import dagster_results

        found = dagster_results(SystemClock().now(), with_douban=with_douban, others=others)
        yield from (("dagster", result) for result in found)


def _douban_results(*, sources: bool) -> Iterator[CheckResult]:
    opened = open_checked()
    if isinstance(opened, list):
        yield from opened
        return
    mode = "dry run: nothing is written to the CMS" if opened.settings.dry_run else "live"
    yield CheckResult("settings", "ok", mode)
    results = list(database_results(opened))
    yield from results
    ready = all(result.state != "fail" for result in results if result.name in ("database", "tables"))
    yield from asked_results(opened) if sources and ready else reached_results(opened)
    opened.close()


def system_results(system: System) -> Iterator[CheckResult]:
    """Look at the settings, the database and what else a system beside Douban's needs; its name is before each answer.

    The first failure of the database ends the questions to it.
    """
    for result in _questions(system):
        yield replace(result, name=f"{system.name}.{result.name}")


def _questions(system: System) -> Iterator[CheckResult]:
    option = f" --system {system.name}"
    try:
        with registry.installed(system) as there:
            yield CheckResult("settings", "ok", f"tables in {there.shown_url}")
            engine, tree = there.engine, there.tree
            own = tree.metadata.sorted_tables
            questions: list[tuple[str, Callable[[], CheckResult], str]] = [
                ("tables", lambda: tables_result(engine, tree, option), "check the address and that the server runs"),
                (
                    "grants",
                    lambda: grants_result(engine, lambda: missing_table_grants(engine, own), option),
                    f"run what `douban-pipeline grants{option}` prints, as the database's owner",
                ),
                ("clock", lambda: clock_result(engine, SystemClock()), "keep the clocks of all machines in step"),
            ]
            for name, question, advice in questions:
                result = look(name, question, advice)
                yield result
                if result.state == "fail":
                    return
            yield from system.checks(there.settings, engine)
    except SettingsError as error:
        yield from settings_results(error)
    except DatabaseError as error:
        yield CheckResult("database", "fail", error.problem, error.remedy or _MEND)


def settings_results(error: SettingsError) -> list[CheckResult]:
    """Return what is wrong with settings, a result a mistake."""
    return [CheckResult("settings", "fail", problem, _MEND) for problem in error.problems]


def open_checked() -> Services | list[CheckResult]:
    """Return the services as the settings have them, or what is wrong with the settings, a result each."""
    try:
        return open_services(load_settings())
    except SettingsError as error:
        return settings_results(error)
    except DatabaseError as error:
        return [CheckResult("database", "fail", error.problem, error.remedy or _MEND)]


def look(name: str, question: Callable[[], CheckResult], remedy: str) -> CheckResult:
    """Ask, and make what the question raises a result too, so that the other questions are still asked."""
    try:
        return question()
    except DatabaseError as error:
        return CheckResult(name, "fail", error.problem, error.remedy or remedy)
    except (SQLAlchemyError, SourceError, OSError) as error:
        # SQLAlchemy's own text goes on with the statement and a link.
        return CheckResult(name, "fail", str(getattr(error, "orig", None) or error), remedy)


def database_results(services: Services) -> Iterator[CheckResult]:
    """Look at the CMS's database and at HOME. The first failure of the database ends the questions to it."""
    database = cms_result(services)
    yield database
    questions: list[tuple[str, Callable[[], CheckResult], str]] = [
        ("tables", lambda: _version(services), "run `douban-pipeline upgrade`"),
        ("profile", lambda: profile_result(services), "run `douban-pipeline upgrade`"),
        ("grants", lambda: _grants(services), "run what `douban-pipeline grants` prints, as the database's owner"),
        (
            "clock",
            lambda: clock_result(services.engine, services.clock),
            "keep the clocks of all machines in step, with NTP",
        ),
    ]
    for name, question, remedy in questions if database.state != "fail" else ():
        result = look(name, question, remedy)
        yield result
        if result.state == "fail":
            break
    yield look("home", lambda: _home(services.settings.home), "make DOUBAN_PIPELINE_HOME a folder that can be written")


def cms_result(services: Services) -> CheckResult:
    """Look whether the CMS's database answers and holds the CMS's tables."""
    remedy = "check DOUBAN_PIPELINE_DATABASE_URL and that the server runs"
    return look("database", lambda: _cms(services), remedy)


def _cms(services: Services) -> CheckResult:
    cms = services.cms
    message = f"{services.settings.shown_library_url}: {cms.vod.name} and {cms.type.name}"
    return CheckResult("database", "ok", f"{message}, {len(services.categories)} categories")


def _version(services: Services) -> CheckResult:
    return tables_result(services.engine, migrations.tree_of(services.settings.table_prefix))


def tables_result(engine: Engine, tree: MigrationTree, option: str = "") -> CheckResult:
    """Say whether a system's tables are there and of this release.

    Args:
        engine: Their database.
        tree: Their migrations.
        option: What the commands of the remedies need to serve the system, such as `` --system feeds``.

    Raises:
        DatabaseError: They are a newer release's.
    """
    found = tree.current(engine)
    if found == tree.head:
        return CheckResult("tables", "ok", f"our tables are at version {found}")
    if found is None:
        return CheckResult("tables", "fail", "our tables do not exist", f"run `douban-pipeline setup{option}`")
    tree.known(found)
    message = f"our tables are at version {found}, this release needs {tree.head}"
    return CheckResult("tables", "fail", message, f"stop Dagster and run `douban-pipeline upgrade{option}`")


def profile_result(services: Services) -> CheckResult:
    """Say which profile scores matches, and whether that is another than the one an installation began with unasked."""
    name, own = services.settings.match_profile, variable("match_profile")
    if "match_profile" in services.settings.model_fields_set:
        return CheckResult("profile", "ok", f"matches are scored by the profile {name}, as {own} says")
    message = f"matches are scored by the profile {name}, the default: {own} is not set"
    verdict = services.tables.verdict
    with reading(services.engine) as connection:
        first = connection.execute(select(verdict.c.profile).order_by(verdict.c.verdict_id).limit(1)).scalar()
    if first in (None, name):
        return CheckResult("profile", "ok", message)
    message += f"; this library was judged by {first} before, which was the default then"
    remedy = f"set {own}={first} to go on as before, or {own}={name} to have chosen; rescore_library shows what changes"
    return CheckResult("profile", "warn", message, remedy)


def _grants(services: Services) -> CheckResult:
    return grants_result(
        services.engine, lambda: missing_grants(services.engine, services.settings, services.tables, services.cms)
    )


def grants_result(engine: Engine, missing_rights: Callable[[], list[str]], option: str = "") -> CheckResult:
    """Say what the account lacks; ``option`` as in `tables_result`."""
    if engine.dialect.name == "sqlite":
        return CheckResult("grants", "ok", "SQLite knows no accounts")
    missing = missing_rights()
    if not missing:
        return CheckResult("grants", "ok", "this account may do what it needs")
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    message = f"this account lacks {', '.join(missing[:_NAMED])}{more}"
    remedy = f"run what `douban-pipeline grants{option}` prints, as the database's owner"
    return CheckResult("grants", "fail", message, remedy)


def clock_result(engine: Engine, clock: Clock) -> CheckResult:
    """Hold the database's clock against this machine's."""
    if engine.dialect.name == "sqlite":
        return CheckResult("clock", "ok", "SQLite has no clock of its own")
    skew = clock_skew(engine, clock)
    if abs(skew) >= SLIGHT_SKEW:
        message = f"this machine's clock is {skew_text(skew)}"
        return CheckResult("clock", "warn", message, "keep the clocks of all machines in step, with NTP")
    return CheckResult("clock", "ok", "the database's clock agrees with this machine's")


def _home(home: Path) -> CheckResult:
    folder = home.absolute()
    if not folder.is_dir():
        return CheckResult("home", "fail", f"{folder} is no folder", "make it, or set DOUBAN_PIPELINE_HOME to one")
    if not os.access(folder, os.W_OK | os.X_OK):
        return CheckResult("home", "fail", f"{folder} cannot be written", "give it to the user that runs the pipeline")
    free = shutil.disk_usage(folder).free / 1e6
    state: State = "fail" if free < FULL_DISK_MB else "warn" if free < LOW_DISK_MB else "ok"
    remedy = "" if state == "ok" else "make room: reports, backups and logs are written there"
    return CheckResult("home", state, f"{folder}: {free / 1000:,.1f} GB free", remedy)
