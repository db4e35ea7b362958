"""Moderation decisions about many comments at once: planning them, applying them as events, and undoing a batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, select

from douban_pipeline.comments.event_handlers.priority import RANK_NAMES, status_refusal, undo_refusal
from douban_pipeline.comments.store.events import EventInput, append, of_requests
from douban_pipeline.comments.store.tables import comment, content, moderation
from douban_pipeline.comments.types import Actor, CommentStatus, EventKind, Rank
from douban_pipeline.core.database import chunks
from douban_pipeline.core.errors import ProblemsError

MOST = 5000
"""Maximum number of comments of one decision."""
STATUS_NAMES = {CommentStatus.NORMAL: "显示", CommentStatus.REVIEW: "待审", CommentStatus.DELETED: "删除"}


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """Planned effect of a decision on one comment.

    Attributes:
        refusal: Why the decision would change nothing; empty where it would.
    """

    comment_id: int
    section_id: int
    text: str
    current: CommentStatus
    refusal: str


def find_comments(connection: Connection, section_id: int, words: str, most: int = MOST) -> list[int]:
    """Return the ids of comments of a section whose text contains ``words``, newest first."""
    query = (
        select(comment.c.comment_id)
        .join(content, content.c.comment_id == comment.c.comment_id)
        .where(comment.c.section_id == section_id, content.c.content.contains(words, autoescape=True))
        .order_by(comment.c.comment_id.desc())
        .limit(most)
    )
    return list(connection.execute(query).scalars())


def plan_status(connection: Connection, ids: Sequence[int], wanted: CommentStatus, rank: Rank) -> list[PlannedChange]:
    """Return the planned effect of setting the status of comments, in the order of ``ids``.

    Raises:
        ProblemsError: ``ids`` is empty or too long, or some do not exist.
    """
    found = _comments(connection, ids)
    planned = []
    for number in dict.fromkeys(ids):
        section_id, status, current_rank, text = found[number]
        refusal = status_refusal(status, current_rank, wanted, rank, own=False) or ""
        planned.append(PlannedChange(number, section_id, text, status, refusal))
    return planned


def plan_undo(connection: Connection, batch: str, actor: str, rank: Rank) -> list[PlannedChange]:
    """Return the planned effect of undoing a batch of decisions.

    Raises:
        ProblemsError: There is no such batch, or all of it was undone.
    """
    query = (
        select(moderation.c.comment_id, moderation.c.moderation_id)
        .where(moderation.c.batch == batch, ~moderation.c.undone)
        .order_by(moderation.c.moderation_id)
    )
    rows = connection.execute(query).all()
    if not batch or not rows:
        raise ProblemsError([f"没有可撤销的批次「{batch}」"])
    ids = [row.comment_id for row in rows]
    found = _comments(connection, ids)
    planned = []
    for row in rows:
        section_id, status, current_rank, text = found[row.comment_id]
        last = connection.execute(
            select(moderation.c.moderation_id, moderation.c.actor)
            .where(moderation.c.comment_id == row.comment_id, ~moderation.c.undone)
            .order_by(moderation.c.moderation_id.desc())
            .limit(1)
        ).one()
        refusal = "之后又有新的处理" if last.moderation_id != row.moderation_id else ""
        refusal = refusal or undo_refusal(current_rank, last.actor, actor, rank) or ""
        planned.append(PlannedChange(row.comment_id, section_id, text, status, refusal))
    return planned


def refuse_repeated(
    connection: Connection, planned: Sequence[PlannedChange], batch: str, *, undo: bool
) -> list[PlannedChange]:
    """Return planned changes, of which those that the batch has already requested are refused.

    A batch requests a change of a comment once, whether or not it was undone since, and undoes it once.
    """
    keys = {_key(_requests(batch, undo), each.comment_id): each.comment_id for each in planned}
    repeated = of_requests(connection, keys.keys()).keys()
    known = {keys[key] for key in repeated}
    refusal = f"批次「{batch}」已{'撤销过' if undo else '处理过'}这条评论"
    refusal += "" if undo else "；要再处理请换一个批次名"
    return [
        replace(each, refusal=refusal) if each.comment_id in known and not each.refusal else each for each in planned
    ]


def apply_status(
    connection: Connection,
    planned: Sequence[PlannedChange],
    wanted: CommentStatus,
    actor: Actor,
    batch: str,
    reason: str,
    now: datetime,
) -> int:
    """Queue events that set the status of the planned comments; return the number of events.

    Idempotent: batch and comment identify an event, so the same batch requested twice is applied once.
    """
    payload = {"status": int(wanted), "reason": reason, "batch": batch}
    return _append(connection, planned, EventKind.SET_STATUS, actor, _requests(batch, undo=False), payload, now)


def apply_undo(
    connection: Connection, planned: Sequence[PlannedChange], actor: Actor, batch: str, reason: str, now: datetime
) -> int:
    """Queue events that undo the planned decisions; return the number of events."""
    requests = _requests(batch, undo=True)
    return _append(connection, planned, EventKind.UNDO_STATUS, actor, requests, {"reason": reason}, now)


def _append(
    connection: Connection,
    planned: Sequence[PlannedChange],
    kind: EventKind,
    actor: Actor,
    requests: str,
    payload: dict[str, object],
    now: datetime,
) -> int:
    events = [
        EventInput(each.section_id, kind, actor, _key(requests, each.comment_id), each.comment_id, payload)
        for each in planned
        if not each.refusal
    ]
    append(connection, events, now)
    return len(events)


def _requests(batch: str, undo: bool) -> str:
    return f"undo {batch}" if undo else batch


def _key(requests: str, comment_id: int) -> str:
    return hashlib.sha256(f"{requests}\n{comment_id}".encode()).hexdigest()


def waiting_comments(connection: Connection, most: int = 200) -> list[PlannedChange]:
    """Return the comments that wait for review, oldest first."""
    query = (
        select(comment.c.comment_id)
        .where(comment.c.status == CommentStatus.REVIEW)
        .order_by(comment.c.comment_id)
        .limit(most)
    )
    ids = list(connection.execute(query).scalars())
    found = _comments(connection, ids) if ids else {}
    return [
        PlannedChange(number, section_id, text, status, f"由{RANK_NAMES[rank]}转审")
        for number, (section_id, status, rank, text) in found.items()
    ]


def _comments(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[int, CommentStatus, Rank, str]]:
    if not ids:
        raise ProblemsError(["没有写明任何评论"])
    if len(ids) > MOST:
        raise ProblemsError([f"一次至多处理 {MOST} 条评论，现有 {len(ids)} 条"])
    found: dict[int, tuple[int, CommentStatus, Rank, str]] = {}
    for part in chunks(sorted(set(ids))):
        query = (
            select(
                comment.c.comment_id,
                comment.c.section_id,
                comment.c.status,
                comment.c.status_rank,
                content.c.content,
            )
            .join(content, content.c.comment_id == comment.c.comment_id)
            .where(comment.c.comment_id.in_(part))
        )
        for row in connection.execute(query):
            status, rank = CommentStatus(row.status), Rank(row.status_rank)
            found[row.comment_id] = (row.section_id, status, rank, row.content)
    unknown = sorted(set(ids) - set(found))
    if unknown:
        raise ProblemsError([f"没有编号为 {number} 的评论" for number in unknown[:20]])
    return found
