"""Which code locations Dagster asks: the workspace file of an installation, and the variables that it names."""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from pathlib import Path

import yaml

from douban_pipeline.core.system import System, chosen, every_system

FIRST_PORT = 4000
"""Port of the base system's code server; those of the others follow, in the order of the systems."""

_ABOUT = (
    "# The code locations as servers of their own: the webserver and the daemon ask them, and restarting one is all\n"
    "# that a new release takes. One entry for each system in DOUBAN_PIPELINE_SYSTEMS, written by `init`.\n"
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
