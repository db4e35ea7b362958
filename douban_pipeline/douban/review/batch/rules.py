"""What a decision about many videos at once may touch. Pure: one video in, the reason why it is left out comes out.

A person who decides about a single video has looked at it. Nobody looks at each of a few hundred, so that here only
what is beyond doubt is confirmed, and what people decided or locked one by one stands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from douban_pipeline.douban.review.reading.ordering import Lines
from douban_pipeline.douban.review.recording.wishes import identity
from douban_pipeline.douban.store.decisions import FROM_CANDIDATES, LINKING, about_current_id, contradict
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.douban.wording import ACTIONS
from douban_pipeline.matching import SENTENCES

UNLOCKING: Mapping[DecisionAction, str] = {
    DecisionAction.unlock_id: "豆瓣 ID",
    DecisionAction.unlock_intro: "简介",
}
"""Actions that undo what people protected, and what that is: in bulk only for those who say that they are sure."""

_OVER_A_CHOICE = LINKING | {DecisionAction.clear_id, DecisionAction.rematch}
"""Actions that give up the subject that a person chose."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is decided about each of the videos."""

    action: DecisionAction
    douban_id: int = 0
    rank: int = 0
    days: int = 0
    lock: bool = False
    accept_conflicts: bool = False
    i_am_sure: bool = False

    @property
    def unlocks(self) -> bool:
        """Whether it undoes a lock."""
        return self.action in UNLOCKING


@dataclass(frozen=True, slots=True)
class Best:
    """The best candidate of the newest verdict, and what speaks against it, in sentences by code."""

    douban_id: int
    title: str
    year: int | None
    score: float
    objections: Mapping[str, str]
    fetched: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """A decision that waits to be carried out; ``identity`` is as in `wishes`."""

    action: DecisionAction
    lock: bool
    identity: str
    reviewer: str


@dataclass(frozen=True, slots=True)
class Video:
    """What is known of a video when it is asked whether a batch may touch it.

    Attributes:
        douban_id: The id that stands.
        verdict_id: Its newest verdict, 0 for none.
        lead: Of that verdict; None without a rival.
        stale: The video was changed since that verdict.
        pending: Decisions about it that wait.
        chosen: The subject that a person chose for it, 0 for none.
        taken_back: Subjects whose link to it people took back.
    """

    vod_id: int
    douban_id: int
    id_locked: bool
    intro_locked: bool
    verdict_id: int = 0
    lead: float | None = None
    stale: bool = False
    best: Best | None = None
    pending: Sequence[Standing] = ()
    chosen: int = 0
    taken_back: Collection[int] = ()


def target_of(bulk: Bulk, best: Best | None) -> int:
    """Return the subject that a video would get; 0 where the action gives it none."""
    if bulk.action in FROM_CANDIDATES:
        return best.douban_id if best else 0
    return bulk.douban_id if bulk.action in LINKING else 0


def why_not(bulk: Bulk, video: Video, lines: Lines) -> str:
    """Return why a batch does not touch a video, in Chinese; empty if it does."""
    return (
        (_no_candidate(bulk, video, lines) if bulk.action in FROM_CANDIDATES else "")
        or _lock(bulk, video)
        or _decided(bulk, video)
    )


def _no_candidate(bulk: Bulk, video: Video, lines: Lines) -> str:
    best = video.best
    if best is None:
        return "没有候选"
    if video.stale:
        return "判定之后影片资料已改变，等待重新判定"
    if bulk.rank not in (0, 1) or bulk.douban_id not in (0, best.douban_id):
        return "所选的不是首选候选，批量时只能选首选"
    if best.score < lines.confirm:
        return f"首选得分 {best.score:.1f} 低于 {lines.confirm:g}"
    if best.objections:
        return "首选有冲突：" + "；".join(text or SENTENCES.get(code, code) for code, text in best.objections.items())
    if not best.fetched:
        return "首选只见于搜索结果，没有取过详情"
    if video.lead is not None and video.lead < lines.lead:
        return f"首选只领先 {video.lead:.1f}，低于 {lines.lead:g}"
    if best.douban_id in video.taken_back:
        return f"首选 {best.douban_id} 曾被人工撤销，请逐部决定"
    return ""


def _lock(bulk: Bulk, video: Video) -> str:
    if bulk.action is DecisionAction.unlock_id and not video.id_locked:
        return "豆瓣 ID 本来就没有锁定"
    if bulk.action is DecisionAction.unlock_intro and not video.intro_locked:
        return "简介本来就没有锁定"
    changes = bulk.action in LINKING or bulk.action is DecisionAction.clear_id
    if not changes or not video.id_locked or target_of(bulk, video.best) == video.douban_id:
        return ""
    locked = f"豆瓣 ID 已锁定为 {video.douban_id}"
    if bulk.action is not DecisionAction.replace_and_lock:
        return f"{locked}，请先用 unlock_id 解锁"
    return "" if bulk.i_am_sure else f"{locked}；确实要替换它，请设 i_am_sure: true"


def _decided(bulk: Bulk, video: Video) -> str:
    """Return the single decision that a batch would push aside; the same one is harmless."""
    target = target_of(bulk, video.best)
    if bulk.action in _OVER_A_CHOICE and video.chosen not in (0, target) and not bulk.i_am_sure:
        return f"审核员已选定 {video.chosen}；确实要改，请设 i_am_sure: true"
    mine = identity(
        video.vod_id,
        bulk.action,
        video.douban_id if about_current_id(bulk.action, bulk.lock) else target,
        lock=bulk.lock,
        days=bulk.days,
        accept_conflicts=bulk.accept_conflicts,
    )
    for standing in video.pending:
        if standing.identity != mine and contradict((standing.action, standing.lock), (bulk.action, bulk.lock)):
            return f"已有等待执行的决定：{ACTIONS[standing.action]}（{standing.reviewer}）"
    return ""
