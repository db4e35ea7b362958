"""What an upgrade to this release will do to an installation, and what its owner does: nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline import __version__
from douban_pipeline.core.check_results import CheckResult, opening_results, print_results
from douban_pipeline.core.console import console, plain
from douban_pipeline.core.database import reading
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.environment import BASE_PREFIX, SYSTEMS, environment
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.migrations import MigrationPlan
from douban_pipeline.core.settings_base import SettingsError, SystemSettings
from douban_pipeline.core.system import ALL, System, every_system, system_named
from douban_pipeline.ops.installed import library_result
from douban_pipeline.ops.release_history import JobChange, Release, changed_jobs, release_before, this_release
from douban_pipeline.ops.shipped_files import file_results, services_of
from douban_pipeline.serve.settings import ServeSettings

_SHOWN = 100
"""Length at which a statement is cut: `upgrade --dry-run` prints it whole."""


_RESTART = "sudo systemctl restart douban-pipeline.target"


@dataclass(slots=True)
class UpgradePlan:
    """What an upgrade will do.

    Attributes:
        before: The release that is installed; None before any.
        settings: What becomes of variables that are set, and defaults and limits that changed for this site.
        tables: Each system's tables: their versions, or why they cannot be upgraded.
        statements: The statements that change a system's tables, each in a line; not those that make its first.
        jobs: Jobs whose configs changed.
        pools: Limits of Dagster's pools that changed.
        files: Files of `deploy` to copy again.
        services: What to restart.
    """

    before: Release | None = None
    settings: list[CheckResult] = field(default_factory=list)
    tables: list[CheckResult] = field(default_factory=list)
    statements: dict[str, list[str]] = field(default_factory=dict)
    jobs: list[JobChange] = field(default_factory=list)
    pools: list[str] = field(default_factory=list)
    files: list[CheckResult] = field(default_factory=list)
    services: list[str] = field(default_factory=list)

    @property
    def possible(self) -> bool:
        """Whether nothing stands in the way."""
        return not any(result.state == "fail" for result in (*self.settings, *self.tables, *self.files))


def show_plan(names: Sequence[str] | None) -> bool:
    """Print what an upgrade to this release will do; return whether nothing stands in its way."""
    plan = make_plan(names)
    before = plan.before.name if plan.before is not None else terminal_text("none")
    plain(terminal_text("release {before} → {after}").format(before=before, after=__version__))
    _print_section(terminal_text("Variables"), plan.settings)
    _print_section(terminal_text("Tables"), plan.tables)
    for system, statements in plan.statements.items():
        command = f"`douban-pipeline upgrade --dry-run{system_named(system).option}`"
        plain(terminal_text("  SQL of {system}; {command} prints it whole:").format(system=system, command=command))
        for statement in statements:
            plain(f"    {statement}")
    if plan.jobs or plan.pools:
        _print_heading(terminal_text("Jobs and pools"))
        for line in (*map(_job_line, plan.jobs), *plan.pools):
            plain(f"  {line}")
    _print_section(terminal_text("Files"), plan.files)
    if plan.services:
        _print_heading(terminal_text("Restart"))
        plain(f"  {_RESTART}  # {', '.join(plan.services)}")
        plain(terminal_text("  (containers: docker compose up -d; other hosts: the same release on each)"))
    plain("")
    if plan.possible:
        plain(terminal_text("Nothing was changed. In this order: backup, upgrade, setup, restart: docs/upgrade.md"))
    else:
        plain(terminal_text("Nothing was changed. First do what the lines with fail say."))
    return plan.possible


def _print_heading(text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]", highlight=False)


def _print_section(title: str, results: Sequence[CheckResult]) -> None:
    if results:
        _print_heading(title)
        print_results(results)


def make_plan(names: Sequence[str] | None) -> UpgradePlan:
    """Return what an upgrade will do; settings that this release does not know keep no part of it from being read.

    Args:
        names: Systems; those of ``DOUBAN_PIPELINE_SYSTEMS`` by default.
    """
    plan, releases, systems = UpgradePlan(), dict[str, str](), list(_systems(names))
    for system in systems:
        if (absent := library_result(system)) is not None:
            plan.settings.append(absent)
            continue
        settings, problems = system.settings().read()
        plan.settings += opening_results(SettingsError(problems))
        if settings is not None:
            _read_tables(plan, system, settings, releases)
    _, problems = ServeSettings.read()
    plan.settings += opening_results(SettingsError(problems))
    if releases:
        plan.before = release_before(max(releases.values(), key=Version))
        old, new = plan.before, this_release()
        others = [each.name for each in every_system() if each not in systems and not each.is_base]
        prefixes = tuple(f"{BASE_PREFIX}{name.upper()}_" for name in others)
        found = {name: value for name, value in new.settings.items() if not name.startswith(prefixes)}
        plan.settings += _setting_results(old, found, environment())
        plan.jobs = list(changed_jobs(old, new, list(releases)))
        plan.pools = list(_pool_lines(old, new))
    plan.settings = list(dict.fromkeys(plan.settings))  # what several systems read is told once
    plan.files = list(file_results(plan.before, this_release(), systems, os.environ))
    plan.services = services_of(systems)
    return plan


def _systems(names: Sequence[str] | None) -> Iterator[System]:
    if names and ALL in names:
        yield from every_system()
        return
    if not names:
        settings, _ = system_named(SYSTEMS[0]).settings().read()
        names = getattr(settings, "systems", SYSTEMS[:1])
    yield from map(system_named, dict.fromkeys(names))


def _read_tables(plan: UpgradePlan, system: System, settings: SystemSettings, releases: dict[str, str]) -> None:
    try:
        with system.opened(settings) as services:
            tree = services.tree
            absent = services.engine.dialect.name == "sqlite" and not Path(services.engine.url.database or "").is_file()
            steps = MigrationPlan(None, tree.head, "") if absent else tree.plan(services.engine)
            if steps.before is not None:
                with reading(services.engine) as connection:
                    noted = tree.noted_release(connection)
                releases[system.name] = noted or tree.release_of(steps.before)
                if statements := [each for each in _statements(steps.sql) if " SET version_num=" not in each]:
                    plan.statements[system.name] = statements
            line = terminal_text("{system}: version {before} → {after}").format(
                system=system.name, before=steps.before or terminal_text("none"), after=steps.after
            )
            plan.tables.append(CheckResult("tables", "ok", line))
    except DatabaseError as error:
        plan.tables += [
            CheckResult(result.name, "fail", f"{system.name}: {result.message}", result.remedy)
            for result in opening_results(error)
        ]
    except SQLAlchemyError as error:
        problem = " ".join(str(getattr(error, "orig", None) or error).split())
        plan.tables.append(CheckResult("database", "fail", f"{system.name}: {problem}"))


def _statements(sql: str) -> Iterator[str]:
    """Yield each statement in a line, cut; without comments."""
    for statement in sql.split(";\n"):
        lines = (line for line in statement.splitlines() if line.strip() and not line.startswith("--"))
        text = " ".join(" ".join(lines).split()).rstrip(";")
        if text:
            yield text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _setting_results(
    old: Release, new: Mapping[str, tuple[str, str]], given: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Yield the settings whose defaults changed where this site sets none, and whose limits did where it does."""
    for variable, (default, limits) in new.items():
        default_before, limits_before = old.settings.get(variable, (default, limits))
        if variable not in given and default != default_before:
            message = terminal_text("{variable} is not set: its default was {before}, it is {after} now").format(
                variable=variable, before=default_before or "—", after=default or "—"
            )
            remedy = terminal_text("set {variable}={before} to go on as before").format(
                variable=variable, before=default_before
            )
            yield CheckResult("default", "warn", message, remedy)
        if variable in given and limits != limits_before:
            message = terminal_text("{variable}: the limits were {before}, they are {after} now").format(
                variable=variable, before=limits_before or "—", after=limits or "—"
            )
            yield CheckResult("limits", "warn", message)


def _pool_lines(old: Release, new: Release) -> Iterator[str]:
    for pool, limit in new.pools.items():
        before = old.pools.get(pool)
        if before != limit:
            shown = terminal_text("none") if before is None else before
            yield terminal_text("pool {pool}: {before} → {limit}, by `douban-pipeline setup`").format(
                pool=pool, before=shown, limit=limit
            )


def _job_line(change: JobChange) -> str:
    """Return what changed about a job's config, in a line."""
    if change.removed:
        return terminal_text("{job} is gone: schedules and scripts that launch it fail").format(job=change.job)
    parts = [
        *(terminal_text("the step {old} is {new} now").format(old=old, new=new) for old, new in change.steps),
        *(terminal_text("{field} is gone").format(field=name) for name in change.gone),
        *(terminal_text("{field} is new").format(field=name) for name in change.new),
        *(
            terminal_text("{field} is {after} where it is left out, it was {before}").format(
                field=name, before=before or "—", after=after or "—"
            )
            for name, before, after in change.defaults
        ),
    ]
    return f"{change.job}: {terminal_text('; ').join(parts)}"
