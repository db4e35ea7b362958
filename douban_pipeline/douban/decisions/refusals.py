"""Why a decision may not be applied. Asked when it is recorded, and again of the video as it is when it is applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from douban_pipeline.douban.decisions.effects import target_of
from douban_pipeline.douban.match_inputs import profile_of, subject_facts
from douban_pipeline.douban.pace import SUBJECT_CACHE_AGE
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.decisions import LINKING, WRITING, Decision
from douban_pipeline.douban.store.states import BY_MATCH, DecisionAction, DecisionState, ReviewStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.videos import changed_since
from douban_pipeline.douban.wording import ACTIONS
from douban_pipeline.douban.writes.refusals import OVERRIDE_CMS_LOCK, SENTENCES, Reason, cms_lock_refusal
from douban_pipeline.matching import compare
from douban_pipeline.matching.site_videos import video_facts

_CHANGED = "记录决定之后影片资料已改变（片名、别名、年份、地区、导演、主演或分类），请核对后重新决定"
_OVERRIDING = (DecisionAction.replace_and_lock,)
_ON_A_LINK = (DecisionAction.sync_now, DecisionAction.redo_intro)

INTROS_OFF = "AI 简介未开启：请设置 DOUBAN_PIPELINE_AI_INTROS=true 和 OPENROUTER_API_KEY"


def decision_refusal(
    decision: Decision, row: Mapping[Any, Any], state: Mapping[Any, Any], settings: Settings
) -> str | None:
    """Return why a decision must not be applied to a video as it is, None if it may.

    Args:
        decision: The decision.
        row: The CMS row.
        state: Our state row.
        settings: Which categories are worked on, and whether intros are.
    """
    if decision.linking and changed_since(decision.fingerprint, row):
        return _CHANGED
    return (
        _lock_refusal(decision, row, state)
        or _typed_id_refusal(decision, row, state)
        or _changed_id_refusal(decision, row, state)
        or _no_link_refusal(decision.action, row, state, settings)
        or _cms_lock_refusal(decision, row, settings)
    )


def _lock_refusal(decision: Decision, row: Mapping[Any, Any], state: Mapping[Any, Any]) -> str | None:
    action = decision.action
    if not state["douban_id_locked"] or action in _OVERRIDING:
        return None
    locked = state["vod_douban_id"]
    locked_id = f"豆瓣 ID {locked} 已锁定" if locked else "豆瓣 ID 已锁定为空"
    if action is DecisionAction.rematch and state["douban_review_status"] != ReviewStatus.IGNORED:
        return f"{locked_id}，不会重新匹配，请先用 unlock_id 解锁"
    if not changes_id(action, target_of(decision, row), current=locked):
        return None
    if not decision.linking:
        return f"{locked_id}，请先用 unlock_id 解锁"
    return f"{locked_id}，要换成 {decision.douban_id} 请用 replace_and_lock，或先用 unlock_id 解锁"


def changes_id(action: DecisionAction, target: int, *, current: int) -> bool:
    """Return whether an action gives a video another id than it has: what a lock of the id forbids.

    Args:
        action: What is decided.
        target: The id that the video would get, 0 for none.
        current: The id that we know of, 0 for none.
    """
    return (action in LINKING or action is DecisionAction.clear_id) and target != current


def _typed_id_refusal(decision: Decision, row: Mapping[Any, Any], state: Mapping[Any, Any]) -> str | None:
    """Refuse a link over an id that somebody put into the CMS since the reviewer looked; a verdict's gives way."""
    current, known = row["vod_douban_id"], state["vod_douban_id"]
    seen = known if decision.seen_id is None else decision.seen_id
    if not decision.linking or current in (seen, decision.douban_id):
        return None
    if current == known and state["douban_id_source"] in BY_MATCH:
        return None
    return f"豆瓣 ID 已由 {seen or '空'} 变为 {current or '空'}（有人在 CMS 中修改），请核对后重新决定"


