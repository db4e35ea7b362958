"""One system as the rest of the house sees it, and the registry of all systems.

Each system's package holds ``SYSTEM = System(…)`` in its ``system.py``. Importing it loads nothing else, so that the
command line starts fast and Dagster is loaded only where it is used: a part is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from douban_pipeline import __version__
from douban_pipeline.core import environment
from douban_pipeline.core.language import terminal_text

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from typer import Typer

    from douban_pipeline.core.guesses import GuessGuard
    from douban_pipeline.core.mounts import Mount
    from douban_pipeline.core.operations import Operations
    from douban_pipeline.core.platform import Platform
    from douban_pipeline.core.settings_base import SystemSettings

ALL = "all"
"""Name that stands for every system."""

T = TypeVar("T")


@dataclass(frozen=True)
class SystemPart(Generic[T]):
    """A part of a system that is imported when it is called, by its place: ``package.module:name``."""

    place: str

    def __call__(self) -> T:
        """Import the part and return it.

        Raises:
            ModuleNotFoundError: A library of the system's extra is not installed.
        """
        module, _, name = self.place.partition(":")
        return cast(T, getattr(import_module(module), name))


@dataclass(frozen=True)
class System:
    """One system.

    Attributes:
        name: As in ``DOUBAN_PIPELINE_SYSTEMS``, in the tag ``system`` of its runs, and of its package.
        settings: Its settings class.
        operations: What the operators' commands need of it beyond its tables.
        mounts: Function that returns its parts of the HTTP service; none by default.
        commands: Its commands in a terminal, only options and help: under a name, or beside the operators' own.
        title: What people call it, in Chinese.
        page: Where people look first: a page of the service below its front page, or a path of Dagster's UI.
        libraries: The modules that pip's extra of its name installs and that it cannot do without; none by default.
    """

    name: str
    settings: SystemPart[type[SystemSettings]]
    operations: SystemPart[Operations] = SystemPart("douban_pipeline.core.operations:OPERATIONS")
    mounts: SystemPart[Callable[[GuessGuard], Iterator[Mount]]] | None = None
    commands: SystemPart[Typer] | None = None
    title: str = ""
    page: str = "/asset-groups"
    libraries: Sequence[str] = ()

    @property
    def is_base(self) -> bool:
        """Whether it is the system whose variables have the base prefix; commands address it without a name."""
        return self.name == environment.SYSTEMS[0]

    @property
    def absent_library(self) -> str | None:
        """One of its libraries that is not installed; None if they all are."""
        return next((name for name in self.libraries if find_spec(name) is None), None)

    @property
    def services(self) -> SystemPart[Callable[..., Platform]]:
        """Function that returns its services for its settings; their ``tree`` are its migrations."""
        return SystemPart(f"douban_pipeline.{self.name}.services:open_services")

    @property
    def tables_version(self) -> str:
        """The newest version of its tables in this release; empty if it has none of its own.

        Read from the names of its migrations, so that neither its settings nor Alembic are needed.
        """
        return newest_version(files(f"douban_pipeline.{self.name}").joinpath("store", "migrations", "versions"))

    @property
    def build_defs(self) -> SystemPart[Callable[[], Any]]:
        """Function that returns its Dagster definitions."""
        return SystemPart(f"douban_pipeline.{self.name}.definitions:build_defs")

    @property
    def pool_limits(self) -> SystemPart[Mapping[str, int]]:
        """The limits of its Dagster pools."""
        return SystemPart(f"douban_pipeline.{self.name}.resources:POOL_LIMITS")

    @property
    def location(self) -> str:
        """The module that Dagster loads: its code location, in ``workspace.yaml``."""
        return "douban_pipeline.definitions" if self.is_base else f"douban_pipeline.locations.{self.name}"

    @property
    def location_name(self) -> str:
        """The name of its code location."""
        return "douban_pipeline" if self.is_base else self.name

    @property
    def option(self) -> str:
        """The option that chooses the system on the command line, after a blank."""
        return "" if self.is_base else f" --system {self.name}"

    @contextmanager
    def opened(self, settings: SystemSettings | None = None) -> Iterator[Platform]:
        """Yield its services for ``settings``, by default the current ones; no connection is made until one is used.

        Raises:
            SettingsError: One of its settings is wrong.
            DatabaseError: The URL of its tables cannot be used.
        """
        services = self.services()(settings or self.settings().load())
        try:
            yield services
        finally:
            services.close()


def newest_version(folder: Traversable) -> str:
    """Return the newest version in a folder of migrations, by the names of its files; empty without any."""
    found = [each.name.partition("_")[0] for each in folder.iterdir()] if folder.is_dir() else []
    return max((version for version in found if version.isdecimal()), default="")


def system_named(name: str) -> System:
    """Return a system by its name.

    Raises:
        ProblemsError: There is no such system.
    """
    if name not in environment.SYSTEMS:
        from douban_pipeline.core.errors import ProblemsError

        known = ", ".join(environment.SYSTEMS)
        raise ProblemsError(
            [terminal_text("there is no system {name!r}; systems: {known}").format(name=name, known=known)]
        )
    return SystemPart[System](f"douban_pipeline.{name}.system:SYSTEM")()


def every_system() -> Iterator[System]:
    """Yield all systems, the base first."""
    return map(system_named, environment.SYSTEMS)


@cache
def tables_versions() -> Mapping[str, str]:
    """Return the newest version of each system's tables in this release."""
    return {system.name: system.tables_version for system in every_system() if system.tables_version}


def release_line() -> str:
    """Return the release and the versions of all tables in a line, as pages and ``--version`` name them."""
    return f"douban_pipeline {__version__} ({', '.join(map(' '.join, tables_versions().items()))})"


def chosen(given: Sequence[str] | None = None) -> list[System]:
    """Return the systems with the given names.

    Args:
        given: Names; ``all`` is every system; without any, those in ``DOUBAN_PIPELINE_SYSTEMS``.

    Raises:
        ProblemsError: There is no such system.
        SettingsError: A setting of the base system, which holds that variable, is wrong.
    """
    if given and ALL in given:
        return list(every_system())
    return [system_named(name) for name in dict.fromkeys(given or installed_names())]


def installed_names() -> tuple[str, ...]:
    """Return the names in ``DOUBAN_PIPELINE_SYSTEMS``.

    Raises:
        SettingsError: A setting of the base system, which holds that variable, is wrong.
    """
    base = system_named(environment.SYSTEMS[0])
    settings = cast(Any, base.settings().load())
    return cast(tuple[str, ...], settings.systems)
