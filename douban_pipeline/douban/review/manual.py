"""Examples in the manuals of the jobs that record decisions: as YAML to read, and as links that open them filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from douban_pipeline.core.ui.launchpad_links import Launchpad, launch_link, op_config
from douban_pipeline.douban.links import LOCATION

_UNSIGNED = {"reviewer": "", "note": "", "dry_run": True}


def example(op: str, config: Mapping[str, Any]) -> str:
    """Return the config of an op as a block of YAML."""
    return f"```yaml\n{op_config(op, config)}```"


def filled(text: str, job: str, op: str, config: Mapping[str, Any]) -> str:
    """Return a link to the launchpad filled with an example that nobody has signed, and that only checks."""
    return launch_link(text, Launchpad(job, op_config(op, {**config, **_UNSIGNED})), LOCATION)
