"""Follows what people hide, delete or show again in the CMS, and writes back what people decided here, each by setting.

The CMS's table tells no time of a change and has no index on the status, so comments are compared by number: in every
round the newest imported ones, those displayed lately, and the next ones of a rotation through all of them. A round
reads a bounded number of rows by their primary key, however large the library is.

Only a change in the CMS is followed, not a difference: what an operator here restored stays, although the CMS still
hides it, until somebody changes it there again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import partial
from threading import Event
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Engine, MetaData, Row, Table, func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.comments.cms_export import CommentExport
from douban_pipeline.comments.cms_import import source_of
from douban_pipeline.comments.services import CommentsServices
from douban_pipeline.comments.store.events import EventInput, append, of_requests
from douban_pipeline.comments.store.marks import Mark, read_mark, store_mark
from douban_pipeline.comments.store.tables import cms_status, comment, export, impression, moderation, section, shard
from douban_pipeline.comments.types import CMS_ACTOR, IMPORTED, Actor, CommentStatus, EventKind, Rank
from douban_pipeline.core.database import chunks, reading, run_transaction, upsert
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.settings_base import BASE_PREFIX

_LOG = logging.getLogger(__name__)

ROUND_SECONDS = 15.0
"""Seconds between two rounds: a change of a newer or displayed comment is applied here within a minute."""
NEWEST = 2_000
"""Number of newest imported comments that every round compares: people moderate what has just been written."""
DISPLAYED = 1_000
"""Maximum number of lately displayed comments that a round compares."""
ROTATION = 10_000
"""Number of further comments that a round compares: 40,000 a minute, a million in 25 minutes."""
_PAUSE_SECONDS = 60.0
"""Seconds until a database that failed is asked again."""
_SECTIONS, _LATELY = 100, timedelta(hours=2)
_WRITTEN_BACK = "written-back"
_AT_ONCE = 500
_NEVER = datetime(2000, 1, 1, tzinfo=UTC)
_CMS = Actor(CMS_ACTOR, name="CMS", rank=Rank.OPERATOR)


class CmsStatus(IntEnum):
    """What the CMS does with a comment, as stored in `cmt_cms_status`."""

    DELETED = -1
    HIDDEN = 0
    SHOWN = 1


_REASONS = {
    CmsStatus.DELETED: "在 CMS 中已删除",
    CmsStatus.HIDDEN: "在 CMS 中被隐藏",
    CmsStatus.SHOWN: "在 CMS 中恢复显示",
}


@dataclass(frozen=True, slots=True)
class CmsStatusChange:
    """A change in the CMS of an imported comment.

    Attributes:
        wanted: Status here that follows from it; None where nothing is to be changed here.
    """

    number: int
    comment_id: int
    section_id: int
    status: CmsStatus
    wanted: CommentStatus | None


def wanted_status(status: CommentStatus, cms: CmsStatus, *, by_cms: bool) -> CommentStatus | None:
    """Return the status here that follows from a change in the CMS; None where nothing is to be changed."""
    if cms == CmsStatus.SHOWN:
        return CommentStatus.NORMAL if by_cms and status != CommentStatus.NORMAL else None
    if cms == CmsStatus.DELETED:
        return CommentStatus.DELETED if status != CommentStatus.DELETED else None
    followed = status == CommentStatus.NORMAL or (by_cms and status == CommentStatus.DELETED)
    return CommentStatus.REVIEW if followed else None


class CmsModeration:
    """Follows the CMS's moderation, and writes back ours; one of several workers does it, the owner of shard 0."""

    def __init__(self, services: CommentsServices) -> None:
        self._services, self._engine, self._clock = services, services.engine, services.clock
        settings = services.settings
        self._follows, self._writes = settings.import_batch > 0, settings.export
        names = ("comment_id", "comment_status")
        self._table = Table(
            f"{settings.table_prefix}comment", MetaData(), *(Column(name, BigInteger) for name in names)
        )
        self._last = IMPORTED

    @property
    def is_on(self) -> bool:
        """Whether a CMS is configured and a setting asks for one of both directions."""
        return bool(self._services.settings.library_url.get_secret_value()) and (self._follows or self._writes)

    def run(self, stopped: Event) -> None:
        """Work until ``stopped`` is set, a round every `ROUND_SECONDS`; pause after a failure of a database."""
        while not stopped.is_set():
            pause = ROUND_SECONDS
            try:
                self.turn()
            except (SQLAlchemyError, DatabaseError, ProblemsError) as error:
                pause = _PAUSE_SECONDS
                _LOG.warning("the CMS's moderation is not followed for %.0f s: %s", pause, error)
            stopped.wait(pause)

    def turn(self) -> int:
        """Do a round if this worker is the one that does it; return the number of followed and written changes."""
        now = self._clock.now()
        with reading(self._engine) as connection:
            query = select(shard.c.owner).where(shard.c.shard == 0, shard.c.lease_until > now)
            if connection.execute(query).scalar() != self._services.owner:
                return 0
        url = self._services.settings.library_url.get_secret_value()
        library = self._services.others.engine_with(self._table, url, setting=f"{BASE_PREFIX}DATABASE_URL")
        if library is None:
            return 0
        written = self._write_back(library, now) if self._writes else 0
        return written + (self._follow(library, now) if self._follows else 0)

    def _write_back(self, library: Engine, now: datetime) -> int:
        """Write back the imported comments whose status was decided since the last round; at first all that differ."""
        with reading(self._engine) as connection:
            known = read_mark(connection, _WRITTEN_BACK)
            newest = connection.execute(select(func.max(moderation.c.moderation_id))).scalar() or 0
            query = select(moderation.c.moderation_id, moderation.c.comment_id)
            query = query.where(moderation.c.moderation_id > (known.number if known else newest))
            rows = connection.execute(query.order_by(moderation.c.moderation_id).limit(ROTATION)).all()
        if known is not None and not rows:
            return 0
        last = rows[-1].moderation_id if rows else newest
        ids = sorted({row.comment_id for row in rows}) if known is not None else None
        export_to = CommentExport(self._engine, library, self._services.settings.table_prefix)
        batch = f"moderation {rows[0].moderation_id if rows else 0}-{last} {now.timestamp():.0f}"
        written = export_to.run(batch, "auto", now, ids=ids, dry_run=False).written
        run_transaction(self._engine, lambda connection: store_mark(connection, Mark(_WRITTEN_BACK, last, now)))
        return written

    def _follow(self, library: Engine, now: datetime) -> int:
        with reading(self._engine) as connection:
            rows = {row.comment_id: row for row in self._rows(connection, now)}
        done = 0
        for part in chunks(list(rows.values()), _AT_ONCE):
            by_number = {int(row.source_key.removeprefix(IMPORTED)): row for row in part}
            with reading(library) as connection:
                c = self._table.c
                query = select(c.comment_id, c.comment_status).where(c.comment_id.in_(by_number))
                theirs = {number: CmsStatus(bool(status)) for number, status in connection.execute(query)}
            with reading(self._engine) as connection:
                changes = _changes(connection, by_number, theirs)
            if changes:
                done += run_transaction(self._engine, partial(_record, changes=changes, now=now))
        if done:
            self._services.wake_workers()
        return done

    def _rows(self, connection: Connection, now: datetime) -> list[Row[Any]]:
        """Return the comments that this round compares; some may be returned twice."""
        c = comment.c
        columns = select(c.comment_id, c.section_id, c.status, c.status_actor, c.source_key)
        imported = columns.where(c.source_key > IMPORTED, c.source_key < f"{IMPORTED}:")
        found = list(connection.execute(imported.order_by(c.source_key.desc()).limit(NEWEST)))
        following = columns.where(c.source_key > self._last, c.source_key < f"{IMPORTED}:")
        rotated = list(connection.execute(following.order_by(c.source_key).limit(ROTATION)))
        self._last = rotated[-1].source_key if len(rotated) == ROTATION else IMPORTED
        active = select(section.c.section_id).order_by(section.c.active_at.desc()).limit(_SECTIONS)
        sections = list(connection.execute(active).scalars())
        displayed = select(impression.c.comment_id).where(
            impression.c.section_id.in_(sections), impression.c.hour > now - _LATELY
        )
        ids = list(connection.execute(displayed.limit(DISPLAYED)).scalars())
        for part in chunks(ids, _AT_ONCE):
            found += connection.execute(columns.where(c.comment_id.in_(part), c.source_key.is_not(None)))
        return found + rotated


