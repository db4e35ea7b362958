"""Forgets what is kept no longer: addresses, finished events, texts of removed comments, earlier texts, ended bans."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import ColumnElement, Engine, Table, delete, func, or_, select

from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.events import EventInput, append
from douban_pipeline.comments.store.moderator_tables import action, address, trust
from douban_pipeline.comments.store.tables import comment, content, edit, event
from douban_pipeline.comments.types import BIGGEST_ID, IMPORTED, Actor, CommentStatus, EventKind, EventState, Rank
from douban_pipeline.core.database import chunks, reading, run_statement, run_transaction

LOG_DAYS = 3 * 365
"""Days that the log of moderators' actions is kept: as long as somebody may ask why. Addresses in it go earlier."""
MOST_TEXTS = 20_000
"""Maximum number of texts that one run has erased; the rest follows in the next night."""
_AT_ONCE = 1000
_KEEPER = Actor("retention", rank=Rank.AUTOMATION)


def forget_expired(services: CommentsServices, *, dry_run: bool) -> dict[str, int]:
    """Delete what is older than the retention, and have workers erase the texts of comments removed before it.

    Returns:
        How many rows of each kind were deleted, or would be; of texts how many erasures were requested.
    """
    now = services.clock.now()
    before, engine = now - timedelta(days=services.settings.retention_days), services.engine
    expired = {
        "addresses": (address, address.c.created_at < before),
        "events": (event, _finished(engine, before)),
        "earlier_texts": (edit, edit.c.created_at < before),
        "ended_levels": (trust, or_(trust.c.ended_at < before, trust.c.until < before)),
        "log_entries": (action, _logged(before, now - timedelta(days=LOG_DAYS))),
    }
    done = {name: _delete(engine, table, old, dry_run=dry_run) for name, (table, old) in expired.items()}
    return {**done, "texts": _erase_texts(engine, before, now, dry_run=dry_run)}


def _finished(engine: Engine, before: datetime) -> ColumnElement[bool]:
    # Numbers of events rise with time: the first one that is kept ends the search, which no index of times has to.
    first_kept = select(event.c.event_id).where(event.c.created_at >= before).order_by(event.c.event_id).limit(1)
    with reading(engine) as connection:
        edge = connection.execute(first_kept).scalar() or BIGGEST_ID
    # What the CMS hid as it was imported is read later, too, see `cms_moderation`; it holds no text.
    hidden = event.c.request_key.like(f"{IMPORTED}%:hidden")
    old = (event.c.event_id < edge) & (event.c.created_at < before)
    return old & (event.c.state == EventState.FINISHED) & ~hidden


def _logged(before: datetime, long_before: datetime) -> ColumnElement[bool]:
    of_address = action.c.about.startswith("address:") & (action.c.created_at < before)
    return or_(action.c.created_at < long_before, of_address)


def _delete(engine: Engine, table: Table, old: ColumnElement[bool], *, dry_run: bool) -> int:
    """Delete rows in small transactions, oldest first; return their number."""
    if dry_run:
        with reading(engine) as connection:
            return connection.execute(select(func.count()).select_from(table).where(old)).scalar_one()
    [key] = table.primary_key.columns
    done = 0
    while True:
        with reading(engine) as connection:
            ids = list(connection.execute(select(key).where(old).order_by(key).limit(_AT_ONCE)).scalars())
        if not ids:
            return done
        run_statement(engine, delete(table).where(key.in_(ids), old))
        done += len(ids)


def _erase_texts(engine: Engine, before: datetime, now: datetime, *, dry_run: bool) -> int:
    """Request the erasure of texts of comments that were removed long ago; return how many."""
    c = comment.c
    query = (
        select(c.comment_id, c.section_id)
        .join(content, content.c.comment_id == c.comment_id)
        .where(c.status == CommentStatus.DELETED, c.updated_at < before, content.c.content != "")
        .order_by(c.comment_id)
        .limit(MOST_TEXTS)
    )
    with reading(engine) as connection:
        found = connection.execute(query).all()
    if not dry_run:
        for part in chunks(found, _AT_ONCE):
            given = [
                EventInput(row.section_id, EventKind.ERASE, _KEEPER, f"erase:{row.comment_id}", row.comment_id)
                for row in part
            ]
            run_transaction(engine, partial(append, given=given, now=now))
    return len(found)
