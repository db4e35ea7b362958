"""Links into Dagster's UI that the reports offer: a launchpad with what is to be done filled in, and runs.

Paths only: what is shown outside the UI puts its address before them. What a link holds is ours, never outside text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from douban_pipeline.core.ui.launchpad_links import launch_path, op_config
from douban_pipeline.douban import links as launch_links
from douban_pipeline.douban.reports.pages.pages import Link
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.matching import clean_title

BATCH = 100
"""Videos that `record_batch_decisions` takes at once unless it is told otherwise, and that fit into a link."""

IGNORED_DAYS = 180
"""Proposed where a video is ignored because nothing was found: Douban may well know it by then."""


def decision(text: str, vod_id: int, action: DecisionAction, **given: Any) -> Link:
    """Return a link to `record_decisions` with one decision; a person adds the name, and what ``given`` leaves open."""
    return Link(text, launch_links.decide(vod_id, action, dry_run=False, **given))


def clear_others(text: str, douban_id: int, keeper: int) -> Link:
    """Return a link to the batch that clears a subject's id from all its videos but ``keeper``; first it only shows."""
    return _batch(text, keeper, action=DecisionAction.clear_id.value, duplicates_of=douban_id, except_vod_ids=[keeper])


def ignore_others(text: str, others: Sequence[int], keeper: int) -> Link:
    """Return a link to the batch that ignores the first `BATCH` of ``others``; first it only shows."""
    return _batch(text, keeper, action=DecisionAction.ignore.value, vod_ids=list(others[:BATCH]))


def _batch(text: str, keeper: int, **given: Any) -> Link:
    config = {"reviewer": "", "note": f"与影片 {keeper} 重复", "dry_run": True, **given}
    return Link(text, launch_path("record_batch_decisions", op_config("select_and_record", config)))


def take_back(text: str, batch_id: str) -> Link:
    """Return a link to `revert_changes` for a whole batch; first it only shows."""
    return Link(text, launch_links.take_back(batch_id=batch_id))


def history(text: str, vod_id: int) -> Link:
    """Return a link to `video_history` of a video."""
    return Link(text, launch_links.history(vod_id))


def run(run_id: str) -> Link | str:
    """Return a link to a run, empty for none."""
    return Link(run_id[:8], f"/runs/{quote(run_id, safe='')}") if run_id else ""


def douban_search(text: str, title: str) -> Link:
    """Return a link to Douban's own search for a title, as the pipeline searches it."""
    sought = quote(clean_title(title), safe="")
    return Link(text, f"https://search.douban.com/movie/subject_search?search_text={sought}&cat=1002")
