"""The files of an installation beside its environment: workspace, Dagster's instance, units of systemd, grants."""

from __future__ import annotations

import getpass
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from douban_pipeline.core.files import replaced
from douban_pipeline.core.system import System, every_system
from douban_pipeline.ops.workspace import project_folder, write_workspace

_UNIT = "douban-pipeline-{}.service"
_SERVICE, _SERVICE_LIBRARY = "serve", "uvicorn"
_HOMES = (Path("/home"), Path("/root"), Path("/run/user"))
"""Folders that the units' ``ProtectHome`` hides."""
_WORKERS = {"comment-worker": "comments"}
"""Services beside the code servers that belong to one system."""
_WANTS = re.compile(r"^Wants=.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SitePaths:
    """Where the files of an installation are.

    Attributes:
        folder: The folder that holds them all.
    """

    folder: Path

    @property
    def env(self) -> Path:
        """The environment."""
        return self.folder / "env"

    @property
    def workspace(self) -> Path:
        """Which code locations Dagster asks."""
        return self.dagster_home / "workspace.yaml"

    @property
    def dagster_home(self) -> Path:
        """``DAGSTER_HOME``."""
        return self.folder / "dagster"

    @property
    def dagster(self) -> Path:
        """Dagster's instance."""
        return self.dagster_home / "dagster.yaml"

    @property
    def units(self) -> Path:
        """What goes to ``/etc/systemd/system``."""
        return self.folder / "systemd"

    @property
    def grants(self) -> Path:
        """What the database's administrator runs."""
        return self.folder / "grants.sql"


def write_site_files(paths: SitePaths, systems: Collection[System], home: Path, *, on_postgres: bool) -> list[Path]:
    """Write them, and return those that are new or changed.

    ``dagster.yaml`` is its owner's once it is there: it is written anew only where Dagster's storage changes.
    """
    shipped = project_folder()
    changed = []
    for folder in (paths.folder, paths.dagster_home, paths.units):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    instance = (shipped / ("deploy/dagster.yaml" if on_postgres else "dagster.yaml")).read_text(encoding="utf-8")
    present = paths.dagster.read_text(encoding="utf-8") if paths.dagster.is_file() else ""
    if ("postgres_db:" in present) != on_postgres or not present:
        changed += _write(paths.dagster, instance)
    if (workspace := write_workspace(paths.dagster_home, [system.name for system in systems])) is not None:
        changed.append(workspace)
    wanted = dict(_units(shipped / "deploy" / "systemd", systems))
    for name, text in wanted.items():
        changed += _write(paths.units / name, _placed(text, paths, home))
    for left in paths.units.rglob("*"):
        if left.is_file() and left.relative_to(paths.units).as_posix() not in wanted:
            left.unlink()
            changed.append(left)
    return changed


def _write(path: Path, text: str) -> list[Path]:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")
    return [path]


def _units(folder: Path, systems: Collection[System]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each unit that these systems need; the target wants just those."""
    texts = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in _files(folder)}
    installed = {system.name for system in systems}
    owners = {("code" if system.is_base else system.name): system.name for system in every_system()} | _WORKERS
    for name in (service for service, owner in owners.items() if owner not in installed):
        texts.pop(_UNIT.format(name))
    wants = [name for name in texts if name.startswith("douban-pipeline-") and _is_started(name, texts)]
    for name, text in texts.items():
        if name == "douban-pipeline.target":
            first, rest = f"Wants={' '.join(sorted(wants))}\n", _WANTS.sub("", text)
            text = rest.replace("[Install]", f"{first}\n[Install]").replace("\n\nWants=", "\nWants=")
        yield name, text


def _is_started(name: str, texts: Collection[str]) -> bool:
    """Return whether the target starts a unit: a timer, or a service that no timer starts and that can run."""
    stem, _, kind = name.rpartition(".")
    if name == _UNIT.format(_SERVICE):
        return find_spec(_SERVICE_LIBRARY) is not None
    return kind == "timer" or (kind == "service" and f"{stem}.timer" not in texts)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "journald.conf")


def _placed(text: str, paths: SitePaths, home: Path) -> str:
    """Return a unit's text with the places of this installation instead of those of the guide."""
    checked = home.resolve()
    text = text.replace("/opt/douban_pipeline/.venv/bin", str(Path(sys.executable).parent))
    text = text.replace("/etc/douban_pipeline/env", str(paths.env))
    text = text.replace("StateDirectory=douban_pipeline dagster\n", f"ReadWritePaths={checked} {paths.dagster_home}\n")
    text = text.replace("StateDirectoryMode=0750\n", "")
    text = text.replace("/var/lib/douban_pipeline", str(checked))
    user = getpass.getuser()
    if user != "root":
        text = text.replace("User=douban\nGroup=douban\n", f"User={user}\n")
    places = (checked, paths.folder, Path(sys.executable))
    hidden = any(place.is_relative_to(top) for place in places for top in _HOMES)
    return text.replace("ProtectHome=yes", "ProtectHome=read-only") if hidden else text
