"""Steps that apply each kind of event to the rows of its section. Pure; events are applied one after another.

A step returns the reason for changing nothing, or None. Counters follow one rule: a section shows its roots whose
status is NORMAL, and under each of these its replies whose status is NORMAL (`child_visible` of the root). So hiding a
root hides exactly its shown replies, and restoring it shows exactly the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from douban_pipeline.comments.event_handlers.priority import status_refusal
from douban_pipeline.comments.event_handlers.section_steps import (
    GONE,
    feature,
    pin,
    promote,
    set_section,
)
from douban_pipeline.comments.event_handlers.state import (
    BatchState,
    CommentReport,
    CommentState,
    Findings,
    PendingEvent,
    SectionState,
)
from douban_pipeline.comments.event_handlers.status_steps import (
    change_status,
    count_shown,
    erase,
    notify,
    set_status,
    undo_status,
)
from douban_pipeline.comments.types import (
    EDIT_TIME,
    IMPORTED_VOTES,
    MORE_VOTES,
    Attribute,
    CommentStatus,
    EventKind,
    Rank,
    SectionStatus,
)

_CLOSED = "评论区已关闭"


def apply_events(batch: BatchState, events: Sequence[PendingEvent]) -> None:
    """Apply events in order, setting each one's serial and, where it changes nothing, its refusal.

    An event that has a refusal already changes nothing, and one of a section that does not exist has no serial.
    """
    for event in events:
        section = batch.sections.get(event.section_id)
        if section is None:
            event.refusal = event.refusal or "评论区不存在"
            continue
        section.event_seq += 1
        event.seq = section.event_seq
        event.refusal = event.refusal or _STEPS[event.kind](batch, section, event) or ""
        if not event.refusal and event.kind != EventKind.ERASE:
            section.active_at = max(section.active_at, event.created_at)
    for section in batch.sections.values():
        section.hidden_count = section.total_count - section.visible_count


def _publish(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    payload = event.payload
    found = event.findings or Findings(str(payload["content"]))
    if section.status != SectionStatus.ACTIVE and event.actor_rank < Rank.OPERATOR:
        return _CLOSED
    if event.comment_id in batch.comments:
        return "编号已被使用"
    if found.refusal:
        notify(batch, event, event.user_id, "refused")
        return found.refusal
    imported = payload.get("imported") if event.actor_rank >= Rank.OPERATOR else None
    parent = None
    if payload.get("parent_id"):
        parent = batch.comments.get(int(payload["parent_id"]))
        if parent is None or parent.section_id != section.section_id:
            if imported is None:
                return "所回复的评论不存在"
            parent = None  # as a reply whose parent the CMS does not have either
        elif not batch.is_shown(parent) and imported is None:
            return "所回复的评论不存在"
    section.floor_seq += 1
    section.total_count += 1
    waits = found.status == CommentStatus.REVIEW
    by_owner = bool(event.user_id) and event.user_id == section.owner_id
    meta = {name: payload[name] for name in ("name", "device", "ads") if payload.get(name)}
    if found.reasons:
        meta["reasons"] = list(found.reasons)
    comment = CommentState(
        comment_id=event.comment_id,
        section_id=section.section_id,
        publisher_id=event.user_id,
        parent_id=parent.comment_id if parent else 0,
        root_id=(parent.root_id or parent.comment_id) if parent else 0,
        dialog_id=(parent.dialog_id or event.comment_id) if parent else 0,
        floor=section.floor_seq,
        created_at=event.created_at if imported is None else datetime.fromtimestamp(int(imported["at"]), UTC),
        updated_at=batch.now,
        meta=meta,
        status=CommentStatus.REVIEW if waits else CommentStatus.NORMAL,
        status_rank=Rank.AUTOMATION if waits else Rank.USER,
        status_actor="auto" if waits else event.actor,
        attributes=(Attribute.BY_OWNER if by_owner else 0)
        | (Attribute.MASKED if found.masked else 0)
        | (Attribute.PROMOTED if "ads" in meta else 0)
        | (Attribute.STAFF if event.actor_rank >= Rank.OPERATOR and imported is None else 0),
        length=len(found.text),
        level=int(payload.get("level", 0)),
        source_key=payload.get("source_key"),
        text=found.text,
        address=str(payload.get("ip", "")),
    )
    batch.comments[comment.comment_id] = comment
    batch.new_comments.add(comment.comment_id)
    if imported is not None:
        _take_votes(batch, comment, imported)
    if not comment.is_root:
        batch.root_of(comment).child_total += 1
        batch.change(batch.root_of(comment))
    if comment.status == CommentStatus.NORMAL:
        count_shown(batch, section, comment, 1)
        if imported is None:
            _tell_of(batch, event, comment, parent, payload)
    event.touched |= {comment.comment_id, comment.root_id or comment.comment_id}
    return None


def _edit(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    comment = batch.comments.get(event.comment_id)
    if comment is None or comment.section_id != section.section_id or comment.status == CommentStatus.DELETED:
        return GONE
    if not event.user_id or event.user_id != comment.publisher_id:
        return "只能编辑自己的评论"
    if event.created_at - comment.created_at > EDIT_TIME:
        return "已经过了可以编辑的时间"
    if section.status != SectionStatus.ACTIVE and event.actor_rank < Rank.OPERATOR:
        return _CLOSED
    found = event.findings or Findings(str(event.payload["content"]))
    if found.refusal:
        return found.refusal
    comment.text, comment.length, comment.updated_at = found.text, len(found.text), batch.now
    comment.meta = {**comment.meta, "edited": event.created_at.isoformat()}
    if found.reasons:
        comment.meta["reasons"] = list(found.reasons)
    comment.mark(Attribute.MASKED, found.masked)
    if comment.comment_id not in batch.new_comments:
        batch.edited_comments.add(comment.comment_id)
    batch.change(comment)
    if found.status == CommentStatus.REVIEW and comment.status == CommentStatus.NORMAL:
        refusal = status_refusal(comment.status, comment.status_rank, CommentStatus.REVIEW, Rank.AUTOMATION, own=False)
        if refusal is None:
            reason = "编辑后" + "、".join(found.reasons)
            change_status(batch, section, event, comment, CommentStatus.REVIEW, Rank.AUTOMATION, "auto", reason)
    event.touched |= {comment.comment_id}
    return None


def _take_votes(batch: BatchState, comment: CommentState, imported: Mapping[str, Any]) -> None:
    """Give an imported comment the votes and reports that it had in the CMS.

    At most `IMPORTED_VOTES` of each become rows of anonymous voters; how many more there were is in `meta`.
    """
    counts = [int(imported.get(name, 0)) for name in ("likes", "dislikes", "reports")]
    likes, dislikes, reports = (min(count, IMPORTED_VOTES) for count in counts)
    for number in range(likes + dislikes):
        key = (comment.comment_id, f"imported:{number}")
        batch.votes[key] = 1 if number < likes else -1
        batch.changed_votes.add(key)
    for number in range(reports):
        key = (comment.comment_id, f"imported:{number}")
        batch.reports[key] = CommentReport("imported", "", comment.created_at)
        batch.changed_reports.add(key)
    comment.like_count, comment.dislike_count, comment.report_count = counts
    names = ("like_count", "dislike_count", "report_count")
    if many := {
        name: count - IMPORTED_VOTES for name, count in zip(names, counts, strict=True) if count >= IMPORTED_VOTES
    }:
        comment.meta = {**comment.meta, MORE_VOTES: many}


def _tell_of(
    batch: BatchState,
    event: PendingEvent,
    comment: CommentState,
    parent: CommentState | None,
    payload: Mapping[str, Any],
) -> None:
    notified = {event.user_id, 0}
    if parent is not None and parent.publisher_id not in notified:
        notified.add(parent.publisher_id)
        notify(batch, event, parent.publisher_id, "reply")
    for user in payload.get("mentions", ()):
        if int(user) not in notified:
            notified.add(int(user))
            notify(batch, event, int(user), "mention")


def _vote(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    comment = batch.comments.get(event.comment_id)
    value = int(event.payload["value"])
    if comment is None:
        return GONE
    if value and not batch.is_shown(comment):
        return GONE
    if value and section.status != SectionStatus.ACTIVE:
        return _CLOSED
    key = (event.comment_id, event.actor)
    before = batch.votes.get(key, 0)
    if before == value:
        return "没有变化"
    batch.votes[key] = value
    batch.changed_votes.add(key)
    likes = (value == 1) - (before == 1)
    comment.like_count += likes
    comment.dislike_count += (value == -1) - (before == -1)
    if likes:
        batch.liked[comment.comment_id] = batch.liked.get(comment.comment_id, 0) + likes
    if likes > 0 and event.user_id and comment.publisher_id != event.user_id:
        notify(batch, event, comment.publisher_id, "like")
    if event.user_id and event.user_id == section.owner_id:
        comment.mark(Attribute.OWNER_LIKED, value == 1)
    batch.change(comment)
    event.touched |= {comment.comment_id}
    return None


def _report(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    comment = batch.comments.get(event.comment_id)
    if comment is None or not batch.is_shown(comment):
        return GONE
    key = (event.comment_id, event.actor)
    before = batch.reports.get(key)
    if before is not None and not before.withdrawn:
        return "已经举报过"
    reason, detail = str(event.payload.get("reason", "")), str(event.payload.get("detail", ""))
    batch.reports[key] = CommentReport(reason, detail, event.created_at)
    batch.changed_reports.add(key)
    comment.report_count += 1
    batch.change(comment)
    if 0 < batch.reports_to_review <= comment.report_count and not comment.attributes & Attribute.REVIEWED:
        refusal = status_refusal(comment.status, comment.status_rank, CommentStatus.REVIEW, Rank.AUTOMATION, own=False)
        if refusal is None:
            reason = f"{comment.report_count} 人举报"
            change_status(batch, section, event, comment, CommentStatus.REVIEW, Rank.AUTOMATION, "auto", reason)
    event.touched |= {comment.comment_id}
    return None


def _withdraw_report(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    comment = batch.comments.get(event.comment_id)
    before = batch.reports.get((event.comment_id, event.actor))
    if comment is None or before is None or before.withdrawn:
        return "没有举报过"
    before.withdrawn = True
    batch.changed_reports.add((event.comment_id, event.actor))
    comment.report_count -= 1
    batch.change(comment)
    event.touched |= {comment.comment_id}
    return None


_STEPS: Mapping[EventKind, Callable[[BatchState, SectionState, PendingEvent], str | None]] = {
    EventKind.PUBLISH: _publish,
    EventKind.EDIT: _edit,
    EventKind.VOTE: _vote,
    EventKind.REPORT: _report,
    EventKind.WITHDRAW_REPORT: _withdraw_report,
    EventKind.SET_STATUS: set_status,
    EventKind.UNDO_STATUS: undo_status,
    EventKind.ERASE: erase,
    EventKind.PIN: pin,
    EventKind.FEATURE: feature,
    EventKind.PROMOTE: promote,
    EventKind.SET_SECTION: set_section,
}
