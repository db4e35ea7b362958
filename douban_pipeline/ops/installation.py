"""Sets up an installation: our tables, the account's grants, Dagster's pools.

Every command handles the named systems, by default those in ``DOUBAN_PIPELINE_SYSTEMS``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import typer

from douban_pipeline.core.check_results import CheckResult, opening_results, print_results
from douban_pipeline.core.console import console, plain
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.grants import MYSQL, account_of, table_grants
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.platform import Platform
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.core.system import System, installed_names
from douban_pipeline.ops.installation_check import place_result
from douban_pipeline.ops.installed import installed
from douban_pipeline.ops.workspace import write_workspace


def set_up(names: Sequence[str] | None, *, next_steps: bool = True) -> None:
    """Check settings and databases, create or upgrade our tables, set Dagster's pool limits.

    Args:
        names: Systems; those of ``DOUBAN_PIPELINE_SYSTEMS`` by default.
        next_steps: Also say what to do next.

    Raises:
        typer.Exit: Status 2 if there are problems, which were printed, one per line.
    """
    try:
        systems = installed(names)
    except SettingsError as error:
        _stop_at(opening_results(error))
        raise
    for system in systems:
        with ExitStack() as stack:
            try:
                services = stack.enter_context(system.opened())
            except (SettingsError, DatabaseError) as error:
                _stop_at(opening_results(error))
                raise
            _set_up(system, services)
            if next_steps:
                for line in system.operations().next_steps(services):
                    plain(line)
    home = os.environ.get("DAGSTER_HOME")
    if home and (written := write_workspace(Path(home), installed_names())):  # of all, whichever were named
        plain(terminal_text("{path} written: the code locations that Dagster asks").format(path=written))


def _set_up(system: System, services: Platform) -> None:
    place = place_result(system, services)
    found = [] if place is None else [place]
    if system.is_base or "DAGSTER_HOME" in os.environ:
        # Imported here: Dagster is slow to load, and no other command of this module needs it.
        from douban_pipeline.dagster_kit.runs import set_pool_limits
        from douban_pipeline.ops.dagster_checks import home_results, opened_instance

        _stop_at([*found, *home_results()])
        with opened_instance() as instance:
            _upgrade(system, services)
            limits = system.pool_limits()
            set_pool_limits(instance, limits)
        shown = ", ".join(f"{pool} {limit}" for pool, limit in limits.items())
        plain(f"{system.name:<10} {terminal_text('pools')} {shown}")
    else:
        _stop_at(found)
        _upgrade(system, services)
        console.print(terminal_text("DAGSTER_HOME is not set: the limits of Dagster's pools are left as they are"))
    for line in system.operations().introduction(services):
        plain(line)


def _stop_at(results: list[CheckResult]) -> None:
    """Print failed checks, if any, and exit with status 2."""
    failed = [result for result in results if result.state == "fail"]
    if failed:
        print_results(failed)
        raise typer.Exit(2)


def upgrade(names: Sequence[str] | None, *, only_plan: bool) -> None:
    """Print the SQL that upgrades our tables to this release, and run it unless ``only_plan``."""
    for system in installed(names):
        with system.opened() as services:
            plan = services.tree.plan(services.engine)
            plain(f"-- {system.name}: {_version_line(services.shown_url, plan.before, plan.after)}")
            plain(plan.sql or terminal_text("-- nothing to do"))
            if not only_plan:
                _upgrade(system, services)


def _upgrade(system: System, services: Platform) -> None:
    before, after = services.tree.upgrade(services.engine)
    plain(f"{system.name:<10} {_version_line(services.shown_url, before, after)}")
    print_results(system.operations().after_upgrade(services))


def _version_line(url: str, before: str | None, after: str) -> str:
    return terminal_text("tables in {url}: version {before} → {after}").format(
        url=url, before=before or terminal_text("none"), after=after
    )


def print_grants(names: Sequence[str] | None, user: str | None, host: str | None) -> None:
    """Print the least privileges that an account needs, as SQL for the database's administrator."""
    for line in grant_lines(installed(names), user, host):
        plain(line)


def grant_lines(systems: Iterable[System], user: str | None = None, host: str | None = None) -> Iterator[str]:
    """Yield the least privileges as SQL, each statement once; they can be granted before the tables exist.

    Args:
        systems: The systems.
        user, host: The account; by default the one that each system's URL names.
    """
    said: set[str] = set()
    for system in systems:
        with system.opened() as services:
            known_user, known_host = "", ""
            if services.engine.url.get_backend_name() in MYSQL and not (user and host):
                known_user, known_host = account_of(services.engine)
            account = {"user": user or known_user, "host": host or known_host}
            for line in _grants(system, services, **account):
                if line not in said:
                    yield line
                said.add(line)


def _grants(system: System, services: Platform, user: str, host: str) -> Iterator[str]:
    """Yield the grants for a system's tables as SQL; a comment where there is nothing to grant."""
    yield from system.operations().grants(services, user, host)
    url, tree = services.engine.url, services.tree
    backend = url.get_backend_name()
    if backend in MYSQL:
        names = (*sorted(tree.metadata.tables), tree.version_table)
        yield from table_grants(names, database=url.database or "", user=user, host=host)
    else:
        owned = terminal_text("its account owns the database")
        what = owned if backend == "postgresql" else terminal_text("a file has no accounts")
        needless = terminal_text("needs no grants of ours")
        yield f"-- {system.name}: {services.shown_url} {needless}: {what}"
