"""Steps for managing a section: pin, feature, promote, close; for owners and operators. Pure, like `steps`."""

from __future__ import annotations

from douban_pipeline.comments.event_handlers.state import BatchState, PendingEvent, SectionState
from douban_pipeline.comments.types import Attribute, Rank, SectionStatus

GONE = "评论不存在"


def owner_refusal(section: SectionState, event: PendingEvent) -> str | None:
    if event.actor_rank == Rank.OWNER and (not event.user_id or event.user_id != section.owner_id):
        return "不是本评论区的楼主"
    return None


def pin(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    """Pin a root to the top of its section, or unpin it; return the refusal."""
    comment = batch.comments.get(event.comment_id)
    if event.actor_rank < Rank.OWNER:
        return "没有权限"
    if refusal := owner_refusal(section, event):
        return refusal
    if comment is None or comment.section_id != section.section_id or not comment.is_root:
        return "只能置顶本评论区的主楼评论"
    wanted = bool(event.payload["on"])
    if wanted == (comment.comment_id in section.pinned):
        return "没有变化"
    if wanted and len(section.pinned) >= batch.pinned_most:
        hidden = [pinned for pinned in section.pinned if not batch.is_shown(batch.comments[pinned])]
        if not hidden:
            return f"最多置顶 {batch.pinned_most} 条"
        # A comment that is not shown keeps its place only until another one needs it.
        lost = batch.comments[hidden[-1]]
        section.pinned = [pinned for pinned in section.pinned if pinned != lost.comment_id]
        lost.mark(Attribute.PINNED, False)
        batch.change(lost)
        event.touched |= {lost.comment_id}
    others = [pinned for pinned in section.pinned if pinned != comment.comment_id]
    section.pinned = [comment.comment_id, *others] if wanted else others
    comment.mark(Attribute.PINNED, wanted)
    batch.change(comment)
    event.touched |= {comment.comment_id}
    return None


def feature(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    """Mark a comment as featured, or remove the mark; return the refusal."""
    return _mark(batch, section, event, Attribute.FEATURED, Rank.OWNER)


def promote(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    """Mark a comment as an advertisement, or remove the mark; for operators only; return the refusal."""
    return _mark(batch, section, event, Attribute.PROMOTED, Rank.OPERATOR)


def _mark(
    batch: BatchState, section: SectionState, event: PendingEvent, attribute: Attribute, least: Rank
) -> str | None:
    comment = batch.comments.get(event.comment_id)
    if event.actor_rank < least:
        return "没有权限"
    if refusal := owner_refusal(section, event):
        return refusal
    if comment is None or comment.section_id != section.section_id:
        return GONE
    wanted = bool(event.payload["on"])
    if wanted == bool(comment.attributes & attribute):
        return "没有变化"
    comment.mark(attribute, wanted)
    batch.change(comment)
    event.touched |= {comment.comment_id}
    return None


def set_section(batch: BatchState, section: SectionState, event: PendingEvent) -> str | None:
    """Change the status or settings of a section; return the refusal."""
    if event.actor_rank < Rank.OWNER:
        return "没有权限"
    if refusal := owner_refusal(section, event):
        return refusal
    if "status" in event.payload:
        wanted = SectionStatus(int(event.payload["status"]))
        if event.actor_rank == Rank.OWNER and SectionStatus.HIDDEN in (wanted, section.status):
            return "楼主只能开放或关闭评论区"
        section.status = wanted
    if "settings" in event.payload:
        section.settings = {**section.settings, **dict(event.payload["settings"])}
    return None
