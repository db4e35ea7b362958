"""Which code locations Dagster asks: the workspace file of an installation, in ``DAGSTER_HOME``, written and checked.

The webserver and the daemon read it; each location is a server whose address two variables name.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from douban_pipeline.core.check_results import CheckResult, reached
from douban_pipeline.core.files import replaced
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.system import System, chosen, every_system

FIRST_PORT = 4000
"""Port of the base system's code server; those of the others follow, in the order of the systems."""

_NAME = "workspace.yaml"
_OURS = "# The code locations as servers of their own"
"""How a file begins that `workspace_for` made, or an earlier release shipped; any other is left as it is."""
_ABOUT = (
    f"{_OURS}: the webserver and the daemon ask them, and restarting one is all\n"
    "# that a new release takes. One entry for each system in DOUBAN_PIPELINE_SYSTEMS, written by `setup`.\n"
)


def project_folder() -> Path:
    """Return the folder of `workspace.yaml` and `dagster.yaml`: the checkout's, or that of an installed wheel.

    Raises:
        FileNotFoundError: They are in neither folder.
    """
    checkout = Path(__file__).resolve().parents[2]
    folders = (checkout, Path(sysconfig.get_path("data")) / "share" / "douban_pipeline")
    for folder in folders:
        if (folder / "workspace.yaml").exists():
            return folder
    raise FileNotFoundError(f"workspace.yaml is neither in {folders[0]} nor in {folders[1]}: install the package again")


def workspace_for(names: Sequence[str] | None = None) -> str:
    """Return the workspace file for systems, as YAML: each is a code server whose address two variables name.

    Args:
        names: Names of systems; by default those in ``DOUBAN_PIPELINE_SYSTEMS``.

    Raises:
        ProblemsError: There is no such system.
        SettingsError: The systems' setting is wrong.
    """
    servers = [
        {
            "grpc_server": {
                "host": {"env": variable(system, "HOST")},
                "port": {"env": variable(system, "PORT")},
                "location_name": system.location_name,
            }
        }
        for system in chosen(names)
    ]
    return _ABOUT + yaml.safe_dump({"load_from": servers}, sort_keys=False, allow_unicode=True)


def server_variables(names: Sequence[str] | None = None) -> dict[str, str]:
    """Return the variables that the workspace file for these systems names, with their usual values."""
    ports = {system.name: FIRST_PORT + number for number, system in enumerate(every_system())}
    variables: dict[str, str] = {}
    for system in chosen(names):
        variables[variable(system, "HOST")] = "127.0.0.1"
        variables[variable(system, "PORT")] = str(ports[system.name])
    return variables


def variable(system: System, part: str) -> str:
    """Return the variable with the ``HOST`` or the ``PORT`` of a system's code server."""
    return f"DAGSTER_{'CODE' if system.is_base else system.name.upper()}_{part}"


def write_workspace(home: Path, names: Sequence[str]) -> Path | None:
    """Write the workspace of systems to ``DAGSTER_HOME``; return its path if that changed anything."""
    path, text = home / _NAME, workspace_for(names)
    present = path.read_text(encoding="utf-8") if path.is_file() else ""
    if present == text or (present and not present.startswith(_OURS)):
        return None
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def server_results(home: Path, variables: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check that each code server of the workspace answers at its address; say nothing of those that do.

    Args:
        home: ``DAGSTER_HOME``.
        variables: The environment.
    """
    path = home / _NAME
    content = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    for entry in (content or {}).get("load_from", []):
        server = entry.get("grpc_server") if isinstance(entry, dict) else None
        if not server:
            continue  # a module, which webserver and daemon load themselves
        host, port = (_given(server.get(name), variables) for name in ("host", "port"))
        if not port:
            continue  # another result says which variable is missing
        setting = terminal_text("the code server of {location}").format(location=server.get("location_name", ""))
        result = reached("code", setting, f"grpc://{host or '127.0.0.1'}:{port}")
        if result.state != "ok":
            remedy = terminal_text("start it, or read its log: without it the location has no sensor and no run")
            yield CheckResult("code", "fail", result.message, remedy)


def _given(value: Any, variables: Mapping[str, str]) -> str:
    return variables.get(str(value.get("env")), "") if isinstance(value, dict) else str(value or "")


def workspace_results(home: Path, systems: Sequence[System], variables: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check that the workspace has the code locations of the systems, and that the variables it names are set.

    Args:
        home: ``DAGSTER_HOME``.
        systems: The installed systems.
        variables: The environment.
    """
    path, again = home / _NAME, terminal_text("run `douban-pipeline setup`")
    if not path.is_file():
        missing = terminal_text("{path} does not exist: webserver and daemon take their locations from it")
        yield CheckResult("workspace", "warn", missing.format(path=path), again)
        return
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    entries: list[Any] = [next(iter(each.values())) for each in (content or {}).get("load_from", [])]
    found = {str(each.get("location_name")) for each in entries if isinstance(each, dict)}
    wanted = {system.location_name for system in systems}
    for name in sorted(wanted - found):
        lacks = terminal_text("{path} has no location {name}").format(path=path, name=name)
        yield CheckResult("workspace", "fail", lacks, again)
    named = [each["env"] for entry in entries for each in entry.values() if isinstance(each, dict) and "env" in each]
    usual = server_variables([system.name for system in systems]) if systems else {}
    for name in dict.fromkeys(named):
        if name not in variables:
            unset = terminal_text("{name} is not set, but {path} names it").format(name=name, path=path)
            remedy = terminal_text("put {name} into the environment of every Dagster process").format(
                name=f"{name}={usual[name]}" if name in usual else name
            )
            needless = terminal_text("run `douban-pipeline setup`, which leaves out what is not installed")
            yield CheckResult("workspace", "fail", unset, remedy if name in usual else needless)
    if wanted <= found and all(name in variables for name in named):
        yield CheckResult("workspace", "ok", ", ".join(sorted(found)))
