"""Putting locked values back that were changed in the CMS, through the change log as every other write."""

from __future__ import annotations

from collections.abc import Iterable

from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.undo.drift import Drift, Kind
from douban_pipeline.douban.wording import DRIFT_LOOKS
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import RESTORE, Change

_NOTED_BY_INTAKE = "锁定的豆瓣 ID "
"""How the reason begins that is noted on a video whose locked id was changed; it is gone once the id is back."""

_NAMES = {"vod_douban_id": "豆瓣 ID", "vod_content": "简介", "vod_blurb": "简介摘要"}


def restore(change_log: ChangeLog, found: Iterable[Drift]) -> dict[tuple[int, str], str]:
    """Put locked values back that may be; return what became of each, by video and column.

    Once a run: what is changed again meanwhile is for the next one. Each write takes effect only where the value that
    was seen and the lock still stand.
    """
    by_video: dict[int, list[Drift]] = {}
    told: dict[tuple[int, str], str] = {}
    for drift in found:
        if drift.kind is not Kind.LOCKED:
            continue
        if drift.held:
            told[drift.vod_id, drift.column] = f"未恢复：{drift.held}"
        else:
            by_video.setdefault(drift.vod_id, []).append(drift)
    outcomes = change_log.write([_change(of_video) for of_video in by_video.values()])
    for outcome in outcomes:
        applied = outcome.state is ChangeState.APPLIED
        what = f"已恢复（变更 {outcome.change_id}）" if applied else f"未恢复：{outcome.reason}"
        told |= {(outcome.change.vod_id, column): what for column in outcome.change.new}
    return told


def _change(of_video: list[Drift]) -> Change:
    state = {}
    noted = of_video[0].state["douban_review_reason"].startswith(_NOTED_BY_INTAKE)
    if noted and any(drift.column == "vod_douban_id" for drift in of_video):
        state = {"douban_review_reason": ""}
    return Change(
        vod_id=of_video[0].vod_id,
        action=RESTORE,
        old={drift.column: drift.stands for drift in of_video},
        new={drift.column: drift.written for drift in of_video},
        state=state,
        reason="；".join(_reason(drift) for drift in of_video),
    )


def _reason(drift: Drift) -> str:
    stands = f"改为 {drift.stands}" if drift.column == "vod_douban_id" else "改动"
    by = f"由变更 {drift.change.change_id} 写入，" if drift.change is not None else ""
    return (
        f"锁定的{_NAMES[drift.column]}（{by}已锁定）在 CMS 中被{stands}，看来是{DRIFT_LOOKS[drift.looks]}；恢复锁定值"
    )
