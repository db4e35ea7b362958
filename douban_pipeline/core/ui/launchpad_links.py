"""Links that open a launchpad with its config filled in. Independent of Dagster except for the paths of its pages.

Observed with Dagster 1.13: the page reads ``config`` as YAML, validates it, and waits for a click on *Launch Run*.

A `Launchpad` names a job and its config. The launchpad's path also contains the job's code location, which is known
only where the link is shown, because installations choose the names of their locations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import yaml

from douban_pipeline.core.ui.presentation import Markdown

MOST_CHARACTERS = 7_500
"""Maximum length of a link: nginx by default reads 8 KB of a request's first line. Dagster's own server was seen to
accept
50,000."""


@dataclass(frozen=True, slots=True)
class Launchpad:
    """A job to launch, and the config filled into its launchpad (YAML)."""

    job: str
    config: str

    def path(self, location: str) -> str:
        """Return the path that opens the launchpad.

        Args:
            location: Repository and code location as Dagster's UI addresses them, ``repository@location``.
        """
        return f"{job_path(self.job, location)}/setup?config={quote(self.config, safe='')}"


def job_path(job: str, location: str) -> str:
    """Return the path of a job's launchpad in Dagster's UI; ``location`` as for `Launchpad.path`."""
    return f"/locations/{quote(location, safe='@')}/jobs/{job}/playground"


def launch_link(text: str, launch: Launchpad, location: str) -> Markdown:
    """Return a link as Markdown; ``text`` must not be outside text. Empty if the link would be too long."""
    path = launch.path(location)
    return Markdown(f"[{text}]({path})" if len(path) <= MOST_CHARACTERS else "")


def op_config(
    op: str,
    config: Mapping[str, Any],
    comments: Mapping[str, str] | None = None,
    others: Mapping[str, Any] | None = None,
) -> str:
    """Return the config of a job with one op for the launchpad: YAML, with one line per row of a list.

    Args:
        op: Name of the op.
        config: Its fields and their values. A row created with a title is followed by it as a comment.
        comments: Comments after fields; a field need not be in ``config``.
        others: Further fields, written as comments with their default values.
    """
    notes = comments or {}
    titles = [each.title for value in config.values() for each in _rows(value)]
    lines: list[str] = []
    for line in _dumped({"ops": {op: {"config": dict(config)}}}).splitlines():
        field = _FIELD.match(line)
        if line.lstrip().startswith("- {") and titles:
            comment = titles.pop(0)
        else:
            comment = notes.get(field.group(1), "") if field else ""
        lines.append(f"{line}  # {comment}" if comment else line)
    for name, value in (others or {}).items():
        lines.append(f"{_INDENT}# {_in_one_line(name, value)}" + (f"  # {notes[name]}" if notes.get(name) else ""))
    return "\n".join([*lines, ""])


_INDENT = " " * 6
_FIELD = re.compile(rf"{_INDENT}(\w+):")


def _dumped(value: Mapping[str, Any]) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000))


_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def _in_one_line(name: str, value: Any) -> str:
    """Return a field and its value as YAML in one line.

    Most defaults do without YAML's writer: every process that loads a location writes some 150 of them.
    """
    if name.lower() not in _YAML_WORDS:
        if value is None or isinstance(value, bool | int):
            return f"{name}: {json.dumps(value)}"
        if value in ("", []):
            return f"{name}: {json.dumps(value)}".replace('"', "'")
    return " ".join(_dumped({name: value}).split())


def _rows(value: Any) -> list[_Row]:
    return [each for each in value if isinstance(each, _Row)] if isinstance(value, list) else []


def comment_of(text: str) -> str:
    """Return outside text as a comment after a number sign: one line of at most 40 printable characters."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:40].strip()


class _Dumper(yaml.SafeDumper):
    """Writes each row of a list on one line, as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists too."""
        return super().increase_indent(flow, False)


class _Row(dict[str, Any]):
    """A mapping that is written in one line, followed by a comment."""

    title: str = ""


def row(**values: Any) -> Mapping[str, Any]:
    """Return a row of a list, to be written in one line."""
    return _Row(values)


def titled(values: Mapping[str, Any], title: str) -> Mapping[str, Any]:
    """Return a row of a list with a title, which follows it as a comment."""
    made = _Row(values)
    made.title = comment_of(title)
    return made


_Dumper.add_representer(
    _Row, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True)
)
_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
