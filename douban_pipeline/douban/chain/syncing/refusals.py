"""Why a decision is not carried out after all: a rule against what stands at the moment of writing, and its remedy.

What was recorded was sound when it was recorded; here the same is asked of the video as it is by now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from douban_pipeline.douban.chain.due.due_videos import works_on
from douban_pipeline.douban.chain.syncing.effects import target_of
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.decisions import LINKING, WORDS, about_current_id
from douban_pipeline.douban.store.states import DecisionAction, DecisionState, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline.douban.writes.permissions import LOCKED_IN_CMS

_CHANGED = "记录决定之后影片资料已改变（片名、别名、年份、地区、导演、主演或分类），请核对后重新决定"
_OVERRIDING = (DecisionAction.replace_and_lock,)
_ON_A_LINK = (DecisionAction.sync_now, DecisionAction.redo_intro)

INTROS_OFF = "AI 简介未开启：请设置 DOUBAN_PIPELINE_AI_INTROS=true 和 OPENROUTER_API_KEY"


def why_refused(
    decision: Mapping[Any, Any], row: Mapping[Any, Any], state: Mapping[Any, Any], settings: Settings
) -> str:
    """Return why a decision must not be carried out on a video as it stands, empty if it may.

    Args:
        decision: The decision's row.
        row: The CMS row.
        state: Our state row.
        settings: Which categories are worked on, and whether intros are.
    """
    action = DecisionAction(decision["action"])
    if action in LINKING and decision["fingerprint"] and decision["fingerprint"] != fingerprint(row):
        return _CHANGED
    return (
        _why_locked(decision, action, row, state)
        or _why_moved(decision, action, row, state)
        or _why_no_link(action, state, settings)
        or _why_no_sync(action, row, settings)
    )


def _why_locked(
    decision: Mapping[Any, Any], action: DecisionAction, row: Mapping[Any, Any], state: Mapping[Any, Any]
) -> str:
    if not state["douban_id_locked"] or action in _OVERRIDING:
        return ""
    locked = state["vod_douban_id"]
    told = f"豆瓣 ID {locked} 已锁定" if locked else "豆瓣 ID 已锁定为空"
    if action is DecisionAction.rematch and state["douban_review_status"] != ReviewStatus.IGNORED:
        return f"{told}，不会重新匹配，请先用 unlock_id 解锁"
    if action is DecisionAction.clear_id and locked:
        return f"{told}，请先用 unlock_id 解锁"
    if action in LINKING and target_of(decision, row) != locked:
        return f"{told}，要换成 {decision['douban_id']} 请用 replace_and_lock，或先用 unlock_id 解锁"
    return ""


def _why_moved(
    decision: Mapping[Any, Any], action: DecisionAction, row: Mapping[Any, Any], state: Mapping[Any, Any]
) -> str:
    """Say that somebody else changed the id, where the decision is about the one that stood."""
    if not about_current_id(action, decision["lock"]):
        return ""
    stands, known, seen = row["vod_douban_id"], state["vod_douban_id"], decision["douban_id"]
    # Releases before kept no id with such a decision.
    if seen and seen != known:
        return f"记录决定之后豆瓣 ID 已由 {seen} 变为 {known or '空'}，请核对后重新决定"
    if stands == known or state["douban_id_locked"]:
        return ""
    return f"CMS 中的豆瓣 ID 已由 {known} 变为 {stands}，请核对后用 set_id 指定"


def _why_no_link(action: DecisionAction, state: Mapping[Any, Any], settings: Settings) -> str:
    if action not in _ON_A_LINK:
        return ""
    if action is DecisionAction.redo_intro and not settings.ai_intros:
        return INTROS_OFF
    if state["douban_review_status"] != ReviewStatus.CONFIRMED or not state["vod_douban_id"]:
        return "影片没有已确认的豆瓣关联，请先用 confirm_top1、choose 或 set_id 指定"
    if not works_on(settings, state["type_id"]):
        remedy = "请先调整 DOUBAN_PIPELINE_INCLUDED_TYPE_IDS 或 DOUBAN_PIPELINE_EXCLUDED_TYPE_IDS"
        return f"分类 {state['type_id']} 不在处理范围内，{remedy}"
    return ""


def _why_no_sync(action: DecisionAction, row: Mapping[Any, Any], settings: Settings) -> str:
    """Say before anything is written that the sync would not be: it locks the id besides, if so wanted."""
    if action is DecisionAction.sync_now and settings.respect_vod_lock and row["vod_lock"]:
        return f"{LOCKED_IN_CMS}，请先在 CMS 中解锁"
    return ""


def why_without_link(connection: Connection, tables: OwnTables, decision: Mapping[Any, Any]) -> str:
    """Return why a decision falls with the one on the link that was made with it, empty if it does not.

    Who names a subject and locks it in one go does not mean to lock the id that stood before.
    """
    if decision["action"] not in (DecisionAction.lock_id, *_ON_A_LINK) or not decision["batch_id"]:
        return ""
    other = tables.decision
    query = (
        select(other.c.action)
        .where(
            other.c.vod_id == decision["vod_id"],
            other.c.batch_id == decision["batch_id"],
            other.c.action.in_(LINKING),
            other.c.state == DecisionState.REFUSED,
        )
        .limit(1)
    )
    action = connection.execute(query).scalar()
    return f"同时记录的“{WORDS[DecisionAction(action)]}”未能执行" if action else ""
