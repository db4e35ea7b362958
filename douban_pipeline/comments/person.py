"""A person's data: found, exported and erased. What others wrote stays, also where it answers the person."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, update

from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.actions import note
from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.store.moderator_tables import address, trust
from douban_pipeline.comments.store.tables import comment, content, edit, event, moderation, notice, report, view, vote
from douban_pipeline.comments.trust import USER
from douban_pipeline.comments.types import Actor, EventKind, EventState, Rank
from douban_pipeline.core.database import chunks, reading, run_transaction

GONE = "gone"
"""What stands where an erased person's key stood."""
_ERASER = Actor("erasure", name="清除", rank=Rank.AUDIT)
_COLUMNS: Mapping[str, tuple[Table, tuple[str, ...]]] = {
    "votes": (vote, ("comment_id", "value", "updated_at")),
    "reports": (report, ("comment_id", "reason", "detail", "withdrawn", "created_at")),
    "views": (view, ("comment_id", "seen_at")),
    "notices": (notice, ("kind", "comment_id", "actor", "seen", "created_at")),
    "events": (event, ("kind", "comment_id", "payload", "refusal", "created_at")),
    "decisions": (moderation, ("comment_id", "action", "reason", "undone", "created_at")),
    "levels": (trust, ("level", "reason", "created_at", "until", "ended_at")),
}


def _conditions(user_id: int) -> dict[str, ColumnElement[bool]]:
    key = f"u:{user_id}"
    return {
        "votes": vote.c.voter == key,
        "reports": report.c.reporter == key,
        "views": view.c.viewer == key,
        "notices": notice.c.user_id == user_id,
        "events": event.c.user_id == user_id,
        "decisions": moderation.c.actor == key,
        "levels": (trust.c.kind == USER) & (trust.c.subject == str(user_id)),
    }


def count_data(connection: Connection, user_id: int) -> dict[str, int]:
    """Return how many rows of each kind are a user's; comments, their earlier texts and addresses among them."""
    own = select(comment.c.comment_id).where(comment.c.publisher_id == user_id)
    counts = {"comments": select(func.count()).select_from(own.subquery())}
    counts |= {
        name: select(func.count()).select_from(table).where(table.c.comment_id.in_(own))
        for name, table in (("earlier_texts", edit), ("addresses", address))
    }
    for name, condition in _conditions(user_id).items():
        counts[name] = select(func.count()).select_from(_COLUMNS[name][0]).where(condition)
    return {name: connection.execute(query).scalar_one() for name, query in counts.items()}


def export_data(connection: Connection, user_id: int) -> dict[str, Any]:
    """Return everything that is stored of a user, as JSON holds it."""
    c = comment.c
    query = (
        select(c.comment_id, c.section_id, c.parent_id, c.created_at, c.status, c.like_count, c.meta, content.c.content)
        .join(content, content.c.comment_id == c.comment_id)
        .where(c.publisher_id == user_id)
        .order_by(c.comment_id)
    )
    comments = {row["comment_id"]: {**_plain(row), "earlier": []} for row in connection.execute(query).mappings()}
    for part in chunks(list(comments)):
        for row in connection.execute(select(edit).where(edit.c.comment_id.in_(part)).order_by(edit.c.edit_id)):
            comments[row.comment_id]["earlier"].append({"content": row.content, "at": row.created_at.isoformat()})
        for row in connection.execute(select(address).where(address.c.comment_id.in_(part))):
            comments[row.comment_id]["address"] = row.address
    found: dict[str, Any] = {"user": user_id, "comments": list(comments.values())}
    for name, condition in _conditions(user_id).items():
        table, columns = _COLUMNS[name]
        rows = connection.execute(select(*(table.c[each] for each in columns)).where(condition)).mappings()
        found[name] = [_plain(row) for row in rows]
    return found


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


def erase_data(services: CommentsServices, user_id: int, author: str) -> dict[str, int]:
    """Erase what is stored of a user; return how many rows of each kind there were.

    Comments are deleted and their texts erased by workers, as events. Likes and reports count on, as those of nobody.
    Levels in force stay: a ban must not end by asking. May be repeated, also after an interruption.
    """
    now, key = services.clock.now(), f"u:{user_id}"

    def work(connection: Connection) -> dict[str, int]:
        counts = count_data(connection, user_id)
        nobody = f"{GONE}:{secrets.token_hex(12)}"
        connection.execute(update(vote).where(vote.c.voter == key).values(voter=nobody))
        connection.execute(update(report).where(report.c.reporter == key).values(reporter=nobody, detail=""))
        connection.execute(delete(view).where(view.c.viewer == key))
        connection.execute(delete(notice).where(notice.c.user_id == user_id))
        connection.execute(update(notice).where(notice.c.actor == key).values(actor=""))
        for column in (moderation.c.actor, moderation.c.old_actor):
            connection.execute(update(moderation).where(column == key).values({column.name: GONE}))
        connection.execute(update(comment).where(comment.c.status_actor == key).values(status_actor=GONE))
        done = (event.c.user_id == user_id) & (event.c.state == EventState.FINISHED)
        connection.execute(delete(event).where(done))
        connection.execute(delete(trust).where(_conditions(user_id)["levels"], trust.c.ended_at.is_not(None)))
        note(connection, author, "person", f"user:{user_id}", now, {"erased": counts})
        return counts

    counts = run_transaction(services.engine, work)
    c = comment.c
    with reading(services.engine) as connection:
        own = connection.execute(select(c.comment_id, c.section_id).where(c.publisher_id == user_id)).all()
    for part in chunks(own):
        given = [
            EventInput(
                row.section_id,
                EventKind.ERASE,
                _ERASER,
                f"erase person:{row.comment_id}",
                row.comment_id,
                {"person": True, "reason": "应本人要求清除"},
            )
            for row in part
        ]
        run_transaction(services.engine, partial(append, given=given, now=now))
    services.wake_workers()
    return counts
