"""Precedence of changes of a comment's status: a lower rank never overrides a higher one. Pure."""

from __future__ import annotations

from douban_pipeline.comments.types import CommentStatus, Rank


def status_refusal(
    current: CommentStatus,
    current_rank: Rank,
    wanted: CommentStatus,
    rank: Rank,
    *,
    own: bool,
) -> str | None:
    """Return why a status may not be set; None if it may.

    Authors may delete their own comments whatever was decided before, which keeps the rank of that decision (see
    `rank_after`), but they may not restore what somebody else removed.
    """
    if wanted == current and rank <= current_rank:
        return "状态没有变化"
    if own and wanted == CommentStatus.DELETED:
        return None
    if rank == Rank.USER:
        return "只能删除自己的评论"
    if rank == Rank.OWNER and wanted != CommentStatus.DELETED:
        return "楼主只能删除评论"
    if rank < current_rank:
        return f"已由更高级别（{RANK_NAMES[current_rank]}）处理，不能更改"
    return None


def rank_after(current_rank: Rank, rank: Rank) -> Rank:
    """Return the rank of a status after a change: never lower than before."""
    return max(current_rank, rank)


def undo_refusal(current_rank: Rank, last_actor: str, actor: str, rank: Rank) -> str | None:
    """Return why the last change of a status may not be undone; None if it may.

    Authors and section owners may undo only their own changes, and only if no higher rank has decided since.
    """
    if rank <= Rank.OWNER and last_actor != actor:
        return "只能撤销自己的操作"
    if last_actor != actor and rank < current_rank:
        return f"已由更高级别（{RANK_NAMES[current_rank]}）处理，不能撤销"
    return None


RANK_NAMES = {
    Rank.USER: "用户",
    Rank.OWNER: "楼主",
    Rank.AUTOMATION: "自动策略",
    Rank.OPERATOR: "运营",
    Rank.AUDIT: "审核",
}
"""Display names of ranks."""