def _changes(
    connection: Connection, rows: Mapping[int, Row[Any]], theirs: Mapping[int, CmsStatus]
) -> list[CmsStatusChange]:
    """Return the comments whose status in the CMS is another than when it was last seen."""
    query = select(cms_status.c.number, cms_status.c.status, cms_status.c.seen_at)
    seen = {row.number: row for row in connection.execute(query.where(cms_status.c.number.in_(rows)))}
    there = {number: theirs.get(number, CmsStatus.DELETED) for number in rows}
    usual = CmsStatus.SHOWN
    differing = [number for number in rows if there[number] != (seen[number].status if number in seen else usual)]
    if not differing:
        return []
    hidden, written = _hidden_when_imported(connection, differing), _written_here(connection, differing)
    found = []
    for number in differing:
        row, status = rows[number], there[number]
        by_cms = row.status_actor == CMS_ACTOR or (number in hidden and row.status_actor == "auto")
        of_us = written.get(number, _NEVER) >= (seen[number].seen_at if number in seen else _NEVER + timedelta(days=1))
        known = status == CmsStatus.HIDDEN and (of_us or (number not in seen and number in hidden))
        wanted = None if known else wanted_status(CommentStatus(row.status), status, by_cms=by_cms)
        found.append(CmsStatusChange(number, row.comment_id, row.section_id, status, wanted))
    return found


def _hidden_when_imported(connection: Connection, numbers: Sequence[int]) -> set[int]:
    """Return the comments that the CMS hid already when they were imported."""
    keys = {f"{source_of(number)}:hidden": number for number in numbers}
    return {keys[key] for key in of_requests(connection, keys.keys())}


def _written_here(connection: Connection, numbers: Sequence[int]) -> dict[int, datetime]:
    """Return when comments were last hidden in the CMS by an export, by their number there."""
    hidden = (export.c.state == "applied", export.c.new_status == CmsStatus.HIDDEN)
    query = select(export.c.number, export.c.created_at).where(export.c.number.in_(numbers), *hidden)
    return {row.number: row.created_at for row in connection.execute(query.order_by(export.c.export_id))}


def _record(connection: Connection, changes: Sequence[CmsStatusChange], now: datetime) -> int:
    """Write the events of changes, and what was seen; return the number of events."""
    events = [
        EventInput(
            change.section_id,
            EventKind.SET_STATUS,
            _CMS,
            f"cms:{change.number}:{int(change.status)}:{now.timestamp():.3f}",
            change.comment_id,
            {"status": int(change.wanted), "reason": _REASONS[change.status]},
        )
        for change in changes
        if change.wanted is not None
    ]
    append(connection, events, now)
    seen = [{"number": change.number, "status": int(change.status), "seen_at": now} for change in changes]
    upsert(connection, cms_status, seen, keys=("number",), changes=("status", "seen_at"))
    return len(events)
