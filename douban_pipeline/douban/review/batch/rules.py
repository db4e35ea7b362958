"""Rules on which videos a batch decision may change. Pure functions from a video to the reason to leave it out.

A person who decides about a single video has looked at it. Nobody looks at each of a few hundred videos. So a batch
confirms only candidates without any doubt, and keeps what people decided or locked individually.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from douban_pipeline.douban.decisions.refusals import changes_id
from douban_pipeline.douban.review.worklist.order import ConfirmLines
from douban_pipeline.douban.store.decisions import (
    FROM_CANDIDATES,
    LINKING,
    Decision,
)
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS
from douban_pipeline.matching import SENTENCES

UNLOCKING: Mapping[DecisionAction, str] = {
    DecisionAction.unlock_id: "豆瓣 ID",
    DecisionAction.unlock_intro: "简介",
}
"""Actions that remove a protection, and what they unlock; in bulk they need an explicit confirmation."""

_OVER_A_CHOICE = LINKING | {DecisionAction.clear_id, DecisionAction.rematch}
"""Actions that discard the subject that a person chose."""


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """The decision that is recorded about each of the videos."""

    action: DecisionAction
    douban_id: int = 0
    rank: int = 0
    days: int = 0
    lock: bool = False
    accept_conflicts: bool = False
    override_cms_lock: bool = False
    i_am_sure: bool = False

    def about(self, vod_id: int) -> Decision:
        """Return it as a decision about one video."""
        return Decision(
            vod_id,
            self.action,
            self.douban_id,
            self.rank,
            self.days,
            self.lock,
            self.accept_conflicts,
            self.override_cms_lock,
        )

    @property
    def unlocks(self) -> bool:
        """Whether it removes a lock."""
        return self.action in UNLOCKING


@dataclass(frozen=True, slots=True)
class TopCandidate:
    """The best candidate of the newest verdict, with the objections to it, as sentences by code."""

    douban_id: int
    title: str
    year: int | None
    score: float
    objections: Mapping[str, str]
    fetched: bool


@dataclass(frozen=True, slots=True)
class BatchVideo:
    """Facts about a video that decide whether a batch may change it.

    Attributes:
        douban_id: The id in the CMS.
        verdict_id: Its newest verdict, 0 for none.
        lead: Lead of that verdict; None without a rival.
        stale: Whether the video was changed since that verdict.
        pending: Decisions about it that are not applied yet.
        chosen: The subject that a person chose for it, 0 for none.
        reverted: Subjects whose link to it people reverted.
    """

    vod_id: int
    douban_id: int
    id_locked: bool
    intro_locked: bool
    verdict_id: int = 0
    lead: float | None = None
    stale: bool = False
    best: TopCandidate | None = None
    pending: Sequence[Decision] = ()
    chosen: int = 0
    reverted: Collection[int] = ()


def target_of(batch: BatchDecision, best: TopCandidate | None) -> int:
    """Return the subject that a video would get; 0 if the action gives it none."""
    if batch.action in FROM_CANDIDATES:
        return best.douban_id if best else 0
    return batch.douban_id if batch.action in LINKING else 0


def batch_refusal(batch: BatchDecision, video: BatchVideo, lines: ConfirmLines) -> str | None:
    """Return why a batch leaves a video out, in Chinese; None if it does not."""
    return (
        (_candidate_refusal(batch, video, lines) if batch.action in FROM_CANDIDATES else None)
        or _lock_refusal(batch, video)
        or _decision_refusal(batch, video)
    )


def _candidate_refusal(batch: BatchDecision, video: BatchVideo, lines: ConfirmLines) -> str | None:
    best = video.best
    if best is None:
        return "没有候选"
    if video.stale:
        return "判定之后影片资料已改变，等待重新判定"
    if batch.rank not in (0, 1) or batch.douban_id not in (0, best.douban_id):
        return "所选的不是首选候选，批量时只能选首选"
    if best.score < lines.confirm:
        return f"首选得分 {best.score:.1f} 低于 {lines.confirm:g}"
    if best.objections:
        return "首选有冲突：" + "；".join(text or SENTENCES.get(code, code) for code, text in best.objections.items())
    if not best.fetched:
        return "首选只见于搜索结果，没有取过详情"
    if video.lead is not None and video.lead < lines.lead:
        return f"首选只领先 {video.lead:.1f}，低于 {lines.lead:g}"
    if best.douban_id in video.reverted:
        return f"首选 {best.douban_id} 曾被人工撤销，请逐部决定"
    return None


def _lock_refusal(batch: BatchDecision, video: BatchVideo) -> str | None:
    if batch.action is DecisionAction.unlock_id and not video.id_locked:
        return "豆瓣 ID 本来就没有锁定"
    if batch.action is DecisionAction.unlock_intro and not video.intro_locked:
        return "简介本来就没有锁定"
    if not video.id_locked or not changes_id(batch.action, target_of(batch, video.best), current=video.douban_id):
        return None
    locked = f"豆瓣 ID 已锁定为 {video.douban_id}"
    if batch.action is not DecisionAction.replace_and_lock:
        return f"{locked}，请先用 unlock_id 解锁"
    return None if batch.i_am_sure else f"{locked}；确实要替换它，请设 i_am_sure: true"


def _decision_refusal(batch: BatchDecision, video: BatchVideo) -> str | None:
    """Return the refusal if a batch would replace an individual decision; an equal decision is harmless."""
    target = target_of(batch, video.best)
    if batch.action in _OVER_A_CHOICE and video.chosen not in (0, target) and not batch.i_am_sure:
        return f"审核员已选定 {video.chosen}；确实要改，请设 i_am_sure: true"
    mine = replace(batch.about(video.vod_id), rank=0)
    mine = replace(mine, douban_id=video.douban_id if mine.about_current_id else target)
    for pending in video.pending:
        if pending.identity != mine.identity and mine.contradicts(pending):
            return f"已有等待执行的决定：{ACTIONS[pending.action]}（{pending.reviewer}）"
    return None
