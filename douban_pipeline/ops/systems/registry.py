"""The registry of the systems beside Douban's, and the interface they offer to the operators' commands."""

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
"""The core system, which the commands handle themselves."""
MYSQL = ("mysql", "mariadb")
"""Kinds of databases whose accounts get privileges per table."""
ALL = "all"
"""Name that stands for all systems."""

MODULES = {
    "feeds": "douban_pipeline.ops.systems.feeds",
    "digest": "douban_pipeline.ops.systems.digest",
    "tmdb": "douban_pipeline.ops.systems.tmdb",
    "comments": "douban_pipeline.ops.systems.comments",
}
"""Module of each system's ``SYSTEM``; imported only when a command needs it."""


@contextmanager
def tables_engine(settings: Any) -> Iterator[Engine]:
    """Yield a system's database, from settings that contain its URL and the name of the variable with it.

    Raises:
        DatabaseError: The URL does not name a usable database.
    """
    engine = open_engine(settings.tables_url, setting=settings.database_setting)
    try:
        yield engine
    finally:
        engine.dispose()


def no_checks(_settings: Any, _engine: Engine) -> Iterator[CheckResult]:
    """Yield nothing: for a system that needs only its database."""
    return iter(())


def no_owners(_connection: Connection) -> Iterable[str]:
    """Return nothing: for a system without leases."""
    return ()


def no_grants(_settings: Any, _user: str, _host: str) -> Iterator[str]:
    """Yield nothing: for a system that needs only privileges on its own tables."""
    return iter(())


@dataclass(frozen=True)
class System:
    """Interface of one system for the operators' commands.

    Attributes:
        name: As in ``DOUBAN_PIPELINE_SYSTEMS``, in the tag ``system`` of its runs and in `MODULES`.
        settings: Its settings class.
        tree: Its migrations, whose metadata names all its own tables: those that ``setup`` creates, ``upgrade``
            changes, ``grants`` names, ``backup`` saves and ``restore`` replaces.
        pool_limits: Returns the limits of its Dagster pools; called only where Dagster is already loaded.
        location: Module that Dagster loads for it, which worker hosts load before their first run; empty for none.
        database: Opens, from its settings, the database of its tables for the duration of a command.
        checks: Yields the results of further checks. Settings, database, tables, grants and clock are checked for
            every system; these are called only if they succeeded, and change nothing.
        grants: Yields SQL for the privileges that an account needs beyond its own tables, with the current settings.
        leased_by: Returns the current holders of leases in its tables; a restore is refused while there are any.
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
    """A system with its current settings and its database; no connection is made until it is used."""

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
        """Check that the tables exist and are of this release.

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
        """URL of its database, without the password."""
        return self.engine.url.render_as_string(hide_password=True)


def system_named(name: str) -> System:
    """Return a system by its name.

    Raises:
        ProblemsError: There is no such system.
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
    """Return whether Douban's system is selected, and the other selected systems.

    Args:
        given: Names; ``all`` is every system; without any, those in ``DOUBAN_PIPELINE_SYSTEMS``.

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
    """Yield a system with its settings and its database.

    Raises:
        SettingsError: One of its settings is wrong.
        DatabaseError: Its URL does not name a usable database.
    """
    settings = system.settings.load()
    with system.database(settings) as engine:
        yield Installed(system, settings, engine)
