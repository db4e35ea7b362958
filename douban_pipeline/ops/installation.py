"""Sets up an installation: our tables, the account's grants, Dagster's pools; shows the current settings.

Every command handles the named systems, by default those in ``DOUBAN_PIPELINE_SYSTEMS``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import typer
from pydantic import SecretStr
from rich.table import Column
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from douban_pipeline.core.check_results import CheckResult, opening_results, print_results
from douban_pipeline.core.console import Table, console, plain
from douban_pipeline.core.database import DatabaseError
from douban_pipeline.core.grants import MYSQL, account_of, grant, grant_once_there, table_grants
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.platform import Platform
from douban_pipeline.core.settings_base import SettingsError
from douban_pipeline.core.system import System, installed_names
from douban_pipeline.ops.installation_check import place_result
from douban_pipeline.ops.installed import installed
from douban_pipeline.ops.workspace_file import write_workspace
from douban_pipeline.serve.settings import load_settings as load_service

_SECRETS = re.compile(
    r"(?<=://)[^/\s,@]*(?=@)|(?<=[?&])[^=&\s,]*(?:key|token|secret|password|sign)[^=&\s,]*=[^&\s,]*", re.IGNORECASE
)
"""What may be secret in an address: user and password, and values of its query with such names."""


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


def upgrade(names: Sequence[str] | None, *, dry_run: bool) -> None:
    """Upgrade our tables to this release, or print the SQL."""
    for system in installed(names):
        with system.opened() as services:
            if dry_run:
                plan = services.tree.plan(services.engine)
                plain(f"-- {system.name}: {_version_line(services.shown_url, plan.before, plan.after)}")
                plain(plan.sql or terminal_text("-- nothing to do"))
            else:
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
    on_others: list[tuple[str, str]] = []
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
            for rights, database, table in system.operations().rights_on_others(services):
                granted = grant("ALL", database, table, **account)
                on_others.append((granted, grant_once_there(rights, database, table, **account)))
    yield from (line for granted, line in on_others if granted not in said)


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


def show_settings(names: Sequence[str] | None) -> None:
    """Show every setting: its variable, its value (never a secret) and what it means.

    In a terminal the output is a table; otherwise one line per setting, with tabs between its three parts.
    """
    # A truncated variable cannot be copied.
    table = Table(
        Column(terminal_text("variable"), no_wrap=True),
        Column(terminal_text("value"), overflow="fold"),
        Column(terminal_text("meaning"), overflow="fold"),
    )
    shown: set[str] = set()
    for settings in (*(system.settings().load() for system in installed(names)), load_service()):
        for name, definition in type(settings).model_fields.items():
            given = settings.variable(name)
            if given not in shown:  # some are shared
                row = (given, _shown(getattr(settings, name)), terminal_text(definition.description or ""))
                table.add_row(*row) if console.is_terminal else typer.echo("\t".join(row))  # rich has no tabs
            shown.add(given)
    if console.is_terminal:
        console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, SecretStr):
        return _shown_secret(value.get_secret_value())
    if isinstance(value, frozenset):
        value = tuple(sorted(value))
    if isinstance(value, dict):
        value = tuple(f"{name}={policy}" for name, policy in value.items())
    shown = (", ".join(map(str, value)) or "—") if isinstance(value, tuple) else str(value)
    return _SECRETS.sub("***", shown)


def _shown_secret(secret: str) -> str:
    """Return a database's address without its password; for any other secret only whether it is set."""
    try:
        url = make_url(secret) if secret else None
    except ArgumentError:
        return "set"
    if url is None:
        return "—"
    known = url.get_backend_name() in ("mysql", "mariadb", "postgresql", "sqlite")
    return url.render_as_string(hide_password=True) if known else "set"
