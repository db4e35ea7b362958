"""Links that open a launchpad with its config filled in. Knows nothing of Dagster but where its pages are.

Seen with Dagster 1.13: the page takes ``config`` as YAML, validates it, and waits for the click on *Launch Run*.

A `Launchpad` names a job and its config. The path of its launchpad also holds the code location that the job is loaded
from, which is known only where the link is shown: installations name their locations as they like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import yaml

from douban_pipeline.core.ui.presentation import Markdown

MOST_CHARACTERS = 7_500
"""Longest link that every part on the way takes: nginx, as it comes, reads 8 KB of a request's first line. Dagster's
own server was seen to take 50,000."""


@dataclass(frozen=True, slots=True)
class Launchpad:
    """A job to launch, and the config that its launchpad is filled with (YAML)."""

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
    """Return a link as Markdown; ``text`` is ours, never outside text. Empty where the link would be too long."""
    path = launch.path(location)
    return Markdown(f"[{text}]({path})" if len(path) <= MOST_CHARACTERS else "")


def op_config(
    op: str,
    config: Mapping[str, Any],
    comments: Mapping[str, str] | None = None,
    others: Mapping[str, Any] | None = None,
) -> str:
    """Return the config of a job with one op as the launchpad takes it: YAML, with a line for each row of a list.

    Args:
        op: The op.
        config: Its fields and their values. A row that was made with a title has it behind it as a comment.
        comments: What is said behind fields; one that is not in ``config`` needs none.
        others: Further fields, which stand in comments with the values that they have by default.
    """
    said = comments or {}
    titles = [each.title for value in config.values() for each in _rows(value)]
    lines: list[str] = []
    for line in _dumped({"ops": {op: {"config": dict(config)}}}).splitlines():
        field = _FIELD.match(line)
        if line.lstrip().startswith("- {") and titles:
            comment = titles.pop(0)
        else:
            comment = said.get(field.group(1), "") if field else ""
        lines.append(f"{line}  # {comment}" if comment else line)
    for name, value in (others or {}).items():
        text = " ".join(_dumped({name: value}).split())
        lines.append(f"{_INDENT}# {text}" + (f"  # {said[name]}" if said.get(name) else ""))
    return "\n".join([*lines, ""])


_INDENT = " " * 6
_FIELD = re.compile(rf"{_INDENT}(\w+):")


def _dumped(value: Mapping[str, Any]) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000))


def _rows(value: Any) -> list[_Row]:
    return [each for each in value if isinstance(each, _Row)] if isinstance(value, list) else []


def comment_of(text: str) -> str:
    """Return outside text as what may stand behind a number sign: one line of printable signs, of 40 at most."""
    return "".join(sign if sign.isprintable() else " " for sign in text)[:40].strip()


class _Dumper(yaml.SafeDumper):
    """Writes the rows of a list in a line each, as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists too."""
        return super().increase_indent(flow, False)


class _Row(dict[str, Any]):
    """A mapping that is written in one line, and what stands behind it as a comment."""

    title: str = ""


def row(**values: Any) -> Mapping[str, Any]:
    """Return a row of a list, to be written in one line."""
    return _Row(values)


def titled(values: Mapping[str, Any], title: str) -> Mapping[str, Any]:
    """Return a row of a list with a title, which stands behind it as a comment."""
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
