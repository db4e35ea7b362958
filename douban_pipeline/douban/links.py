"""Paths that open the launchpads people use most, filled in: decide, take back, ask what happened.

Nothing happens until a person signs and launches. What a path holds is ours, never outside text.
"""

from __future__ import annotations

from typing import Any

from douban_pipeline.core.ui.launchpad_links import launch_path, op_config, row
from douban_pipeline.douban.store.states import DecisionAction


def decide(vod_id: int, action: DecisionAction, *, dry_run: bool, **given: Any) -> str:
    """Return the path of `record_decisions` with one decision; ``given`` is what else its row says."""
    decisions = [row(vod_id=vod_id, action=action.value, **given)]
    config = {"reviewer": "", "note": "", "dry_run": dry_run, "decisions": decisions}
    return launch_path("record_decisions", op_config("store_decisions", config))


def take_back(**chosen: Any) -> str:
    """Return the path of `revert_changes` for what is ``chosen``; first it only shows."""
    config = {"operator": "", "reason": "", "dry_run": True, **chosen}
    return launch_path("revert_changes", op_config("take_back", config))


def history(vod_id: int) -> str:
    """Return the path of `video_history` of a video."""
    return launch_path("video_history", op_config("tell_history", {"vod_ids": [vod_id]}))
