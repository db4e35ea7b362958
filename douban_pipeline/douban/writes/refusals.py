"""Why something may not be written or linked: every reason with its sentence for people, and the rules on plain values.

A rule returns the `Refusal`, or None if there is no reason. For automatic writes the conditions of the UPDATE itself
(`conditional_update`) repeat the rules; the rules of a confirmed verdict are in `matching.guard`.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from douban_pipeline.cms.maccms import in_recycle_bin
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.videos import GONE

SYNOPSIS_COLUMNS = frozenset({"vod_content", "vod_blurb"})
"""The columns that the lock of a synopsis protects."""


class Reason(enum.StrEnum):
    """Why something may not be written or linked; `SENTENCES` says it to people."""

    GONE = "gone"
    RECYCLED = "recycled"
    LOCKED_IN_CMS = "locked_in_cms"
    IGNORED = "ignored"
    ID_LOCKED = "id_locked"
    ID_NO_LONGER_LOCKED = "id_no_longer_locked"
    INTRO_LOCKED = "intro_locked"
    INTRO_NO_LONGER_LOCKED = "intro_no_longer_locked"
    DECISION_WAITS = "decision_waits"
    LINKED_ALREADY = "linked_already"
    NOT_LINKED = "not_linked"
    NOT_CONFIRMED = "not_confirmed"
    ID_CHANGED_IN_CMS = "id_changed_in_cms"
    OTHER_ID_IN_CMS = "other_id_in_cms"
    SUBJECT_CHANGED = "subject_changed"
    LINK_REVERTED = "link_reverted"
    VALUES_CHANGED_IN_CMS = "values_changed_in_cms"
    STATE_CHANGED = "state_changed"
    VALUE_DOES_NOT_FIT = "value_does_not_fit"
    CONDITIONS_CHANGED = "conditions_changed"


SENTENCES: Mapping[Reason, str] = {
    Reason.GONE: GONE,
    Reason.RECYCLED: "影片在 CMS 的回收站里",
    Reason.LOCKED_IN_CMS: "影片已在 CMS 中锁定（vod_lock）",
    Reason.IGNORED: "影片已被忽略",
    Reason.ID_LOCKED: "豆瓣 ID 已锁定",
    Reason.ID_NO_LONGER_LOCKED: "豆瓣 ID 已不再这样锁定",
    Reason.INTRO_LOCKED: "简介已锁定",
    Reason.INTRO_NO_LONGER_LOCKED: "简介已不再锁定",
    Reason.DECISION_WAITS: "有尚未执行的决定",
    Reason.LINKED_ALREADY: "影片已有确认的关联",
    Reason.NOT_LINKED: "影片没有豆瓣关联，无从复查",
    Reason.NOT_CONFIRMED: "影片不是已确认状态",
    Reason.ID_CHANGED_IN_CMS: "CMS 中的豆瓣 ID 已变为 {douban_id}",
    Reason.OTHER_ID_IN_CMS: "CMS 中已有豆瓣 ID {douban_id}",
    Reason.SUBJECT_CHANGED: "豆瓣关联已变为 {douban_id}",
    Reason.LINK_REVERTED: "关联 {douban_id} 曾被人工撤销",
    Reason.VALUES_CHANGED_IN_CMS: "读取之后 CMS 中的值已被改动：{columns}",
    Reason.STATE_CHANGED: "读取之后影片被锁定、解锁或另有决定",
    Reason.VALUE_DOES_NOT_FIT: "CMS 容纳不下要写入的值：{error}",
    Reason.CONDITIONS_CHANGED: "写入条件不再成立",
}
"""What people read for a reason; names in braces are values of `Refusal.of`."""

OVERRIDE_CMS_LOCK = "请先在 CMS 中解锁；确认要写入请加 override_cms_lock: true"
"""What people may do where the site's lock of a row refuses what they decided."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason that applies, and the sentence that people read for it."""

    reason: Reason
    sentence: str

    @classmethod
    def of(cls, reason: Reason, **values: Any) -> Refusal:
        """Return the refusal for ``reason``, ``values`` put into its sentence."""
        return cls(reason, SENTENCES[reason].format(**values))


def unlisted_refusal(row: Mapping[Any, Any] | None) -> Refusal | None:
    """Return why the site does not show a video, by its CMS row; None where it may."""
    if row is None:
        return Refusal.of(Reason.GONE)
    return Refusal.of(Reason.RECYCLED) if in_recycle_bin(row) else None


def cms_lock_refusal(row: Mapping[Any, Any], *, respect_vod_lock: bool) -> Refusal | None:
    """Return why a CMS row is left alone that the site locked, None where it is not locked or that is no matter."""
    return Refusal.of(Reason.LOCKED_IN_CMS) if respect_vod_lock and row["vod_lock"] else None


def ignored_refusal(state: Mapping[Any, Any]) -> Refusal | None:
    """Return why automation leaves an ignored video alone, None for any other."""
    return Refusal.of(Reason.IGNORED) if state["douban_review_status"] == ReviewStatus.IGNORED else None


