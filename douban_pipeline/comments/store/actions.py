"""Who did what: the log of moderators' actions, read together with their decisions about comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, Integer, RowMapping, cast, func, insert, select
from typing_extensions import TypedDict

from douban_pipeline.comments.answers import At
from douban_pipeline.comments.event_handlers.state import PendingEvent
from douban_pipeline.comments.store.moderator_tables import action
from douban_pipeline.comments.store.tables import moderation
from douban_pipeline.comments.types import EventKind, Rank
from douban_pipeline.core.database import chunks

_NOTED = {EventKind.PIN, EventKind.FEATURE, EventKind.PROMOTE, EventKind.SET_SECTION, EventKind.ERASE}
"""Events that are noted where a moderator sent them; those that set a status are in `cmt_moderation`."""
_READ = 1000
"""Maximum number of decisions that one page reads: a batch has 500 at most."""


def note(
    connection: Connection,
    actor: str,
    what: str,
    about: str,
    now: datetime,
    detail: Mapping[str, Any] | None = None,
    reason: str = "",
) -> None:
    """Note an action, in the transaction that carries it out.

    Args:
        what: Name of the action, such as ban or word.
        about: What it is about, such as user:12.
        reason: Why.
    """
    row = {"actor": actor[:40], "action": what, "about": about[:64], "detail": dict(detail or {})}
    connection.execute(insert(action), {**row, "reason": reason[:300], "created_at": now})


def note_events(connection: Connection, events: Sequence[PendingEvent], now: datetime) -> None:
    """Note those events that moderators sent and that changed something."""
    for event in events:
        if event.kind in _NOTED and event.actor_rank >= Rank.OPERATOR and not event.refusal:
            about = f"comment:{event.comment_id}" if event.comment_id else f"section:{event.section_id}"
            detail = {**event.payload, "section": str(event.section_id)}
            note(connection, event.actor, event.kind.value, about, now, detail, str(event.payload.get("reason", "")))


class LogEntry(TypedDict):
    """What a moderator did; of decisions about comments with their number and how many were undone."""

    at: At
    actor: str
    action: str
    about: str
    reason: str
    detail: dict[str, Any]
    text: Annotated[str, Field(description="Beginning of the comment that it is about.")]
    batch: str
    comments: int
    undone: int


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries, newest first, and where the next page begins; see `read_log`."""

    entries: list[LogEntry]
    before: tuple[int, int] | None


def read_log(connection: Connection, before: tuple[int, int] | None, actor: str, most: int) -> LogPage:
    """Return what moderators did: decisions about comments, those of a batch as one entry, and other actions.

    Args:
        before: Ids of the last decision and the last action of the page before; None for the first page.
        actor: Only what this actor did; empty for everybody.
        most: Maximum number of entries. A batch that goes on beyond a page is on both.
    """
    m, a = moderation.c, action.c
    decisions = select(moderation).where(m.new_rank >= Rank.OPERATOR).order_by(m.moderation_id.desc())
    others = select(action).order_by(a.action_id.desc())
    if before is not None:
        decisions, others = decisions.where(m.moderation_id < before[0]), others.where(a.action_id < before[1])
    if actor:
        decisions, others = decisions.where(m.actor == actor), others.where(a.actor == actor)
    decided = list(connection.execute(decisions.limit(_READ)).mappings())
    done = list(connection.execute(others.limit(most)).mappings())
    rows = sorted((*decided, *done), key=lambda row: row["created_at"], reverse=True)
    last_decision, last_action = before or (2**63 - 1, 2**63 - 1)
    entries: dict[str, LogEntry] = {}
    for row in rows:
        name = _name(row)
        if name not in entries and len(entries) == most:
            break
        entries.setdefault(name, _entry(row))
        if "moderation_id" in row:
            last_decision = row["moderation_id"]
        else:
            last_action = row["action_id"]
    _count_batches(connection, entries)
    more = len(decided) == _READ or len(done) == most or len(entries) == most
    return LogPage(list(entries.values()), (last_decision, last_action) if more and entries else None)


def _name(row: RowMapping) -> str:
    if "moderation_id" not in row:
        return f"action {row['action_id']}"
    return f"batch {row['batch']} {row['action']}" if row["batch"] else f"decision {row['moderation_id']}"


def _entry(row: RowMapping) -> LogEntry:
    is_decision = "moderation_id" in row
    return {
        "at": row["created_at"].isoformat(),
        "actor": row["actor"],
        "action": row["action"],
        "about": f"comment:{row['comment_id']}" if is_decision else row["about"],
        "reason": row["reason"],
        "detail": {} if is_decision else row["detail"],
        "text": "",
        "batch": row["batch"] if is_decision else "",
        "comments": int(is_decision),
        "undone": int(row["undone"]) if is_decision else 0,
    }


def _count_batches(connection: Connection, entries: Mapping[str, LogEntry]) -> None:
    """Set the number of comments of batches, and of those that were undone."""
    named = {entry["batch"]: entry for entry in entries.values() if entry["batch"] and entry["action"] != "undo"}
    m = moderation.c
    query = select(m.batch, func.count(), func.sum(cast(m.undone, Integer))).where(m.action != "undo")
    for part in chunks(sorted(named)):
        for batch, comments, undone in connection.execute(query.where(m.batch.in_(part)).group_by(m.batch)):
            named[batch]["comments"], named[batch]["undone"] = comments, int(undone)
