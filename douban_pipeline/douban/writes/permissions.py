"""What forbids a write that no person decided: our locks, being ignored, and the CMS's own lock.

The conditions are part of the UPDATE itself, so that nothing can change between the look and the write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, true

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables

SYNOPSIS_COLUMNS = frozenset({"vod_content", "vod_blurb"})

LOCKED_IN_CMS = "影片已在 CMS 中锁定（vod_lock）"


def conditions(
    cms: Cms,
    tables: OwnTables,
    vod_id: int | ColumnElement[int],
    new: Mapping[str, Any],
    *,
    restores: bool,
    respect_vod_lock: bool,
) -> list[ColumnElement[bool]]:
    """Return the conditions under which automation may write the columns ``new`` of a video.

    Args:
        cms: The CMS's tables.
        tables: Our tables.
        vod_id: The video, or a placeholder for it.
        new: The columns and their values, or placeholders for them.
        restores: Whether it puts back what a lock protects: then the lock must stand, else it must not.
        respect_vod_lock: Whether rows with ``vod_lock = 1`` are left alone.
    """
    video = tables.video
    forbidden: list[ColumnElement[bool]] = [video.c.douban_review_status == ReviewStatus.IGNORED]
    if "vod_douban_id" in new:
        locked = video.c.douban_id_locked == true()
        kept = and_(locked, video.c.vod_douban_id == new["vod_douban_id"])
        forbidden.append(~kept if restores else locked)
    if SYNOPSIS_COLUMNS & set(new):
        forbidden.append(video.c.intro_locked.is_not(True) if restores else video.c.intro_locked == true())
    allowed = [~exists().where(and_(video.c.vod_id == vod_id, each)).correlate(None) for each in forbidden]
    if respect_vod_lock:
        allowed.append(cms.vod.c.vod_lock == 0)
    return allowed


def still_seen(tables: OwnTables, vod_id: int | ColumnElement[int], seen: Mapping[str, Any]) -> ColumnElement[bool]:
    """Return the condition that our state row of a video still holds what was seen of it; see `conditions`."""
    video = tables.video
    alike = [video.c[name].is_(None) if value is None else video.c[name] == value for name, value in seen.items()]
    return exists().where(video.c.vod_id == vod_id, *alike).correlate(None)


def why_not(
    row: Mapping[Any, Any],
    state: Mapping[Any, Any] | None,
    new: Mapping[str, Any],
    *,
    restores: bool,
    respect_vod_lock: bool,
) -> str:
    """Return why automation may not write the columns ``new`` of a video, empty if it may; see `conditions`."""
    if respect_vod_lock and row["vod_lock"]:
        return LOCKED_IN_CMS
    if state is None:
        return ""
    if state["douban_review_status"] == ReviewStatus.IGNORED:
        return "影片已被忽略"
    if "vod_douban_id" in new:
        if restores and not (state["douban_id_locked"] and state["vod_douban_id"] == new["vod_douban_id"]):
            return "豆瓣 ID 已不再这样锁定"
        if state["douban_id_locked"] and not restores:
            return "豆瓣 ID 已锁定"
    if SYNOPSIS_COLUMNS & set(new) and bool(state["intro_locked"]) is not restores:
        return "简介已锁定" if state["intro_locked"] else "简介已不再锁定"
    return ""
