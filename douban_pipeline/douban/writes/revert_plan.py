"""Plans the revert of one change from the current rows of its video. Pure: reads and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from douban_pipeline.cms.maccms import in_recycle_bin
from douban_pipeline.douban.store.states import BY_PEOPLE, ReviewStatus
from douban_pipeline.douban.writes.changes import PIPELINE, RESTORE, decode
from douban_pipeline.douban.writes.refusals import OVERRIDE_CMS_LOCK, SYNOPSIS_COLUMNS, cms_lock_refusal

_RHYTHM = frozenset({"douban_last_sync_at", "douban_next_sync_at", "intro_ai_last_at"})
"""State that says when work was done; a revert does not turn back time."""

_REVIEW_STATE = frozenset({"douban_review_status", "douban_review_reason", "douban_ignore_until"})
"""State that makes sense only together."""

_LOCKS = (
    ("douban_id_locked", "douban_id_lock_time", frozenset({"vod_douban_id"})),
    ("intro_locked", "intro_lock_time", SYNOPSIS_COLUMNS),
)
"""Our locks: the lock, since when, and the columns that it protects. A lock of another time is another lock."""

_SEEN_STATE = ("douban_id_source", *(name for lock, time, _ in _LOCKS for name in (lock, time)))
"""State that shows a later lock or a later decision: what was planned holds as long as it does not change."""

_OPEN = (ReviewStatus.NOT_FOUND, ReviewStatus.REVIEW)


@dataclass(frozen=True, slots=True)
class RevertedChange:
    """Outcome of one change: columns restored, columns left alone, and the reason.

    Attributes:
        state: Columns of our state row that were restored.
        to_review: Whether the video now waits for review, because an automatic link was reverted.
    """

    change_id: int
    vod_id: int
    restored: tuple[str, ...]
    skipped: tuple[str, ...]
    reason: str = ""
    state: tuple[str, ...] = ()
    to_review: bool = False


@dataclass(frozen=True, slots=True)
class VideoRows:
    """The current rows of a video, and who wrote them.

    Attributes:
        row: Its CMS row.
        state: Our state row.
        writers: By column, the changes that wrote it and that no revert undid.
    """

    row: Mapping[Any, Any]
    state: Mapping[Any, Any]
    writers: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def after(self, step: RevertStep) -> VideoRows:
        """Return the rows as they are once ``step`` is done."""
        if not step.writes:
            return self
        undone = {column: self.writers.get(column, frozenset()) - {step.result.change_id} for column in step.new}
        return VideoRows({**self.row, **step.new}, {**self.state, **step.state}, {**self.writers, **undone})

    def written_after(self, change_id: int) -> set[str]:
        """Return the columns that a later change wrote: an equal value in them is not the one of this change."""
        return {column for column, writers in self.writers.items() if max(writers, default=0) > change_id}


@dataclass(frozen=True, slots=True)
class RevertStep:
    """The revert of one change: its row, the outcome, and the values to write.

    Attributes:
        old: Current values of CMS columns.
        new: Their values before the change.
        state: New values of columns of our state.
        seen: Current values of columns of our state on which the plan depends.
        writes: Whether anything is written; otherwise the change stays as it is.
    """

    row: Mapping[Any, Any]
    result: RevertedChange
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    state: Mapping[str, Any]
    seen: Mapping[str, Any]
    writes: bool


def plan_revert(
    row: Mapping[Any, Any], current: VideoRows, *, reason: str, now: datetime, respect_vod_lock: bool = False
) -> RevertStep:
    """Return the plan for reverting the change ``row``.

    Args:
        row: The change as the log has it.
        current: The current rows of its video.
        reason: Why it is reverted.
        now: The current time.
        respect_vod_lock: Whether a row that the site locked is left alone.
    """
    old, new = decode(row["old_values"]), decode(row["new_values"])
    by_machine = row["operator"] == PIPELINE and row["action"] != RESTORE
    locked = _locked_since(row, current.state)
    confirmed = _confirmed_since(row, current.state) if by_machine else set()
    kept_or_later = locked | confirmed | current.written_after(row["change_id"])
    restored = [column for column in new if current.row[column] == new[column] and column not in kept_or_later]
    before, moved_on = _state_before(row, current.state)
    # What a lock only noted is no write to be reverted; but where the lock comes back, so must what it noted.
    locks_again = bool(before.get("intro_locked"))
    written = [column for column in new if old.get(column) != new[column]]
    skipped = [column for column in (new if locks_again else written) if column not in restored]
    if _state_stays(row, written, skipped, locks_again):
        before, moved_on = {}, ()
    restored_state = tuple(name for name, value in before.items() if value != current.state[name])
    if written:
        writes = not set(written).isdisjoint(restored)
    else:
        writes = not skipped and bool(restored_state or not moved_on)
        skipped = skipped or ([] if writes else list(moved_on))
    why = _skip_reason(skipped, locked, confirmed, current.row, new, old)
    forbidden = cms_lock_refusal(current.row, respect_vod_lock=respect_vod_lock)
    if writes and forbidden is not None and not set(written).isdisjoint(restored):
        writes, skipped, why = False, [*new], f"{forbidden.sentence}，{OVERRIDE_CMS_LOCK}"
    if not writes:
        result = RevertedChange(row["change_id"], row["vod_id"], (), tuple(skipped), why)
        return RevertStep(row, result, {}, {}, {}, {}, writes=False)
    state = dict(before)
    ignored = current.state["douban_review_status"] == ReviewStatus.IGNORED
    doubted = "vod_douban_id" in restored and by_machine and not ignored
    if doubted:
        # Back to how it was would mean that the next run links it again.
        state["douban_review_status"] = ReviewStatus.REVIEW
        state["douban_review_reason"] = f"关联 {new['vod_douban_id']} 已被撤销：{reason}"[:500]
        restored_state = tuple(name for name in restored_state if name not in _REVIEW_STATE)
    state |= _visit(current, state, now, by_person=not doubted)
    result = RevertedChange(
        row["change_id"], row["vod_id"], tuple(restored), tuple(skipped), why, restored_state, to_review=doubted
    )
    as_written = {column: new[column] for column in restored}
    as_before = {column: old[column] for column in restored}
    seen = {name: current.state[name] for name in _SEEN_STATE}
    return RevertStep(row, result, as_written, as_before, state, seen, writes=True)


def _skip_reason(
    skipped: Sequence[str],
    locked: set[str],
    confirmed: set[str],
    row: Mapping[Any, Any],
    new: Mapping[str, Any],
    old: Mapping[str, Any],
) -> str:
    if not skipped:
        return ""
    if locked & set(skipped):
        return "之后已被锁定"
    if any(column in confirmed and row[column] == new[column] for column in skipped):
        return "之后已由人确认"
    if all(column in old and row[column] == old[column] for column in skipped):
        return "已是写入之前的值"
    return "之后已被改动"


def _locked_since(row: Mapping[Any, Any], state: Mapping[Any, Any]) -> set[str]:
    """Return the columns that a lock set after the change protects."""
    by_itself = decode(row["state_new"] or {})
    locked: set[str] = set()
    for lock, time, columns in _LOCKS:
        since = state[time]
        # What was restored for the sake of a lock is not held fast by that lock.
        restored = row["action"] == RESTORE and (since is None or since <= row["applied_at"])
        its_own = by_itself.get(lock) and by_itself.get(time) == since
        if state[lock] and not its_own and not restored:
            locked |= columns
    return locked


def _confirmed_since(row: Mapping[Any, Any], state: Mapping[Any, Any]) -> set[str]:
    """Return the id's column if a person confirmed an automatic link after the change; else none."""
    before = (row["state_new"] or {}).get("douban_id_source")
    return {"vod_douban_id"} if state["douban_id_source"] in BY_PEOPLE and before not in BY_PEOPLE else set()


