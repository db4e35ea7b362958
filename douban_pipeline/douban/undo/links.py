"""Links into Dagster's UI that this room offers: launchpads with what is to be done filled in."""

from __future__ import annotations

from typing import Any

from douban_pipeline.core.ui.launchpad_links import MOST_CHARACTERS
from douban_pipeline.core.ui.presentation import Markdown
from douban_pipeline.douban import links as launch_links
from douban_pipeline.douban.store.states import DecisionAction


def take_back(text: str, **chosen: Any) -> Markdown:
    """Return a link to `revert_changes` that first only shows; empty where it would be too long."""
    path = launch_links.take_back(**chosen)
    return _link(text, path) if len(path) <= MOST_CHARACTERS else Markdown("")


def history(text: str, vod_id: int) -> Markdown:
    """Return a link to `video_history` of a video."""
    return _link(text, launch_links.history(vod_id))


def decide(text: str, vod_id: int, action: DecisionAction, **given: Any) -> Markdown:
    """Return a link to `record_decisions` with one decision that is first only checked."""
    return _link(text, launch_links.decide(vod_id, action, dry_run=True, **given))


def _link(text: str, path: str) -> Markdown:
    return Markdown(f"[{text}]({path})")