def _changed_id_refusal(decision: Decision, row: Mapping[Any, Any], state: Mapping[Any, Any]) -> str | None:
    """Refuse a decision about the id that the video had, if it has another by now."""
    if not decision.about_current_id:
        return None
    current, known, seen = row["vod_douban_id"], state["vod_douban_id"], decision.douban_id
    # Releases before kept no id with such a decision.
    if seen and seen != known:
        return f"记录决定之后豆瓣 ID 已由 {seen} 变为 {known or '空'}，请核对后重新决定"
    if current == known or state["douban_id_locked"]:
        return None
    return f"CMS 中的豆瓣 ID 已由 {known} 变为 {current}，请核对后用 set_id 指定"


def _no_link_refusal(
    action: DecisionAction, row: Mapping[Any, Any], state: Mapping[Any, Any], settings: Settings
) -> str | None:
    if action not in _ON_A_LINK:
        return None
    if action is DecisionAction.redo_intro and not settings.ai_intros:
        return INTROS_OFF
    if state["douban_review_status"] != ReviewStatus.CONFIRMED or not state["vod_douban_id"]:
        return "影片没有已确认的豆瓣关联，请先用 confirm_top1、choose 或 set_id 指定"
    # The CMS may have moved the video since it was taken in.
    outside = [type_id for type_id in (row["type_id"], state["type_id"]) if not settings.works_on(type_id)]
    if outside:
        remedy = "请先调整 DOUBAN_PIPELINE_INCLUDED_TYPE_IDS 或 DOUBAN_PIPELINE_EXCLUDED_TYPE_IDS"
        return f"分类 {outside[0]} 不在处理范围内，{remedy}"
    return None


def _cms_lock_refusal(decision: Decision, row: Mapping[Any, Any], settings: Settings) -> str | None:
    if decision.override_cms_lock or not writes_locked_row(decision, row, settings):
        return None
    return f"{SENTENCES[Reason.LOCKED_IN_CMS]}，{OVERRIDE_CMS_LOCK}"


def writes_locked_row(decision: Decision, row: Mapping[Any, Any], settings: Settings) -> bool:
    """Return whether a decision writes to a row that the site locked; it is refused then, unless it overrides the lock.

    What changes nothing but our state is allowed.
    """
    if decision.action not in WRITING or cms_lock_refusal(row, respect_vod_lock=settings.respect_vod_lock) is None:
        return False
    return decision.action in _ON_A_LINK or target_of(decision, row) != row["vod_douban_id"]


def missing_link_refusal(connection: Connection, tables: OwnTables, decision: Decision) -> str | None:
    """Return why a decision is refused together with the one on the link that was made with it, None if it is not.

    Who names a subject and locks it in one go does not mean to lock the id that was there before.
    """
    if decision.action not in (DecisionAction.lock_id, *_ON_A_LINK) or not decision.batch_id:
        return None
    other = tables.decision
    query = (
        select(other.c.action)
        .where(
            other.c.vod_id == decision.vod_id,
            other.c.batch_id == decision.batch_id,
            other.c.action.in_(LINKING),
            other.c.state == DecisionState.REFUSED,
        )
        .limit(1)
    )
    action = connection.execute(query).scalar()
    return f"同时记录的“{ACTIONS[DecisionAction(action)]}”未能执行" if action else None


def conflicts_of(services: Services, row: Mapping[Any, Any], douban_id: int) -> str:
    """Return why a subject is impossible for a video, in Chinese; empty if it is possible.

    Args:
        services: Source and settings; an answer not older than `SUBJECT_CACHE_AGE` costs no call.
        row: The video's CMS row.
        douban_id: The subject.

    Raises:
        SubjectMissing: The source says that there is no such subject.
        SourceError: The source cannot be asked now; nothing may be concluded.
    """
    answer = services.douban.subject(douban_id, max_age=SUBJECT_CACHE_AGE, urgent=True)
    profile = profile_of(services.settings)
    video = video_facts(row, services.cms, services.categories)
    comparison = compare(video, subject_facts(answer.record), profile.weights, profile.thresholds)
    conflicts = "；".join(finding.text for finding in comparison.exclusions)
    return f"与《{answer.record.title}》（{answer.record.year or '年份未知'}）对不上：{conflicts}" if conflicts else ""
