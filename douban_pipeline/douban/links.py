"""Links of the Douban system: launchpads filled in to decide, to revert or to ask what happened, runs, Douban's search.

Nothing happens until a person signs and launches. What a link holds is ours, never outside text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from douban_pipeline.core.ui.launchpad_links import Launchpad, op_config, row
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.matching import clean_title

LOCATION = "__repository__@douban_pipeline"
"""Repository and code location as `workspace.yaml` names them; where a run names another one, that is taken."""

BATCH = 100
"""Videos that `record_batch_decisions` takes at once unless it is given another number, and that fit into a link."""

IGNORED_DAYS = 180
"""Proposed where a video is ignored because nothing was found: Douban may well know it by then."""


def decide(vod_id: int, action: DecisionAction, *, dry_run: bool, **given: Any) -> Launchpad:
    """Return `record_decisions` with one decision; ``given`` is what else its row says."""
    decisions = [row(vod_id=vod_id, action=action.value, **given)]
    config = {"reviewer": "", "note": "", "dry_run": dry_run, "decisions": decisions}
    return Launchpad("record_decisions", op_config("store_decisions", config))


def clear_others(douban_id: int, keeper: int) -> Launchpad:
    """Return the batch that clears a subject's id from all its videos but ``keeper``; a dry run first."""
    return _batch(keeper, action=DecisionAction.clear_id.value, duplicates_of=douban_id, except_vod_ids=[keeper])


def ignore_others(others: Sequence[int], keeper: int) -> Launchpad:
    """Return the batch that ignores the first `BATCH` of ``others``; a dry run first."""
    return _batch(keeper, action=DecisionAction.ignore.value, vod_ids=list(others[:BATCH]))


def _batch(keeper: int, **given: Any) -> Launchpad:
    config = {"reviewer": "", "note": f"与影片 {keeper} 重复", "dry_run": True, **given}
    return Launchpad("record_batch_decisions", op_config("select_and_record", config))


def batch(action: DecisionAction, vod_ids: Sequence[int], **given: Any) -> Launchpad:
    """Return the batch that decides the same about videos; a dry run first."""
    config = {"reviewer": "", "note": "", "dry_run": True, "action": action.value, **given, "vod_ids": list(vod_ids)}
    return Launchpad("record_batch_decisions", op_config("select_and_record", config))


def match_now(vod_ids: Sequence[int]) -> Launchpad:
    """Return `queue_matches` for videos; a dry run first."""
    config = {"reviewer": "", "dry_run": True, "vod_ids": list(vod_ids)}
    return Launchpad("queue_matches", op_config("queue", config))


def settle_duplicates(douban_ids: Sequence[int]) -> Launchpad:
    """Return `settle_duplicates` for the groups of subjects; a dry run first."""
    config = {"reviewer": "", "note": "", "dry_run": True, "keeper": "best_match", "douban_ids": list(douban_ids)}
    return Launchpad("settle_duplicates", op_config("settle", config))


def rewrite_intros(vod_ids: Sequence[int]) -> Launchpad:
    """Return `redo_intros` for videos; a dry run first."""
    config = {"reviewer": "", "note": "", "dry_run": True, "vod_ids": list(vod_ids)}
    return Launchpad("redo_intros", op_config("rewrite", config))


def revert(**chosen: Any) -> Launchpad:
    """Return `revert_changes` for what is ``chosen``; a dry run unless that says otherwise."""
    config = {"operator": "", "reason": "", "dry_run": True, **chosen}
    return Launchpad("revert_changes", op_config("take_back", config))


def history(vod_id: int) -> Launchpad:
    """Return `video_history` of a video."""
    return Launchpad("video_history", op_config("tell_history", {"vod_ids": [vod_id]}))


def run_path(run_id: str) -> str:
    """Return the path of a run's page in Dagster's UI."""
    return f"/runs/{quote(run_id, safe='')}"


def searched(title: str) -> str:
    """Return what the pipeline searches for a title."""
    return clean_title(title)


def douban_search(title: str) -> str:
    """Return the address of Douban's own search for a title, as the pipeline searches it."""
    return douban_search_of(quote(searched(title), safe=""))


def douban_search_of(words: str) -> str:
    """Return the address of Douban's own search for words that are escaped already."""
    return f"https://search.douban.com/movie/subject_search?search_text={words}&cat=1002"
