"""Steps that change whether a comment is shown: set and undo a status, erase a text. Pure, like `steps`."""

from __future__ import annotations

from douban_pipeline.comments.event_handlers.priority import rank_after, status_refusal, undo_refusal
from douban_pipeline.comments.event_handlers.section_steps import GONE, owner_refusal
from douban_pipeline.comments.event_handlers.state import (
    BatchState,
    CommentState,
    ModerationEntry,
    NoticeInput,
    PendingEvent,
    SectionState,
)
from douban_pipeline.comments.types import MORE_VOTES, Attribute, CommentStatus, Rank

ERASED = "erased"
"""Name in a comment's `meta` of when its text was erased: such a comment is never shown again."""
_ERASED = "文字已清除，不能再显示"


def set_status(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    comment = batch.comments.get(event.comment_id)
    if comment is None or comment.section_id != section.section_id:
        return GONE
    if comment.meta.get(ERASED):
        return _ERASED
    wanted = CommentStatus(int(event.payload["status"]))
    own = bool(event.user_id) and event.user_id == comment.publisher_id
    refusal = owner_refusal(section, event) or status_refusal(
        comment.status, comment.status_rank, wanted, event.actor_rank, own=own
    )
    if refusal is not None:
        return refusal
    reason, together = str(event.payload.get("reason", "")), str(event.payload.get("batch", ""))
    waited = comment.status == CommentStatus.REVIEW
    change_status(batch, section, event, comment, wanted, event.actor_rank, event.actor, reason, together)
    parent = batch.comments.get(comment.parent_id)
    if waited and wanted == CommentStatus.NORMAL and parent and parent.publisher_id != comment.publisher_id:
        notify(batch, event, parent.publisher_id, "reply")
    if event.actor_rank >= Rank.OPERATOR:
        comment.mark(Attribute.REVIEWED, True)
        if not own:
            notify(batch, event, comment.publisher_id, "status")
    return None


def change_status(
    batch: BatchState,
    section: SectionState,
    event: PendingEvent,
    comment: CommentState,
    status: CommentStatus,
    rank: Rank,
    actor: str,
    reason: str = "",
    together: str = "",
) -> None:
    _move(
        batch,
        section,
        event,
        comment,
        status.name.lower(),
        status,
        rank_after(comment.status_rank, rank),
        actor,
        by=actor,
        reason=reason,
        together=together,
    )


def _move(
    batch: BatchState,
    section: SectionState,
    event: PendingEvent,
    comment: CommentState,
    action: str,
    status: CommentStatus,
    rank: Rank,
    holder: str,
    *,
    by: str,
    reason: str,
    together: str,
    undone: bool = False,
) -> None:
    """Give a comment a status with the rank and the actor that hold it, and note the entry that says so.

    Args:
        reason, together: Why, and the batch of decisions that it belongs to.
        undone: Whether the entry itself cannot be undone.
    """
    entry = ModerationEntry(
        event_id=event.event_id,
        section_id=section.section_id,
        comment_id=comment.comment_id,
        action=action,
        old_status=comment.status,
        old_rank=comment.status_rank,
        old_actor=comment.status_actor,
        new_status=status,
        new_rank=rank,
        actor=by,
        created_at=batch.now,
        reason=reason[:300],
        batch=together,
        undone=undone,
    )
    entry.visible_change = _become(batch, section, event, comment, status, rank, holder)
    batch.moderation.setdefault(comment.comment_id, []).append(entry)


def _become(
    batch: BatchState,
    section: SectionState,
    event: PendingEvent,
    comment: CommentState,
    status: CommentStatus,
    rank: Rank,
    actor: str,
) -> int:
    """Set a comment's status, update the counters, and return the change of the number of shown comments."""
    was, comment.status = comment.status, status
    comment.status_rank, comment.status_actor, comment.updated_at = rank, actor, batch.now
    batch.change(comment)
    event.touched |= {comment.comment_id, comment.root_id or comment.comment_id}
    if (was == CommentStatus.NORMAL) == (status == CommentStatus.NORMAL):
        return 0
    return count_shown(batch, section, comment, 1 if status == CommentStatus.NORMAL else -1)


def undo_status(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    comment = batch.comments.get(event.comment_id)
    if comment is None or comment.section_id != section.section_id:
        return GONE
    if comment.meta.get(ERASED):
        return _ERASED
    last = next((entry for entry in reversed(batch.moderation.get(comment.comment_id, [])) if not entry.undone), None)
    if last is None:
        return "没有可撤销的操作"
    refusal = owner_refusal(section, event) or undo_refusal(
        comment.status_rank, last.actor, event.actor, event.actor_rank
    )
    if refusal is not None:
        return refusal
    last.undone = True
    _move(
        batch,
        section,
        event,
        comment,
        "undo",
        last.old_status,
        last.old_rank,
        last.old_actor,
        by=event.actor,
        reason=str(event.payload.get("reason", "")),
        together=str(event.payload.get("batch", "")),
        undone=True,
    )
    return None


def erase(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    """Erase the text of a deleted comment; with ``person`` also delete it, and forget who wrote it."""
    comment = batch.comments.get(event.comment_id)
    if comment is None or comment.section_id != section.section_id:
        return GONE
    person = bool(event.payload.get("person"))
    if event.actor_rank < (Rank.OPERATOR if person else Rank.AUTOMATION):
        return "没有权限"
    if not person and comment.status != CommentStatus.DELETED:
        return "评论没有删除"
    known = bool(comment.publisher_id or comment.meta.get("name"))
    if comment.meta.get(ERASED) and not (person and known):
        return "没有变化"
    if comment.status != CommentStatus.DELETED:
        reason = str(event.payload.get("reason", ""))
        change_status(batch, section, event, comment, CommentStatus.DELETED, event.actor_rank, event.actor, reason)
    kept = {MORE_VOTES, "owner_replies", *(() if person else ("name", "reasons"))}
    comment.meta = {name: value for name, value in comment.meta.items() if name in kept}
    comment.meta[ERASED] = batch.now.isoformat()
    if person:
        comment.publisher_id, comment.status_actor = 0, event.actor
    comment.text, comment.length = "", 0
    batch.erased_comments.add(comment.comment_id)
    batch.change(comment)
    event.touched |= {comment.comment_id, comment.root_id or comment.comment_id}
    return None


def count_shown(batch: BatchState, section: SectionState, comment: CommentState, sign: int) -> int:
    """Count a comment that became NORMAL or ceased to be; return the change of the number of shown comments."""
    if comment.is_root:
        section.root_count += sign
        change = sign * (1 + comment.child_visible)
    else:
        root = batch.root_of(comment)
        root.child_visible += sign
        if comment.attributes & Attribute.BY_OWNER:
            replies = int(root.meta.get("owner_replies", 0)) + sign
            root.meta = {**root.meta, "owner_replies": replies}
            root.mark(Attribute.OWNER_REPLIED, replies > 0)
        batch.change(root)
        change = sign if root.status == CommentStatus.NORMAL else 0
    section.visible_count += change
    return change


def notify(batch: BatchState, event: PendingEvent, user_id: int, kind: str) -> None:
    if user_id:
        batch.notices.append(
            NoticeInput(user_id, kind, event.comment_id, event.section_id, event.actor, event.created_at)
        )
