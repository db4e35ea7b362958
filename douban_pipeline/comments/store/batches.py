"""Loads what a batch of events touches from the database, and writes back what the events changed.

A batch is one transaction: its rows, its counters and the marking of its events as applied are committed together,
under the lock of the shard and only while the owner's fencing token is valid. So a worker that is killed at any point
leaves all of a batch or nothing, and a worker that lost its lease can no longer change anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, Subquery, Table, insert, literal, select, tuple_, union_all, update

from douban_pipeline.comments.event_handlers.state import (
    BatchState,
    CommentReport,
    CommentState,
    ModerationEntry,
    PendingEvent,
    SectionState,
)
from douban_pipeline.comments.ids import first_of
from douban_pipeline.comments.store import moderator_tables, tables
from douban_pipeline.comments.store.actions import note_events
from douban_pipeline.comments.store.erasure import erase_texts
from douban_pipeline.comments.trust import network_of
from douban_pipeline.comments.types import (
    CommentStatus,
    EventKind,
    EventState,
    Rank,
    SectionStatus,
)
from douban_pipeline.core.database import chunks, upsert
from douban_pipeline.core.guesses import household

_AUTHORS = 32
"""Number of authors whose last texts one statement reads."""
_COMMENT_COLUMNS = tuple(tables.comment.c.keys())
_CHANGING = (
    "child_total",
    "child_visible",
    "like_count",
    "dislike_count",
    "report_count",
    "status",
    "status_rank",
    "status_actor",
    "attributes",
    "updated_at",
    "meta",
    "length",
)
"""Columns of a comment that change after it is written."""
_UNSCORED: dict[str, Any] = {
    "heat": 0,
    "score": 0.0,
    "parts": {},
    "decisions": [],
    "variant": "",
    "version": "",
    "score_at": None,
}
_SECTION_CHANGING = (
    "status",
    "attributes",
    "settings",
    "pinned",
    "total_count",
    "root_count",
    "visible_count",
    "hidden_count",
    "floor_seq",
    "event_seq",
    "active_at",
)


def select_pending(connection: Connection, shard: int, most: int) -> list[PendingEvent]:
    """Return at most ``most`` pending events of a shard, in order."""
    query = (
        select(tables.event)
        .where(tables.event.c.shard == shard, tables.event.c.state == EventState.PENDING)
        .order_by(tables.event.c.event_id)
        .limit(most)
    )
    return [event_of(row) for row in connection.execute(query).mappings()]


def still_pending(connection: Connection, events: Sequence[PendingEvent]) -> set[int]:
    """Return the ids of those events that are still pending."""
    found: set[int] = set()
    for part in chunks([event.event_id for event in events]):
        query = select(tables.event.c.event_id).where(
            tables.event.c.event_id.in_(part), tables.event.c.state == EventState.PENDING
        )
        found.update(connection.execute(query).scalars())
    return found


def event_of(row: RowMapping) -> PendingEvent:
    """Return an event row as the input of the steps."""
    return PendingEvent(
        event_id=row["event_id"],
        section_id=row["section_id"],
        kind=EventKind(row["kind"]),
        comment_id=row["comment_id"],
        actor=row["actor"],
        user_id=row["user_id"],
        actor_rank=Rank(row["actor_rank"]),
        payload=row["payload"],
        created_at=row["created_at"],
    )


def load_batch(
    connection: Connection, events: Sequence[PendingEvent], now: datetime, *, reports_to_review: int = 0
) -> BatchState:
    """Return the current state of everything that events touch."""
    batch = BatchState(now, reports_to_review=reports_to_review)
    sections = sorted({event.section_id for event in events})
    for row in _rows(connection, tables.section, "section_id", sections):
        kept = {field.name: row[field.name] for field in fields(SectionState)}
        kept |= {"status": SectionStatus(row["status"]), "pinned": [int(pinned) for pinned in row["pinned"]]}
        batch.sections[row["section_id"]] = SectionState(**kept)
    named = {event.comment_id for event in events if event.comment_id}
    named |= {int(event.payload["parent_id"]) for event in events if event.payload.get("parent_id")}
    pinning = {event.section_id for event in events if event.kind == EventKind.PIN} & set(batch.sections)
    named |= {pinned for number in pinning for pinned in batch.sections[number].pinned}
    batch.comments |= load_comments(connection, named)
    above = {link for comment in batch.comments.values() for link in (comment.root_id, comment.parent_id) if link}
    batch.comments |= load_comments(connection, above - set(batch.comments))
    _load_opinions(connection, batch, events)
    undone = {event.comment_id for event in events if event.kind == EventKind.UNDO_STATUS}
    for row in _rows(connection, tables.moderation, "comment_id", sorted(undone), order="moderation_id"):
        if not row["undone"]:
            batch.moderation.setdefault(row["comment_id"], []).append(_entry(row))
    return batch


def load_comments(connection: Connection, ids: Iterable[int]) -> dict[int, CommentState]:
    """Return comments by id, without their texts; ids that do not exist are missing."""
    found = {}
    for row in _rows(connection, tables.comment, "comment_id", sorted(ids)):
        given = {name: row[name] for name in _COMMENT_COLUMNS}
        given |= {"status": CommentStatus(row["status"]), "status_rank": Rank(row["status_rank"])}
        found[row["comment_id"]] = CommentState(**given)
    return found


def _load_opinions(connection: Connection, batch: BatchState, events: Sequence[PendingEvent]) -> None:
    voted = sorted({(event.comment_id, event.actor) for event in events if event.kind == EventKind.VOTE})
    for part in chunks(voted):
        query = select(tables.vote).where(tuple_(tables.vote.c.comment_id, tables.vote.c.voter).in_(part))
        for row in connection.execute(query):
            batch.votes[row.comment_id, row.voter] = row.value
    kinds = (EventKind.REPORT, EventKind.WITHDRAW_REPORT)
    reported = sorted({(event.comment_id, event.actor) for event in events if event.kind in kinds})
    for part in chunks(reported):
        query = select(tables.report).where(tuple_(tables.report.c.comment_id, tables.report.c.reporter).in_(part))
        for row in connection.execute(query):
            given = CommentReport(row.reason, row.detail, row.created_at, row.withdrawn)
            batch.reports[row.comment_id, row.reporter] = given


def _entry(row: RowMapping) -> ModerationEntry:
    given = {field.name: row[field.name] for field in fields(ModerationEntry)}
    given |= {name: CommentStatus(row[name]) for name in ("old_status", "new_status")}
    given |= {name: Rank(row[name]) for name in ("old_rank", "new_rank")}
    return ModerationEntry(**given)


def _rows(connection: Connection, table: Table, key: str, values: Sequence[int], order: str = "") -> list[RowMapping]:
    found: list[RowMapping] = []
    for part in chunks(values):
        query = select(table).where(table.c[key].in_(part)).order_by(table.c[order or key])
        found.extend(connection.execute(query).mappings())
    return found


def write_batch(connection: Connection, batch: BatchState, events: Sequence[PendingEvent]) -> None:
    """Write what events changed, and mark the events as applied."""
    _write_comments(connection, batch)
    _write_opinions(connection, batch)
    _write_moderation(connection, batch)
    note_events(connection, events, batch.now)
    if batch.notices:
        rows = [{field.name: getattr(notice, field.name) for field in fields(notice)} for notice in batch.notices]
        unique = {(row["user_id"], row["comment_id"], row["kind"]): row for row in rows}
        keys = ("user_id", "comment_id", "kind")
        upsert(connection, tables.notice, list(unique.values()), keys=keys, changes=["actor"])
    for section in batch.sections.values():
        given = {name: getattr(section, name) for name in _SECTION_CHANGING}
        connection.execute(update(tables.section).where(tables.section.c.section_id == section.section_id), given)
    _mark(connection, batch.now, events)


def _write_comments(connection: Connection, batch: BatchState) -> None:
    new = [batch.comments[number] for number in sorted(batch.new_comments)]
    if new:
        connection.execute(insert(tables.comment), [_comment_row(comment) for comment in new])
        contents = [
            {"comment_id": comment.comment_id, "content": comment.text, "content_hash": text_hash(comment.text or "")}
            for comment in new
        ]
        connection.execute(insert(tables.content), contents)
        addresses = [_address_row(comment) for comment in new if network_of(comment.address)]
        if addresses:
            connection.execute(insert(moderator_tables.address), addresses)
        roots = [comment for comment in new if comment.is_root]
        if roots:
            scores = [
                {
                    "comment_id": root.comment_id,
                    "section_id": root.section_id,
                    **(batch.scores.get(root.comment_id) or _UNSCORED),
                }
                for root in roots
            ]
            connection.execute(insert(tables.score), scores)
    erase_texts(connection, [batch.comments[number] for number in sorted(batch.erased_comments - batch.new_comments)])
    _write_edits(connection, [batch.comments[number] for number in sorted(batch.edited_comments)], batch.now)
    rescored = [row for number, row in sorted(batch.scores.items()) if number not in batch.new_comments]
    upsert(connection, tables.score, rescored, keys=["comment_id"], changes=list(_UNSCORED))
    changed = [batch.comments[number] for number in sorted(batch.changed_comments - batch.new_comments)]
    rows = [_comment_row(comment) for comment in changed]
    upsert(connection, tables.comment, rows, keys=["comment_id"], changes=_CHANGING)


def _write_edits(connection: Connection, edited: Sequence[CommentState], now: datetime) -> None:
    """Keep the texts that were there, replace them, and have them indexed and judged by a model again."""
    c = tables.content.c
    for part in chunks([comment.comment_id for comment in edited]):
        before = select(c.comment_id, c.content, literal(now, tables.edit.c.created_at.type)).where(
            c.comment_id.in_(part)
        )
        connection.execute(insert(tables.edit).from_select(["comment_id", "content", "created_at"], before))
    for comment in edited:
        text = comment.text or ""
        given = {"content": text, "content_hash": text_hash(text), "indexed": False, "judged": False}
        connection.execute(update(tables.content).where(c.comment_id == comment.comment_id), given)


def _address_row(comment: CommentState) -> dict[str, Any]:
    network = network_of(comment.address)
    found = {"comment_id": comment.comment_id, "address": comment.address, "network": network}
    return {**found, "created_at": comment.created_at}


def _comment_row(comment: CommentState) -> dict[str, Any]:
    return {name: getattr(comment, name) for name in _COMMENT_COLUMNS}


def _write_opinions(connection: Connection, batch: BatchState) -> None:
    votes = [
        {"comment_id": number, "voter": voter, "value": batch.votes[number, voter], "updated_at": batch.now}
        for number, voter in sorted(batch.changed_votes)
    ]
    upsert(connection, tables.vote, votes, keys=["comment_id", "voter"], changes=["value", "updated_at"])
    reports = [
        {"comment_id": number, "reporter": reporter, **_report_row(batch.reports[number, reporter])}
        for number, reporter in sorted(batch.changed_reports)
    ]
    columns = ("reason", "detail", "withdrawn", "created_at")
    upsert(connection, tables.report, reports, keys=["comment_id", "reporter"], changes=columns)
    hour = batch.now.replace(minute=0, second=0, microsecond=0)
    liked = [
        {
            "comment_id": number,
            "hour": hour,
            "section_id": batch.comments[number].section_id,
            "shown": 0,
            "liked": change,
        }
        for number, change in sorted(batch.liked.items())
        if change
    ]
    upsert(connection, tables.impression, liked, keys=["comment_id", "hour"], changes=["liked"], adds={"liked"})


def _report_row(report: CommentReport) -> dict[str, Any]:
    return {field.name: getattr(report, field.name) for field in fields(report)}


def _write_moderation(connection: Connection, batch: BatchState) -> None:
    entries = [entry for found in batch.moderation.values() for entry in found]
    undone = [entry.moderation_id for entry in entries if entry.moderation_id and entry.undone]
    for part in chunks(undone):
        statement = update(tables.moderation).where(tables.moderation.c.moderation_id.in_(part))
        connection.execute(statement, {"undone": True})
    new = sorted((entry for entry in entries if not entry.moderation_id), key=lambda entry: entry.event_id)
    if new:
        names = [field.name for field in fields(ModerationEntry) if field.name != "moderation_id"]
        connection.execute(insert(tables.moderation), [{name: getattr(entry, name) for name in names} for entry in new])


def _mark(connection: Connection, now: datetime, events: Sequence[PendingEvent]) -> None:
    # One upsert for all events: the rows exist, so the placeholder values of the other columns are never written.
    unwritten = {
        "shard": 0,
        "section_id": 0,
        "kind": "",
        "actor": "",
        "payload": {},
        "request_key": "",
        "created_at": now,
    }
    rows = [
        {
            **unwritten,
            "event_id": event.event_id,
            "state": EventState.APPLIED,
            "applied_at": now,
            "seq": event.seq or None,
            "refusal": event.refusal[:200],
        }
        for event in events
    ]
    upsert(connection, tables.event, rows, keys=["event_id"], changes=["state", "applied_at", "seq", "refusal"])


def text_hash(text: str) -> str:
    """Return a hash of a text that ignores whitespace and case."""
    return hashlib.sha1("".join(text.casefold().split()).encode(), usedforsecurity=False).hexdigest()


def recent_hashes(
    connection: Connection, authors: Iterable[tuple[int, int]], most: int = 10
) -> dict[tuple[int, int], set[str]]:
    """Return hashes of users' last texts, by user and section: the same words may be fine under two films."""
    found: dict[tuple[int, int], set[str]] = {author: set() for author in authors}
    rising = sorted(found)
    for start in range(0, len(rising), _AUTHORS):
        part = rising[start : start + _AUTHORS]
        # Padded to a power of two, so that there are only few different statements and each is compiled once.
        part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))
        for row in connection.execute(union_all(*(select(_last_texts(*author, most)) for author in part))):
            found[row.publisher_id, row.section_id].add(row.content_hash)
    return found


