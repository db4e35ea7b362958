"""What carrying out a decision changes: columns of the CMS row, and our state. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from douban_pipeline.douban.store.decisions import LINKING, PERSON, locks_id
from douban_pipeline.douban.store.states import DecisionAction, ReviewStatus
from douban_pipeline.douban.writes.change_log import SYNOPSIS_COLUMNS


@dataclass(frozen=True, slots=True)
class Effect:
    """CMS columns before and after, and columns of our state row; all of them empty if nothing changes."""

    old: Mapping[str, Any] = field(default_factory=dict)
    new: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to write: a task does it all."""
        return not (self.new or self.state)


def effect_of(decision: Mapping[Any, Any], row: Mapping[Any, Any], state: Mapping[Any, Any], now: datetime) -> Effect:
    """Return what a decision changes of a video as it stands.

    Args:
        decision: The decision's row.
        row: The CMS row.
        state: Our state row.
        now: The present.
    """
    action = DecisionAction(decision["action"])
    after = _state_after(decision, action, row, state, now)
    if locks_id(action, decision["lock"]):
        after |= {"douban_id_locked": True, "douban_id_lock_time": now}
    if action is DecisionAction.lock_intro:
        # Old and new alike: the log keeps the text that is locked, for whoever finds another in its place.
        text = {column: row[column] for column in sorted(SYNOPSIS_COLUMNS)}
        return Effect(text, text, after)
    target = target_of(decision, row)
    if target == row["vod_douban_id"]:
        return Effect(state=after)
    return Effect({"vod_douban_id": row["vod_douban_id"]}, {"vod_douban_id": target}, after)


def target_of(decision: Mapping[Any, Any], row: Mapping[Any, Any]) -> int:
    """Return the id that stands in the CMS once a decision is carried out."""
    if decision["action"] in LINKING:
        return int(decision["douban_id"])
    return 0 if decision["action"] == DecisionAction.clear_id else int(row["vod_douban_id"])


def _state_after(
    decision: Mapping[Any, Any],
    action: DecisionAction,
    row: Mapping[Any, Any],
    state: Mapping[Any, Any],
    now: datetime,
) -> dict[str, Any]:
    match action:
        case DecisionAction.clear_id:
            return {
                "vod_douban_id": 0,
                "douban_id_source": "",
                "douban_id_confidence": None,
                "douban_review_status": ReviewStatus.NOT_FOUND,
                "douban_review_reason": "豆瓣 ID 已由审核员清除",
                "douban_ignore_until": None,
                "douban_next_sync_at": now,
            }
        case DecisionAction.ignore:
            until = now + timedelta(days=decision["days"]) if decision["days"] else None
            return {
                "douban_review_status": ReviewStatus.IGNORED,
                "douban_review_reason": decision["note"] or "审核员选择忽略",
                "douban_ignore_until": until,
                "douban_next_sync_at": until,
            }
        case DecisionAction.rematch:
            return {
                "douban_review_status": _status_to_rematch(row, state),
                "douban_review_reason": "审核员要求重新匹配",
                "douban_ignore_until": None,
                "douban_next_sync_at": now,
            }
        case DecisionAction.unlock_id:
            return {"douban_id_locked": False, "douban_id_lock_time": None, **_visited(state, now)}
        case DecisionAction.lock_intro:
            return {"intro_locked": True, "intro_lock_time": now}
        case DecisionAction.unlock_intro:
            return {"intro_locked": False, "intro_lock_time": None}
        case _ if action in LINKING:
            return {
                "vod_douban_id": decision["douban_id"],
                "douban_id_source": PERSON,
                "douban_id_confidence": None,
                "douban_review_status": ReviewStatus.CONFIRMED,
                "douban_review_reason": "",
                "douban_ignore_until": None,
                "douban_sync_fail_count": 0,
                "douban_next_sync_at": now,
            }
    return {}


def _visited(state: Mapping[Any, Any], now: datetime) -> dict[str, Any]:
    """Return a visit now, except for a video that is ignored and goes on resting."""
    return {} if state["douban_review_status"] == ReviewStatus.IGNORED else {"douban_next_sync_at": now}


def _status_to_rematch(row: Mapping[Any, Any], state: Mapping[Any, Any]) -> ReviewStatus:
    """Return where a video stands that is to be matched anew; one whose id is locked merely ends being ignored."""
    if state["douban_id_locked"] and state["vod_douban_id"]:
        return ReviewStatus.CONFIRMED
    return ReviewStatus.REVIEW if row["vod_douban_id"] else ReviewStatus.NOT_FOUND
