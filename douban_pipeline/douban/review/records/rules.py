"""Rules on why a decision cannot be recorded: invalid by itself, or in conflict with the state of its video.

Pure functions of data that was read before. Each refusal is a Chinese sentence with the remedy, or None.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from douban_pipeline.douban.decisions.effects import effect_of
from douban_pipeline.douban.decisions.refusals import decision_refusal
from douban_pipeline.douban.review.records.snapshot import LARGEST_ID, CandidateName, LibrarySnapshot
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.sources.subject_urls import SMALLEST_ID
from douban_pipeline.douban.store.decisions import FROM_CANDIDATES, NAMING, UNLOCKING, Decision, may_lock
from douban_pipeline.douban.store.states import BY_PEOPLE, DecisionAction, ReviewStatus
from douban_pipeline.douban.store.videos import changed_since
from douban_pipeline.douban.writes.refusals import Reason, unlisted_refusal

MOST_NOTE = 500
"""Most characters of a note; a longer one is refused, never cut."""

MOST_REVIEWER = 64
"""Most characters of a reviewer's name."""

MOST_DAYS = 36_500
"""Most days to ignore a video: a century; 0 means for ever."""

_SHOWN_CANDIDATES = 10


def faults(decision: Decision, *, ai_intros: bool) -> Iterator[str]:
    """Yield the problems of a decision by itself: fields that are missing, unused by its action or out of range.

    Args:
        decision: The decision as entered.
        ai_intros: Whether writing of intros is enabled.
    """
    action = decision.action
    yield from _subject_faults(decision)
    if decision.rank and action is not DecisionAction.choose:
        yield f"{action} 不使用 rank，请改为 0，或改用 choose"
    elif decision.rank < 0:
        yield f"rank 从 1 开始，现为 {decision.rank}"
    if decision.days and action is not DecisionAction.ignore:
        yield f"{action} 不使用 days，请改为 0"
    elif not 0 <= decision.days <= MOST_DAYS:
        yield f"days 需在 0 至 {MOST_DAYS} 之间（0 为永久忽略），现为 {decision.days}"
    if decision.lock and not may_lock(action):
        yield f"{action} 不能同时锁定，请把 lock 改为 false"
    if decision.verdict_id < 0:
        yield f"verdict_id 不能为负数，现为 {decision.verdict_id}；不清楚时请填 0"
    if len(decision.note) > MOST_NOTE:
        yield f"note 最多 {MOST_NOTE} 字，现为 {len(decision.note)} 字，请缩短"
    if action is DecisionAction.redo_intro and not ai_intros:
        yield "AI 简介未开启：请先设置 DOUBAN_PIPELINE_AI_INTROS=true 和 OPENROUTER_API_KEY"


def bulk_unlock_refusal(decisions: Sequence[Decision], reviewer: str, allowed: Collection[str]) -> str | None:
    """Return why the unlocking decisions of a launch are refused, None if they may be recorded.

    Args:
        decisions: All decisions of the launch.
        reviewer: Who launched it.
        allowed: Reviewers who may unlock many videos at once.
    """
    videos = {decision.vod_id for decision in decisions if decision.action in UNLOCKING}
    if len(videos) < 2 or reviewer.casefold() in {name.casefold() for name in allowed}:
        return None
    return (
        f"一次解锁 {len(videos)} 部影片是批量解锁，{reviewer} 没有这个权限（DOUBAN_PIPELINE_BULK_UNLOCKERS）；"
        "请由有权限的人来做，或每次只解锁一部"
    )


def _subject_faults(decision: Decision) -> Iterator[str]:
    action, douban_id = decision.action, decision.douban_id
    if action in NAMING:
        if not SMALLEST_ID <= douban_id <= LARGEST_ID:
            yield f"{action} 需要 douban_id（{SMALLEST_ID} 至 {LARGEST_ID}），现为 {douban_id}"
    elif action is DecisionAction.choose:
        if not decision.rank and not douban_id:
            yield "choose 需要 rank（第几个候选）或 douban_id（候选中的条目），请填写其一"
    elif douban_id:
        yield f"{action} 不使用 douban_id，请改为 0，或改用 set_id"


def video_refusal(decision: Decision, snapshot: LibrarySnapshot) -> str | None:
    """Return why nothing can be decided about the video; None if something can."""
    row, state = snapshot.rows.get(decision.vod_id), snapshot.states.get(decision.vod_id)
    if row is None and state is None:
        return "没有这部影片，请把示例换成真实的 vod_id"
    refusal = unlisted_refusal(row)
    if refusal is not None:
        recovery = "" if refusal.reason is Reason.GONE else "先在 CMS 中恢复它，或"
        return f"{refusal.sentence}，请{recovery}去掉这一条"
    if state is None:
        return "影片刚加入 CMS，流水线还没有收录，请过几分钟再试"
    return None


def subject_of(decision: Decision, snapshot: LibrarySnapshot) -> tuple[int, str | None]:
    """Return the subject of a decision, and why it has none: then the id is as entered."""
    written = decision.douban_id
    if decision.action not in FROM_CANDIDATES:
        return written, None
    candidates = snapshot.candidates.get(decision.vod_id, [])
    if not candidates:
        return written, "没有候选条目，请改用 set_id"
    if decision.action is DecisionAction.confirm_top1:
        return candidates[0].douban_id, None
    if decision.rank:
        by_rank = {candidate.rank: candidate for candidate in candidates}
        found = by_rank.get(decision.rank)
        if found is None:
            return written, f"没有第 {decision.rank} 个候选；{_listed(candidates)}"
        if written not in (0, found.douban_id):
            wrong = f"第 {decision.rank} 个候选不是 {written}，请只填 rank 或 douban_id"
            return written, f"{wrong}；{_listed(candidates)}"
        return found.douban_id, None
    if written not in {candidate.douban_id for candidate in candidates}:
        return written, f"条目 {written} 不在候选中，要用它请改用 set_id；{_listed(candidates)}"
    return written, None


