"""What stands against a row: what is known of its video, its candidates and its locks. Functions of what was read
before; each says why in a Chinese sentence, with the remedy.
"""

from __future__ import annotations

from typing import Any

from douban_pipeline.douban.decisions.effects import effect_of
from douban_pipeline.douban.decisions.refusals import decision_refusal
from douban_pipeline.douban.review.recording.rows import Row
from douban_pipeline.douban.review.recording.standing import Named, Standing
from douban_pipeline.douban.review.recording.wishes import Wish
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import (
    FROM_CANDIDATES,
    LINKING,
    PERSON,
    Decision,
    about_current_id,
    locks_id,
)
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline.douban.store.videos import GONE, fingerprint

_SHOWN_CANDIDATES = 10


def why_no_video(wish: Wish, standing: Standing) -> str:
    """Return why nothing can be decided about the video, empty if it can."""
    row, state = standing.rows.get(wish.vod_id), standing.states.get(wish.vod_id)
    if row is None:
        return "没有这部影片，请把示例换成真实的 vod_id" if state is None else f"{GONE}，请去掉这一条"
    if row.get("vod_recycle_time"):
        return "影片在 CMS 的回收站里，请先在 CMS 中恢复它，或去掉这一条"
    if state is None:
        return "影片刚加入 CMS，流水线还没有收录，请过几分钟再试"
    return ""


def subject_of(wish: Wish, standing: Standing) -> tuple[int, str]:
    """Return the subject that a row comes to, 0 for none, and why it cannot be told."""
    if wish.action not in FROM_CANDIDATES:
        return wish.douban_id, ""
    candidates = standing.candidates.get(wish.vod_id, [])
    if not candidates:
        return wish.douban_id, "没有候选条目，请改用 set_id"
    if wish.action is DecisionAction.confirm_top1:
        return candidates[0].douban_id, ""
    if wish.rank:
        by_rank = {candidate.rank: candidate for candidate in candidates}
        found = by_rank.get(wish.rank)
        if found is None:
            return wish.douban_id, f"没有第 {wish.rank} 个候选；{_told(candidates)}"
        if wish.douban_id not in (0, found.douban_id):
            return (
                wish.douban_id,
                f"第 {wish.rank} 个候选不是 {wish.douban_id}，请只填 rank 或 douban_id；{_told(candidates)}",
            )
        return found.douban_id, ""
    if wish.douban_id not in {candidate.douban_id for candidate in candidates}:
        return wish.douban_id, f"条目 {wish.douban_id} 不在候选中，要用它请改用 set_id；{_told(candidates)}"
    return wish.douban_id, ""


def _told(candidates: list[Named]) -> str:
    told = [f"{each.rank}. {each.douban_id}《{each.title}》（{each.year or '?'}）" for each in candidates]
    more = f" 等 {len(told)} 个" if len(told) > _SHOWN_CANDIDATES else ""
    return f"现有候选：{'、'.join(told[:_SHOWN_CANDIDATES])}{more}"


def standing_id(wish: Wish, standing: Standing, link: Decision | None, services: Services) -> int:
    """Return the id that a decision holds for alone, 0 where it is about none; ``link`` is carried out before it."""
    if not about_current_id(wish.action, wish.lock):
        return 0
    _, state = _after(wish, standing, link, services)
    return int(state["vod_douban_id"])


def why_stale(wish: Wish, douban_id: int, standing: Standing) -> str:
    """Return why the reviewer looked at something else than what stands now, empty if not."""
    if wish.action not in LINKING:
        return ""
    verdict = standing.verdicts.get(wish.vod_id)
    newest = verdict["verdict_id"] if verdict is not None else 0
    if wish.verdict_id and wish.verdict_id != newest:
        return f"候选已过时：填写的判定是 {wish.verdict_id}，最新的是 {newest or '（无）'}，请按最新的审核单重新决定"
    state = standing.states[wish.vod_id]
    by_person = (state["douban_review_status"], state["douban_id_source"]) == (ReviewStatus.CONFIRMED, PERSON)
    if wish.verdict_id and by_person and state["vod_douban_id"] != douban_id:
        # A sheet that was printed before somebody else decided: its verdict is still the newest.
        told = f"候选已过时：审核员已把影片关联到 {state['vod_douban_id']}"
        return f"{told}，要改为 {douban_id} 请把 verdict_id 填 0 重新决定"
    if verdict is None or not (wish.verdict_id or wish.action in FROM_CANDIDATES):
        return ""
    if verdict["fingerprint"] and verdict["fingerprint"] != fingerprint(standing.rows[wish.vod_id]):
        return "候选已过时：影片资料在判定之后改变过，请等重新判定（或用 rematch）后再决定，或核对后改用 set_id"
    return ""


def is_so_already(wish: Wish, douban_id: int, standing: Standing) -> bool:
    """Return whether what is asked for stands already, and a person said so where that matters."""
    row, state = standing.rows[wish.vod_id], standing.states[wish.vod_id]
    action, status = wish.action, state["douban_review_status"]
    lock_stands = state["douban_id_locked"] or not locks_id(action, wish.lock)
    ids = {row["vod_douban_id"], state["vod_douban_id"]}
    bound = wish.vod_id in standing.chosen
    if action in LINKING:
        by_person = status == ReviewStatus.CONFIRMED and state["douban_id_source"] == PERSON
        return ids == {douban_id} and by_person and lock_stands
    if action is DecisionAction.clear_id:
        return ids == {0} and status == ReviewStatus.NOT_FOUND and lock_stands and not bound
    if action is DecisionAction.ignore:
        for_ever = not wish.days and state["douban_ignore_until"] is None
        return status == ReviewStatus.IGNORED and for_ever and lock_stands
    if action is DecisionAction.lock_id:
        return bool(state["douban_id_locked"])
    if action is DecisionAction.unlock_id:
        return not state["douban_id_locked"] and not bound
    if action is DecisionAction.lock_intro:
        return bool(state["intro_locked"]) and wish.vod_id not in standing.told
    return action is DecisionAction.unlock_intro and not state["intro_locked"]


def why_not_now(row: Row, standing: Standing, link: Decision | None, services: Services) -> str:
    """Return why it could not be carried out as things stand, empty if it could.

    The rules are those of carrying out, so that a reviewer hears of them at once.

    Args:
        row: The row.
        standing: What stands.
        link: What is decided of the video's link and carried out before, if anything is.
        services: Settings and time.
    """
    cms, state = _after(row.wish, standing, link, services)
    why = decision_refusal(as_decision(row), cms, state, services.settings) or ""
    if not why and row.wish.action is DecisionAction.lock_id and not state["vod_douban_id"]:
        return "影片没有豆瓣 ID，请先用 confirm_top1、choose 或 set_id 指定"
    return why


def _after(
    wish: Wish, standing: Standing, link: Decision | None, services: Services
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the video's CMS row and our state as ``link`` leaves them."""
    cms, state = dict(standing.rows[wish.vod_id]), dict(standing.states[wish.vod_id])
    if link is None:
        return cms, state
    effect = effect_of(link, cms, state, services.clock.now())
    return {**cms, **effect.new}, {**state, **effect.state}


def as_decision(row: Row) -> Decision:
    """Return a row as the decision it is to become; when its facts change it is another question."""
    wish = row.wish
    return Decision(wish.vod_id, wish.action, row.douban_id, days=wish.days, lock=wish.lock, note=wish.note)
