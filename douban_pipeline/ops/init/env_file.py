"""The file with an installation's environment, read by systemd, by a shell and by us; only its owner may read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values

from douban_pipeline.core.environment import ENV_ENCODING
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.files import replaced
from douban_pipeline.core.language import terminal_text

_ABOUT = (
    "# The environment of every process and command of the pipeline; only its user may read it. What `init` is told\n"
    "# anew it changes here, and leaves everything else as it is; `douban-pipeline settings` shows all variables.\n"
)
_BARE = re.compile(r"[A-Za-z0-9_./:,@%+=~\-]*")
_LINE = re.compile(r"^\s*(?:export\s+)?(\w+)\s*=")


def read_env(path: Path) -> dict[str, str]:
    """Return the variables of the file; none if there is no file."""
    if not path.is_file():
        return {}
    found = dotenv_values(path, interpolate=False, encoding=ENV_ENCODING)
    return {name: value or "" for name, value in found.items()}


def write_env(path: Path, values: Mapping[str, str]) -> list[str]:
    """Set variables in the file and leave its other lines as they are; return the names of those that changed.

    Raises:
        OperatingError: A value cannot stand in such a file.
        OSError: It cannot be written.
    """
    before = read_env(path)
    changed = [name for name, value in values.items() if before.get(name) != value]
    if path.is_file() and not changed:
        path.chmod(0o600)
        return []
    left = dict(values)
    lines = []
    for line in path.read_text(encoding=ENV_ENCODING).splitlines() if path.is_file() else _ABOUT.splitlines():
        found = _LINE.match(line)
        name = found[1] if found else ""
        lines.append(_line(name, left.pop(name)) if name in left else line)
    lines += [_line(name, value) for name, value in left.items()]
    with replaced(path, 0o600) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return changed


def _line(name: str, value: str) -> str:
    if _BARE.fullmatch(value):
        return f"{name}={value}"
    if "'" in value or "\\" in value or not value.isprintable():
        problem = terminal_text(
            "the value of {name} holds a quote, a backslash or a line break: write it as %XX in a URL"
        )
        raise OperatingError(problem.format(name=name))
    return f"{name}='{value}'"