GUESTS_WINDOW = timedelta(hours=1)
"""How long a guest's texts are compared with what guests of the same address publish."""
_GUESTS_TEXTS = 500
"""Maximum number of guests' comments of that time that are compared, newest first."""


def recent_hashes_of_guests(
    connection: Connection, guests: Collection[tuple[str, int]], now: datetime
) -> dict[tuple[str, int], set[str]]:
    """Return hashes of what guests published within `GUESTS_WINDOW`, by address (see `household`) and section.

    A guest is nobody in particular, so whoever sends another browser name is compared, too.
    """
    found: dict[tuple[str, int], set[str]] = {guest: set() for guest in guests}
    c = tables.comment.c
    query = (
        select(c.section_id, moderator_tables.address.c.address, tables.content.c.content_hash)
        .join(tables.content, tables.content.c.comment_id == c.comment_id)
        .join(moderator_tables.address, moderator_tables.address.c.comment_id == c.comment_id)
        .where(c.publisher_id == 0, c.comment_id >= first_of(now - GUESTS_WINDOW))
        .order_by(c.comment_id.desc())
        .limit(_GUESTS_TEXTS)
    )
    for row in connection.execute(query):
        guest = (household(row.address), row.section_id)
        if guest in found:
            found[guest].add(row.content_hash)
    return found


def _last_texts(user: int, section: int, most: int) -> Subquery:
    c = tables.comment.c
    return (
        select(c.publisher_id, c.section_id, tables.content.c.content_hash)
        .join(tables.content, tables.content.c.comment_id == c.comment_id)
        .where(c.publisher_id == user, c.section_id == section)
        .order_by(c.comment_id.desc())
        .limit(most)
        .subquery()
    )