def automatic_write_refusal(
    row: Mapping[Any, Any],
    state: Mapping[Any, Any] | None,
    new: Mapping[str, Any],
    *,
    restores: bool,
    respect_vod_lock: bool,
) -> Refusal | None:
    """Return why automation may not write columns of a video, None if it may.

    Args:
        row: Its CMS row.
        state: Our state row; None where there is none, which protects nothing.
        new: The columns and their values.
        restores: Whether it restores what a lock protects: then the lock must hold, else it must not.
        respect_vod_lock: Whether rows with ``vod_lock = 1`` are left alone.
    """
    refusal = unlisted_refusal(row) or cms_lock_refusal(row, respect_vod_lock=respect_vod_lock)
    if refusal is not None or state is None:
        return refusal
    return (
        ignored_refusal(state)
        or (_id_refusal(state, new["vod_douban_id"], restores) if "vod_douban_id" in new else None)
        or (_synopsis_refusal(state, restores) if SYNOPSIS_COLUMNS & set(new) else None)
    )


def _id_refusal(state: Mapping[Any, Any], douban_id: int, restores: bool) -> Refusal | None:
    if restores:
        same = state["douban_id_locked"] and state["vod_douban_id"] == douban_id
        return None if same else Refusal.of(Reason.ID_NO_LONGER_LOCKED)
    return Refusal.of(Reason.ID_LOCKED) if state["douban_id_locked"] else None


def _synopsis_refusal(state: Mapping[Any, Any], restores: bool) -> Refusal | None:
    if bool(state["intro_locked"]) is restores:
        return None
    return Refusal.of(Reason.INTRO_LOCKED if state["intro_locked"] else Reason.INTRO_NO_LONGER_LOCKED)


def changed_since_refusal(
    row: Mapping[Any, Any] | None,
    state: Mapping[Any, Any] | None,
    *,
    read: Mapping[str, Any],
    seen: Mapping[str, Any],
) -> Refusal | None:
    """Return what changed since a write was planned, None if nothing did.

    Args:
        row: The video's CMS row now.
        state: Our state row now.
        read: CMS columns as they were read.
        seen: Columns of our state row as they were read.
    """
    if row is None:
        return Refusal.of(Reason.GONE)
    changed = [column for column, value in read.items() if row[column] != value]
    if changed:
        return Refusal.of(Reason.VALUES_CHANGED_IN_CMS, columns=", ".join(changed))
    if seen and (state is None or any(state[name] != value for name, value in seen.items())):
        return Refusal.of(Reason.STATE_CHANGED)
    return None


def match_refusal(row: Mapping[Any, Any] | None, state: Mapping[Any, Any] | None) -> Refusal | None:
    """Return why no subject is looked for, None for a video that needs one."""
    if (unlisted := unlisted_refusal(row)) is not None or state is None:
        return unlisted or Refusal.of(Reason.GONE)
    if state["douban_id_locked"]:
        return Refusal.of(Reason.ID_LOCKED)
    if state["douban_review_status"] == ReviewStatus.CONFIRMED and state["vod_douban_id"]:
        return Refusal.of(Reason.LINKED_ALREADY)
    return ignored_refusal(state)


def recheck_refusal(row: Mapping[Any, Any] | None, state: Mapping[Any, Any] | None) -> Refusal | None:
    """Return why a link is not judged again, None if it is. A lock is no reason: nothing is written."""
    if (unlisted := unlisted_refusal(row)) is not None or state is None:
        return unlisted or Refusal.of(Reason.GONE)
    if not state["vod_douban_id"]:
        return Refusal.of(Reason.NOT_LINKED)
    return ignored_refusal(state)


def subject_refusal(
    row: Mapping[Any, Any] | None, state: Mapping[Any, Any] | None, *, douban_id: int | None = None
) -> Refusal | None:
    """Return why nothing may be written to a video from its subject, None if it may.

    Args:
        row: The video's CMS row.
        state: Our state row.
        douban_id: The subject that was fetched; None before.
    """
    if (unlisted := unlisted_refusal(row)) is not None or row is None or state is None:
        return unlisted or Refusal.of(Reason.GONE)
    if state["douban_review_status"] != ReviewStatus.CONFIRMED or not state["vod_douban_id"]:
        return Refusal.of(Reason.NOT_CONFIRMED)
    if row["vod_douban_id"] != state["vod_douban_id"] and not state["douban_id_locked"]:
        # Changed in the CMS, and not taken in yet: the subject we know of may be another work.
        return Refusal.of(Reason.ID_CHANGED_IN_CMS, douban_id=row["vod_douban_id"])
    if douban_id not in (None, state["vod_douban_id"]):
        return Refusal.of(Reason.SUBJECT_CHANGED, douban_id=state["vod_douban_id"])
    return None


def new_link_refusal(douban_id: int, *, current: int, reverted: Collection[Any]) -> Refusal | None:
    """Return why automation may not link a video to a subject, None if it may.

    Args:
        douban_id: The subject.
        current: The id in the CMS, 0 for none; another one was set outside the pipeline.
        reverted: Subjects whose link to the video people reverted.
    """
    if douban_id in reverted:
        return Refusal.of(Reason.LINK_REVERTED, douban_id=douban_id)
    if current not in (0, douban_id):
        return Refusal.of(Reason.OTHER_ID_IN_CMS, douban_id=current)
    return None


def restore_refusal(
    row: Mapping[Any, Any], state: Mapping[Any, Any], *, respect_vod_lock: bool, decision_waits: bool
) -> Refusal | None:
    """Return why a locked value is not restored that was changed in the CMS, None if it may be.

    Args:
        row: The video's CMS row.
        state: Our state row.
        respect_vod_lock: Whether rows with ``vod_lock = 1`` are left alone.
        decision_waits: Whether a person's decision about the video waits.
    """
    return (
        cms_lock_refusal(row, respect_vod_lock=respect_vod_lock)
        or ignored_refusal(state)
        or (Refusal.of(Reason.DECISION_WAITS) if decision_waits else None)
    )
