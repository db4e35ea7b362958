"""Links that open a launchpad with its config filled in. Knows nothing of Dagster but where its pages are.

Seen with Dagster 1.13: the page takes ``config`` as YAML, validates it, and waits for the click on *Launch Run*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import yaml

LOCATION = "__repository__@douban_pipeline"
"""Repository and code location as `workspace.yaml` names them."""

MOST_CHARACTERS = 7_500
"""Longest link that every part on the way takes: nginx, as it comes, reads 8 KB of a request's first line. Dagster's
own server was seen to take 50,000."""


def job_path(job: str) -> str:
    """Return the path of a job's launchpad in Dagster's UI."""
    return f"/locations/{LOCATION}/jobs/{job}/playground"


def op_config(op: str, config: Mapping[str, Any]) -> str:
    """Return the config of a job with one op as the launchpad takes it: YAML, with a line for each row of a list."""
    text = yaml.dump(
        {"ops": {op: {"config": dict(config)}}}, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000
    )
    return str(text)


def launch_path(job: str, config: str) -> str:
    """Return the path that opens a job's launchpad filled with ``config``."""
    return f"{job_path(job)}/setup?config={quote(config, safe='')}"


class _Dumper(yaml.SafeDumper):
    """Writes the rows of a list in a line each, as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists too."""
        return super().increase_indent(flow, False)


class _Row(dict[str, Any]):
    """A mapping that is written in one line."""


def row(**values: Any) -> Mapping[str, Any]:
    """Return a row of a list, to be written in one line."""
    return _Row(values)


_Dumper.add_representer(
    _Row, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=True)
)