def _listed(candidates: list[CandidateName]) -> str:
    names = [f"{each.rank}. {each.douban_id}《{each.title}》（{each.year or '?'}）" for each in candidates]
    more = f" 等 {len(names)} 个" if len(names) > _SHOWN_CANDIDATES else ""
    return f"现有候选：{'、'.join(names[:_SHOWN_CANDIDATES])}{more}"


def stale_refusal(decision: Decision, snapshot: LibrarySnapshot) -> str | None:
    """Return why the decision is outdated: the reviewer saw an older state. The decision has its resolved subject."""
    if not decision.linking:
        return None
    verdict = snapshot.verdicts.get(decision.vod_id)
    newest = verdict["verdict_id"] if verdict is not None else 0
    seen = decision.verdict_id
    if seen and seen != newest:
        return f"候选已过时：填写的判定是 {seen}，最新的是 {newest or '（无）'}，请按最新的审核单重新决定"
    state = snapshot.states[decision.vod_id]
    by_person = state["douban_review_status"] == ReviewStatus.CONFIRMED and state["douban_id_source"] in BY_PEOPLE
    if seen and by_person and state["vod_douban_id"] != decision.douban_id:
        # The sheet is older than another person's decision, though its verdict is still the newest.
        linked = f"候选已过时：审核员已把影片关联到 {state['vod_douban_id']}"
        return f"{linked}，要改为 {decision.douban_id} 请把 verdict_id 填 0 重新决定"
    if verdict is None or not (seen or decision.action in FROM_CANDIDATES):
        return None
    if changed_since(verdict["fingerprint"], snapshot.rows[decision.vod_id]):
        return "候选已过时：影片资料在判定之后改变过，请等重新判定（或用 rematch）后再决定，或核对后改用 set_id"
    return None


def is_already_so(decision: Decision, snapshot: LibrarySnapshot) -> bool:
    """Return whether the decision would change nothing; a link must also have been chosen by a person."""
    vod_id, action = decision.vod_id, decision.action
    row, state = snapshot.rows[vod_id], snapshot.states[vod_id]
    status = state["douban_review_status"]
    locked_as_asked = state["douban_id_locked"] or not decision.locks_id
    ids = {row["vod_douban_id"], state["vod_douban_id"]}
    bound = vod_id in snapshot.chosen
    if decision.linking:
        by_person = status == ReviewStatus.CONFIRMED and state["douban_id_source"] in BY_PEOPLE
        return ids == {decision.douban_id} and by_person and locked_as_asked
    if action is DecisionAction.clear_id:
        return ids == {0} and status == ReviewStatus.NOT_FOUND and locked_as_asked and not bound
    if action is DecisionAction.ignore:
        for_ever = not decision.days and state["douban_ignore_until"] is None
        return status == ReviewStatus.IGNORED and for_ever and locked_as_asked
    if action is DecisionAction.lock_id:
        return bool(state["douban_id_locked"])
    if action is DecisionAction.unlock_id:
        return not state["douban_id_locked"] and not bound
    if action is DecisionAction.lock_intro:
        return bool(state["intro_locked"]) and vod_id not in snapshot.intro_written
    return action is DecisionAction.unlock_intro and not state["intro_locked"]


def current_id(decision: Decision, snapshot: LibrarySnapshot, link: Decision | None, now: datetime) -> int:
    """Return the id that a decision is about, 0 if it is about none.

    Args:
        decision: The decision.
        snapshot: The state of its video.
        link: The decision about the video's link that is applied first, if there is one.
        now: The current time.
    """
    if not decision.about_current_id:
        return 0
    _, state = _after_link(decision.vod_id, snapshot, link, now)
    return int(state["vod_douban_id"])


def apply_refusal(
    decision: Decision, snapshot: LibrarySnapshot, link: Decision | None, settings: Settings, now: datetime
) -> str | None:
    """Return why a decision could not be applied in the current state; arguments as for `current_id`.

    The rules are those of applying, so that a reviewer learns of a refusal at once.
    """
    row, state = _after_link(decision.vod_id, snapshot, link, now)
    # Without the fingerprint: whether the video's facts change before it is applied is checked then.
    refusal = decision_refusal(replace(decision, fingerprint=""), row, state, settings)
    if not refusal and decision.action is DecisionAction.lock_id and not state["vod_douban_id"]:
        return "影片没有豆瓣 ID，请先用 confirm_top1、choose 或 set_id 指定"
    return refusal


def _after_link(
    vod_id: int, snapshot: LibrarySnapshot, link: Decision | None, now: datetime
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the video's CMS row and our state row as they are after ``link`` is applied."""
    row, state = dict(snapshot.rows[vod_id]), dict(snapshot.states[vod_id])
    if link is None:
        return row, state
    effect = effect_of(link, row, state, now)
    return {**row, **effect.new}, {**state, **effect.state}
