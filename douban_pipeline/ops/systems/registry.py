"""What a system beside Douban's offers to the commands of operators, and which systems there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sqlalchemy import Connection, Engine

from douban_pipeline.core.database import DatabaseError, open_engine
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.settings_base import SystemSettings
from douban_pipeline.core.ui.language import said
from douban_pipeline.ops.results import CheckResult

DOUBAN = "douban"
"""The core system, which the commands serve by themselves."""
MYSQL = ("mysql", "mariadb")
"""Kinds of databases whose accounts get rights a table."""
ALL = "all"
"""What names every system."""

MODULES = {
    "feeds": "douban_pipeline.ops.systems.feeds",
    "digest": "douban_pipeline.ops.systems.digest",
    "tmdb": "douban_pipeline.ops.systems.tmdb",
    "comments": "douban_pipeline.ops.systems.comments",
}
"""Where each system's ``SYSTEM`` is; imported only when a command serves it."""


@contextmanager
def tables_engine(settings: Any) -> Iterator[Engine]:
    """Give a system's database, from settings that say where its tables are, and which variable says so.

    Raises:
        DatabaseError: The URL names no database that can be used.
    """
    engine = open_engine(settings.tables_url, setting=settings.database_setting)
    try:
        yield engine
    finally:
        engine.dispose()


def no_checks(_settings: Any, _engine: Engine) -> Iterator[CheckResult]:
    """Yield nothing: of a system that needs nothing but its database."""
    return iter(())


def no_owners(_connection: Connection) -> Iterable[str]:
    """Return nothing: of a system in which nothing is leased."""
    return ()


def no_grants(_settings: Any, _user: str, _host: str) -> Iterator[str]:
    """Yield nothing: of a system that needs no rights but those on its tables."""
    return iter(())


@dataclass(frozen=True)
class System:
    """What one system offers.

    Attributes:
        name: As in ``DOUBAN_PIPELINE_SYSTEMS``, in the tag ``system`` of its runs and in `MODULES`.
        settings: Its settings class.
        tree: Its migrations, whose metadata names every table that is its own: what ``setup`` makes, ``upgrade``
            changes, ``grants`` names, ``backup`` saves and ``restore`` replaces.
        pool_limits: Returns the limits of its Dagster pools; called only where Dagster is loaded anyway.
        location: Module that Dagster loads for it, which worker hosts load before their first run; empty for none.
        database: Gives, from its settings, the database of its tables for as long as a command uses it.
        checks: Yields the results of further checks. Settings, database, tables, grants and clock are checked for
            every system; these are called only if they succeeded, and change nothing.
        grants: Yields SQL for the rights that an account needs beyond its own tables, with the current settings.
        leased_by: Returns the present holders of leases in its tables; a restore is refused while there are any.
    """

    name: str
    settings: type[SystemSettings]
    tree: MigrationTree
    pool_limits: Callable[[], Mapping[str, int]] = dict
    location: str = ""
    database: Callable[[Any], AbstractContextManager[Engine]] = tables_engine
    checks: Callable[[Any, Engine], Iterator[CheckResult]] = no_checks
    grants: Callable[[Any, str, str], Iterator[str]] = no_grants
    leased_by: Callable[[Connection], Iterable[str]] = no_owners


@dataclass(frozen=True)
class Installed:
    """A system with its settings in force and its database; nothing is connected until it is used."""

    system: System
    settings: SystemSettings
    engine: Engine

    @property
    def name(self) -> str:
        """The system's name."""
        return self.system.name

    @property
    def tree(self) -> MigrationTree:
        """The system's migrations."""
        return self.system.tree

    def ready(self) -> None:
        """Return if the tables are there and of this release.

        Raises:
            DatabaseError: They are not; the message says what to run.
        """
        found = self.tree.current(self.engine)
        if found != self.tree.head:
            if found is None:
                what = said(
                    f"{self.shown_url} 里还没有 {self.name} 的表",
                    f"the tables of {self.name} in {self.shown_url} do not exist yet",
                )
            else:
                what = said(
                    f"{self.shown_url} 里 {self.name} 的表是版本 {found}，不是 {self.tree.head}",
                    f"the tables of {self.name} in {self.shown_url} are at version {found}, not {self.tree.head}",
                )
            command = f"`douban-pipeline {'setup' if found is None else 'upgrade'} --system {self.name}`"
            raise DatabaseError(said(f"{what}：请运行 {command}", f"{what}: run {command}"))

    @property
    def shown_url(self) -> str:
        """Where its tables are, without the password."""
        return self.engine.url.render_as_string(hide_password=True)


def system_named(name: str) -> System:
    """Return a system by its name.

    Raises:
        ProblemsError: There is none of that name.
    """
    if name not in MODULES:
        known = ", ".join((DOUBAN, *MODULES))
        raise ProblemsError(
            [said(f"没有系统 {name!r}；系统：{known}", f"there is no system {name!r}; systems: {known}")]
        )
    system = import_module(MODULES[name]).SYSTEM
    assert isinstance(system, System)
    return system


def chosen(given: Sequence[str] | None) -> tuple[bool, tuple[System, ...]]:
    """Return whether Douban's system is meant, and which others.

    Args:
        given: Names; ``all`` is every system; without any, what ``DOUBAN_PIPELINE_SYSTEMS`` says.

    Raises:
        ProblemsError: There is no such system.
        SettingsError: A setting of Douban's system, which holds that variable, is wrong.
    """
    from douban_pipeline.douban.settings import load_settings

    if given and ALL in given:
        given = (DOUBAN, *MODULES)
    names = tuple(dict.fromkeys(given or load_settings().systems))
    return DOUBAN in names, tuple(system_named(name) for name in names if name != DOUBAN)


@contextmanager
def installed(system: System) -> Iterator[Installed]:
    """Give a system with its settings and its database.

    Raises:
        SettingsError: One of its settings is wrong.
        DatabaseError: Its URL names no database that can be used.
    """
    settings = system.settings.load()
    with system.database(settings) as engine:
        yield Installed(system, settings, engine)