def _state_before(row: Mapping[Any, Any], state: Mapping[Any, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return our state before the change where it is still as the change left it, and what changed since."""
    before, after = decode(row["state_old"]), decode(row["state_new"])
    changed = {name: value for name, value in before.items() if name not in _RHYTHM and value != after.get(name)}
    moved_on = {name for name in changed if state[name] != after.get(name)}
    if "douban_review_status" in before and state["douban_review_status"] != after.get("douban_review_status"):
        moved_on |= _REVIEW_STATE & set(changed)
    for lock, time, _ in _LOCKS:
        if time in moved_on:
            moved_on |= {lock} & set(changed)
    return {name: value for name, value in changed.items() if name not in moved_on}, tuple(sorted(moved_on))


def _state_stays(row: Mapping[Any, Any], written: Sequence[str], skipped: Sequence[str], locks_again: bool) -> bool:
    """Return whether our state stays with a column that cannot be restored: the id, or the text that was locked."""
    if "vod_douban_id" in written:
        return "vod_douban_id" in skipped
    if "intro_locked" not in row["state_new"]:
        return False
    return "vod_content" in skipped or (locks_again and bool(SYNOPSIS_COLUMNS & set(skipped)))


def _visit(current: VideoRows, state: Mapping[str, Any], now: datetime, *, by_person: bool) -> dict[str, Any]:
    """Return the video's next visit if it changes, so that a video that is open again is visited."""
    if in_recycle_bin(current.row):
        return {}
    before = current.state
    after = {**before, **state}
    was, status = before["douban_review_status"], after["douban_review_status"]
    if status == ReviewStatus.IGNORED:
        return {"douban_next_sync_at": after["douban_ignore_until"]} if was != status else {}
    # A link that the machine made waits for a person; what else is open again waits for the machine.
    reopened = by_person and was != status and status in _OPEN
    return {"douban_next_sync_at": now} if before["douban_next_sync_at"] is None or reopened else {}
