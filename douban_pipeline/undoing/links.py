"""Links into Dagster's UI that this room offers: launchpads with what is to be done filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from douban_pipeline.catalog.states import DecisionAction
from douban_pipeline.playground import MOST_CHARACTERS, launch_path, op_config, row
from douban_pipeline.presentation import Markdown

_UNSIGNED = {"operator": "", "reason": "", "dry_run": True}


def link(text: str, job: str, op: str, config: Mapping[str, Any]) -> Markdown:
    """Return a link to a job's launchpad filled with the config of its op; empty where it would be too long."""
    path = launch_path(job, op_config(op, config))
    return Markdown(f"[{text}]({path})" if len(path) <= MOST_CHARACTERS else "")


def take_back(text: str, **chosen: Any) -> Markdown:
    """Return a link to `revert_changes` that first only shows; a person adds name and reason."""
    return link(text, "revert_changes", "take_back", {**_UNSIGNED, **chosen})


def history(text: str, vod_id: int) -> Markdown:
    """Return a link to `video_history` of a video."""
    return link(text, "video_history", "tell_history", {"vod_ids": [vod_id]})


def decide(text: str, vod_id: int, action: DecisionAction, **given: Any) -> Markdown:
    """Return a link to `record_decisions` with one decision that is first only checked."""
    decisions = [row(vod_id=vod_id, action=action.value, **given)]
    config = {"reviewer": "", "note": "", "dry_run": True, "decisions": decisions}
    return link(text, "record_decisions", "store_decisions", config)
