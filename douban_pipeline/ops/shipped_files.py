"""The files of `deploy` that an installation has copies of, and how these compare with what this release ships."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.system import System, every_system
from douban_pipeline.ops.dagster_checks import home_results
from douban_pipeline.ops.release_history import Release, changed_files, digest
from douban_pipeline.ops.workspace import project_folder, server_variables

UNITS = Path("/etc/systemd/system")
"""Where the guide copies the units."""
PLACES: Mapping[str, str] = {
    "systemd/journald.conf": "/etc/systemd/journald.conf.d/douban_pipeline.conf",
    "nginx.conf": "/etc/nginx/conf.d/douban_pipeline.conf",
    "logrotate.conf": "/etc/logrotate.d/douban_pipeline",
}
"""Where the guide copies other files."""
_WORKSPACE = re.compile(r"^ExecStart=.* -w (/\S+)", re.MULTILINE)
_WORKERS = {"comment-worker": "comments"}
"""Services beside the code servers that belong to one system."""


def file_results(
    before: Release | None, new: Release, systems: Sequence[System], variables: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Yield what Dagster's files lack, and the copies in `/etc` and ``DAGSTER_HOME`` that are to be renewed.

    Args:
        before: The release that is installed; None before any.
        new: This release.
        systems: The installed systems.
        variables: The environment.
    """
    if home := variables.get("DAGSTER_HOME"):
        yield from home_results()
        for name, usual in server_variables([system.name for system in systems]).items():
            if name not in variables:
                unset = terminal_text("{name} is not set, and workspace.yaml will name it").format(name=name)
                remedy = terminal_text("put {name} into the environment of every Dagster process")
                yield CheckResult("workspace", "fail", unset, remedy.format(name=f"{name}={usual}"))
    for unit in sorted(UNITS.glob("douban-pipeline-*.service")):
        for named in _WORKSPACE.findall(unit.read_text(encoding="utf-8", errors="replace")):
            if not Path(named).exists():
                problem = terminal_text("{unit} names {named}, which does not exist").format(unit=unit, named=named)
                yield CheckResult("units", "fail", problem, _copy(f"systemd/{unit.name}", unit))
    if before is not None:
        needed = {f"systemd/douban-pipeline-{name}.service" for name in services_of(systems)}
        for name in changed_files(before, new):
            place = _place(name, home)
            if place is not None and (result := _copied(name, place, before, new, needed)) is not None:
                yield result


def _place(name: str, home: str | None) -> Path | None:
    """Return where an installation has its copy of a file of `deploy`; None for files that are used where they are."""
    if name == "dagster.yaml":
        return Path(home) / name if home else None
    if name in PLACES:
        return Path(PLACES[name])
    return UNITS / name.removeprefix("systemd/") if name.startswith("systemd/") else None


def _copied(name: str, place: Path, before: Release, new: Release, needed: set[str]) -> CheckResult | None:
    """Return what to do about the copy of a file that this release changed; None for nothing."""
    if not place.is_file():
        if name not in needed or not any(UNITS.glob("douban-pipeline-*.service")):
            return None
        return CheckResult("files", "warn", terminal_text("{place} is new").format(place=place), _copy(name, place))
    present = digest(place)
    if present == new.files[name]:
        return None
    if present == before.files.get(name):
        message = terminal_text("{place} is that of {release}").format(place=place, release=before.name)
        return CheckResult("files", "warn", message, _copy(name, place))
    shipped = project_folder() / "deploy" / name
    message = terminal_text("{place} is your own, and this release changed {name}").format(place=place, name=name)
    remedy = terminal_text("take over what changed: {command}").format(command=f"`diff {place} {shipped}`")
    return CheckResult("files", "warn", message, remedy)


def _copy(name: str, place: Path) -> str:
    reload = " && sudo systemctl daemon-reload" if name.startswith("systemd/") else ""
    return f"`sudo cp {project_folder() / 'deploy' / name} {place}{reload}`"


def left_out_services(systems: Collection[System]) -> set[str]:
    """Return the services of other systems than these, by the names of their units: code servers and workers."""
    installed = {system.name for system in systems}
    owners = {("code" if system.is_base else system.name): system.name for system in every_system()} | _WORKERS
    return {service for service, system in owners.items() if system not in installed}


def services_of(systems: Sequence[System]) -> list[str]:
    """Return the services that run all the time for these systems, by the names of their units."""
    left_out = left_out_services(systems)
    folder = project_folder() / "deploy" / "systemd"
    names = [path.stem.removeprefix("douban-pipeline-") for path in sorted(folder.glob("douban-pipeline-*.service"))]
    return [
        name
        for name in names
        if name not in left_out
        and "Type=oneshot" not in (folder / f"douban-pipeline-{name}.service").read_text(encoding="utf-8")
    ]
