"""Links of the Douban system: filled-in launchpads for decisions, reverts and histories; runs; Douban's search.

Nothing happens until a person adds a name and launches. A link's config is our own text, never outside text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from douban_pipeline.core.ui.launchpad_links import Launchpad, op_config, row, titled
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.matching import clean_title

LOCATION = "__repository__@douban_pipeline"
"""Repository and code location as named in `workspace.yaml`; if a run names another one, that is used."""

BATCH = 100
"""Default number of videos of `record_batch_decisions`, and most ids that fit into a link."""

IGNORED_DAYS = 180
"""Days proposed for ignoring a video for which nothing was found: Douban may have it by then."""


_SAID = {
    "reviewer": "你的名字，必填",
    "note": "原因，可不填",
    "reason": "原因，一句话",
    "dry_run": "true 只检查，false 才执行",
    "decisions": "每条决定一行",
    "action": "决定",
    "vod_ids": "这些影片",
    "except_vod_ids": "这些除外",
    "duplicates_of": "与此条目重复的",
    "douban_ids": "这些条目的重复组",
    "keeper": "留下哪一部",
    "change_ids": "这几条变更",
    "decision_ids": "这几条决定写入的一切",
    "batch_id": "一个批次",
}
"""Short comments on fields in links: a link holds 7,500 characters, and a Chinese character takes nine."""


def decide(vod_id: int, action: DecisionAction, *, dry_run: bool, title: str = "", **given: Any) -> Launchpad:
    """Return `record_decisions` with one decision; ``given`` are further fields of its row, ``title`` its comment."""
    decisions = [titled(row(vod_id=vod_id, action=action.value, **given), title)]
    config = {"reviewer": "", "note": "", "dry_run": dry_run, "decisions": decisions}
    return Launchpad("record_decisions", op_config("store_decisions", config, _SAID))


def clear_others(douban_id: int, keeper: int) -> Launchpad:
    """Return the batch that clears a subject's id from all its videos except ``keeper``; a dry run first."""
    return _batch(keeper, action=DecisionAction.clear_id.value, duplicates_of=douban_id, except_vod_ids=[keeper])


def ignore_others(others: Sequence[int], keeper: int) -> Launchpad:
    """Return the batch that ignores the first `BATCH` of ``others``; a dry run first."""
    return _batch(keeper, action=DecisionAction.ignore.value, vod_ids=list(others[:BATCH]))


def _batch(keeper: int, **given: Any) -> Launchpad:
    config = {"reviewer": "", "note": f"与影片 {keeper} 重复", "dry_run": True, **given}
    return Launchpad("record_batch_decisions", op_config("select_and_record", config, _SAID))


def batch(action: DecisionAction, vod_ids: Sequence[int], **given: Any) -> Launchpad:
    """Return the batch that records one decision about videos; a dry run first."""
    config = {"reviewer": "", "note": "", "dry_run": True, "action": action.value, **given, "vod_ids": list(vod_ids)}
    return Launchpad("record_batch_decisions", op_config("select_and_record", config, _SAID))


def match_now(vod_ids: Sequence[int]) -> Launchpad:
    """Return `queue_matches` for videos; a dry run first."""
    config = {"reviewer": "", "dry_run": True, "vod_ids": list(vod_ids)}
    return Launchpad("queue_matches", op_config("queue", config, _SAID))


def settle_duplicates(douban_ids: Sequence[int]) -> Launchpad:
    """Return `settle_duplicates` for the groups of subjects; a dry run first."""
    config = {"reviewer": "", "note": "", "dry_run": True, "keeper": "best_match", "douban_ids": list(douban_ids)}
    return Launchpad("settle_duplicates", op_config("settle", config, _SAID))


def rewrite_intros(vod_ids: Sequence[int]) -> Launchpad:
    """Return `redo_intros` for videos; a dry run first."""
    config = {"reviewer": "", "note": "", "dry_run": True, "vod_ids": list(vod_ids)}
    return Launchpad("redo_intros", op_config("rewrite", config, _SAID))


UNDONE = "看错了，撤销"
"""Reason that links fill in for reverting a person's own decision."""


def revert(**chosen: Any) -> Launchpad:
    """Return `revert_changes` for the selection ``chosen``; a dry run unless it says otherwise."""
    config = {"reviewer": "", "reason": "", "dry_run": True, **chosen}
    return Launchpad("revert_changes", op_config("revert_writes", config, _SAID))


def history(vod_id: int) -> Launchpad:
    """Return `video_history` of a video."""
    return Launchpad("video_history", op_config("show_history", {"vod_ids": [vod_id]}))


def run_path(run_id: str) -> str:
    """Return the path of a run's page in Dagster's UI."""
    return f"/runs/{quote(run_id, safe='')}"


def searched(title: str) -> str:
    """Return the words that the pipeline searches for a title."""
    return clean_title(title)


def douban_search_of(words: str) -> str:
    """Return the address of Douban's own search for words that are already escaped."""
    return f"https://search.douban.com/movie/subject_search?search_text={words}&cat=1002"
