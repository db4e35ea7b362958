"""The workspace file in ``DAGSTER_HOME``, which the webserver and the daemon read: written by ``setup``, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.files import replaced
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.system import System
from douban_pipeline.ops.workspace import server_variables, workspace_for

_NAME = "workspace.yaml"
_OURS = "# The code locations as servers of their own"
"""How a file begins that `workspace_for` made; any other is its owner's, and left as it is."""


def write_workspace(home: Path, names: Sequence[str]) -> Path | None:
    """Write the workspace of systems to ``DAGSTER_HOME``; return its path if that changed anything."""
    path, text = home / _NAME, workspace_for(names)
    present = path.read_text(encoding="utf-8") if path.is_file() else ""
    if present == text or (present and not present.startswith(_OURS)):
        return None
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


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
