"""Written columns that others changed in the CMS without saving the row: a batch edit there, or a program.

What other hands changed is theirs. Many changes of one column are a question to the operator, which stops nothing; the
answer is noted in the change log, so that the column counts as the CMS's own from then on.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select

from douban_pipeline.core.database import chunks, reading, run_transaction
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import BY_CMS, EDITED, SEEN_IN_CMS, decode, encode
from douban_pipeline.douban.writes.revert import ChangeSelection, RevertedChange, revert

WINDOW = timedelta(hours=24)
"""How far back writes are looked at: far enough for every run to be seen by the next ones, near enough to be cheap."""
QUESTION = "question:settle_cms_edits:"
"""How the name of the alert begins that asks; the columns follow."""
_MANY, _SHARE = 10, 0.2
"""From how many videos on, and from what share of those written, changes of a column are more than single edits."""


class CmsEditsAnswer(enum.Enum):
    """What an operator says of columns that were changed in the CMS. Members are named as they are typed."""

    keep = "keep"
    """The changes were intended: they stay."""

    restore = "restore"
    """They were not: what was written before is written again."""


@dataclass(frozen=True, slots=True)
class CmsEdit:
    """A column that no longer holds what the change ``change_id`` wrote."""

    vod_id: int
    column: str
    change_id: int
    written: Any
    current: Any


@dataclass(frozen=True, slots=True)
class CmsEdits:
    """All such columns, and how many videos each column was written to."""

    found: list[CmsEdit]
    written: Mapping[str, int]

    def widespread(self) -> dict[str, int]:
        """Return the columns of which so many were changed that one hand did it, with the number of their videos."""
        counts = Counter(edit.column for edit in self.found)
        return {
            column: count
            for column, count in counts.items()
            if count >= _MANY and count > _SHARE * self.written[column]
        }


def cms_edits(services: Services, connection: Connection, since: datetime | None = None) -> CmsEdits:
    """Find columns that no longer hold what their newest change since ``since`` wrote; by default of `WINDOW`.

    Unless the CMS itself saved the row since (its `vod_time`, in whole seconds, is not earlier). A change that only
    records what was there, as one that locks a synopsis does, wrote nothing. An id that was emptied is told apart, see
    `chain.due.cleared_ids`.
    """
    log = services.tables.log
    # A day holds tens of thousands: only what is needed is read.
    query = select(log.c.change_id, log.c.vod_id, log.c.old_values, log.c.new_values, log.c.applied_at).where(
        log.c.state == ChangeState.APPLIED, log.c.applied_at >= (since or services.clock.now() - WINDOW)
    )
    newest: dict[int, dict[str, tuple[int, Any]]] = {}
    times: dict[int, int] = {}
    for change_id, vod_id, before, after, at in connection.execute(query.order_by(log.c.change_id)).tuples():
        times[vod_id] = int(at.timestamp())
        old, known = decode(before), newest.setdefault(vod_id, {})
        for column, value in decode(after).items():
            known[column] = (change_id, value)
            if old.get(column) == value:
                del known[column]
    found = []
    for vod_ids in chunks(sorted(newest)):
        for vod_id, row in services.cms.rows(connection, vod_ids).items():
            if row["vod_time"] < times[vod_id]:
                found += [
                    CmsEdit(vod_id, column, change_id, value, row[column])
                    for column, (change_id, value) in newest[vod_id].items()
                    if row[column] != value and (column != "vod_douban_id" or row[column])
                ]
    return CmsEdits(found, Counter(column for known in newest.values() for column in known))


def asked_edits(services: Services, connection: Connection) -> tuple[list[str], list[CmsEdit]]:
    """Return the columns that a question is asked about, and their changes; none for no question.

    While its alert is open a question is asked on, however old the writes have become.
    """
    alert = services.tables.alert
    asked = connection.execute(
        select(alert.c.cause, alert.c.first_at).where(alert.c.open_key.startswith(QUESTION, autoescape=True))
    ).first()
    edits = cms_edits(services, connection, asked.first_at - WINDOW if asked else None)
    columns = {*edits.widespread(), *(asked.cause.removeprefix(QUESTION).split(",") if asked else ())}
    found = [edit for edit in edits.found if edit.column in columns]
    return (sorted(columns) if found else []), found


def settle_edits(
    change_log: ChangeLog,
    edits: list[CmsEdit],
    answer: CmsEditsAnswer,
    reviewer: str,
    *,
    dry_run: bool,
) -> list[RevertedChange]:
    """Note the changes as the CMS's own; if they are to be undone, revert them, and return what came of each."""
    if dry_run or not edits:
        return []
    by_video: dict[int, list[CmsEdit]] = {}
    for edit in edits:
        by_video.setdefault(edit.vod_id, []).append(edit)
    log, now = change_log.tables.log, change_log.clock.now()
    rows = [
        {
            "vod_id": vod_id,
            "shard": shard_of(vod_id),
            "action": EDITED,
            "old_values": encode({edit.column: edit.written for edit in of_video}),
            "new_values": encode({edit.column: edit.current for edit in of_video}),
            "state_old": {},
            "state_new": {},
            "reason": f"在 CMS 中被改动；{reviewer} 答：{'有意的' if answer is CmsEditsAnswer.keep else '不是有意的'}",
            "operator": BY_CMS,
            "batch_id": SEEN_IN_CMS,
            "run_id": change_log.run_id,
            "state": ChangeState.APPLIED,
            "prepared_at": now,
            "applied_at": now,
        }
        for vod_id, of_video in by_video.items()
    ]
    run_transaction(change_log.engine, lambda connection: connection.execute(insert(log), rows))
    if answer is CmsEditsAnswer.keep:
        return []
    with reading(change_log.engine) as connection:
        noted = select(log.c.change_id).where(log.c.action == EDITED, log.c.run_id == change_log.run_id)
        chosen = ChangeSelection(tuple(connection.execute(noted).scalars()))
    return revert(change_log, chosen, operator=reviewer, reason="CMS 中的改动不是有意的", dry_run=False)
