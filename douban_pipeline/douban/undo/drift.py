"""Where the CMS no longer holds what was written: which column, what was written and when, and the likely author.

Locked values are compared with what was locked, whenever that was; what was written into other columns is followed
for `WINDOW`. Videos are looked at in pieces, by index. A synopsis that was written, and stands, is also compared with
the blurb beside it: that is what the CMS's own template shows.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, select, true

from douban_pipeline.cms.maccms import in_recycle_bin
from douban_pipeline.cms.values import is_beginning, readable
from douban_pipeline.core.database import reading
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import BY_PEOPLE, ChangeState, DecisionAction, DecisionState
from douban_pipeline.douban.undo.last_writes import (
    LastWrite,
    LastWrites,
    first_change_since,
    full_writes,
    locked_texts,
    new_values_since,
)
from douban_pipeline.douban.wording import DRIFT_LOOKS
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import RESTORE, REVERT, Change
from douban_pipeline.douban.writes.refusals import SYNOPSIS_COLUMNS, restore_refusal

WINDOW = timedelta(days=30)
"""How long what was written into a column is followed that is not locked."""

_CHUNK = 500
_ID = "vod_douban_id"
_SYNOPSIS, _BLURB = "vod_content", "vod_blurb"
ANNOTATED = frozenset({"vod_tag", _BLURB})
"""What the CMS's own AI annotations write of our columns when a person adopts them, without touching `vod_time`."""
_PUTS_BACK = frozenset({REVERT, RESTORE, DecisionAction.lock_intro})
"""Actions whose synopsis may be the site's own."""


class DriftCause(enum.StrEnum):
    """Who probably changed a value."""

    STALE_FORM = "stale_form"
    """The CMS saved the row since, with the value from before our write."""
    SAVED = "saved"
    """The CMS saved or collected the row since."""
    PROGRAM = "program"
    """`vod_time` is older: another program wrote the table itself, or the CMS's batch edit did."""
    ANNOTATED = "annotated"
    """The same, in a column that adopted AI annotations write as well."""
    UNKNOWN = "unknown"
    """The value was never ours; it may be older than our write."""


class DriftKind(enum.StrEnum):
    """The severity of a difference, most severe first."""

    LOCKED = "locked"
    """A value that is locked."""
    ID = "id"
    """The id of a video."""
    PUT_BACK = "put_back"
    """The value from before our write is in the CMS again: the work is lost."""
    APART = "apart"
    """The synopsis is as written, and the blurb, which the CMS's template shows, is not its beginning."""
    EDITED = "edited"
    """An ordinary later edit."""


SERIOUS = (DriftKind.LOCKED, DriftKind.ID, DriftKind.PUT_BACK)


@dataclass(frozen=True, slots=True)
class Drift:
    """A column whose value is not what was written or locked.

    Attributes:
        written: What was written, or locked.
        current: What the CMS holds now.
        change: The change that wrote or noted it; None for an id that was locked as the CMS had it.
        at: When that was.
        douban_id: The subject that our state has the video linked to.
        held: Why a locked value is not to be restored, empty if it may be.
        state: Our state row.
        apart: Of a blurb: whether the synopsis beside it is as written, and does not begin like this. If the blurb was
            never written, the synopsis is what was.
    """

    vod_id: int
    title: str
    column: str
    kind: DriftKind
    looks: DriftCause
    written: Any
    current: Any
    change: LastWrite | None
    at: datetime | None
    held: str
    state: Mapping[Any, Any]
    apart: bool = False


@dataclass(frozen=True, slots=True)
class DriftBatch:
    """One checked part of the library: number of videos, number of uncertain columns, and findings."""

    videos: int
    unsure: int
    found: tuple[Drift, ...]


def drifts(services: Services) -> Iterator[DriftBatch]:
    """Yield the differences, one part of the library at a time, in the order of `vod_id`."""
    with reading(services.engine) as connection:
        first = first_change_since(connection, services.tables, services.clock.now() - WINDOW)
    for vod_ids in _pieces(services, first):
        with reading(services.engine) as connection:
            yield _VideoPiece(services, connection, vod_ids, first).look()


def _pieces(services: Services, first: int | None) -> Iterator[list[int]]:
    """Yield the videos that have a lock, or a change from ``first`` on."""
    log, video = services.tables.log, services.tables.video
    # A way each: no index serves two locks at once.
    ways = [
        _keys(services.engine, video.c.vod_id, lock == true())
        for lock in (video.c.douban_id_locked, video.c.intro_locked)
    ]
    if first is not None:
        ways.append(_keys(services.engine, log.c.vod_id, log.c.change_id >= first))
    chunk: list[int] = []
    for vod_id in heapq.merge(*ways):
        if chunk and chunk[-1] == vod_id:
            continue
        if len(chunk) >= _CHUNK:
            yield chunk
            chunk = []
        chunk.append(vod_id)
    if chunk:
        yield chunk


def _keys(engine: Engine, key: ColumnElement[int], condition: ColumnElement[bool]) -> Iterator[int]:
    last = 0
    while True:
        query = select(key).where(key > last, condition).distinct().order_by(key).limit(4 * _CHUNK)
        with reading(engine) as connection:
            found = list(connection.execute(query).scalars())
        yield from found
        if len(found) < 4 * _CHUNK:
            return
        last = found[-1]


class _VideoPiece:
    """Some videos, checked together."""

    def __init__(self, services: Services, connection: Connection, vod_ids: Sequence[int], first: int | None) -> None:
        self.services, self.connection, self.first = services, connection, first
        live = services.cms.rows(connection, vod_ids)
        self.rows = {vod_id: row for vod_id, row in live.items() if not in_recycle_bin(row)}
        self.states = self._states()
        self.writes = new_values_since(connection, services.tables, list(self.rows), first) if first else {}
        texts = [
            vod_id for vod_id, state in self.states.items() if state["intro_locked"] and self._text_unknown(vod_id)
        ]
        older = locked_texts(connection, services.tables, texts) if texts else {}
        for vod_id, last in older.items():
            newer = self.writes.setdefault(vod_id, LastWrites())
            texts_of = {column: last.by_column[column] for column in SYNOPSIS_COLUMNS & set(last.by_column)}
            newer.by_column = {**texts_of, **newer.by_column}
            newer.unsure |= (last.unsure & SYNOPSIS_COLUMNS) - set(newer.by_column)

    def _states(self) -> dict[int, RowMapping]:
        video = self.services.tables.video
        names = (
            *("vod_id", _ID, "douban_id_source", "douban_review_status", "douban_review_reason"),
            *("douban_id_locked", "douban_id_lock_time", "intro_locked", "intro_lock_time"),
        )
        query = select(*(video.c[name] for name in names)).where(video.c.vod_id.in_(list(self.rows)))
        return {row["vod_id"]: row for row in self.connection.execute(query).mappings()}

    def _text_unknown(self, vod_id: int) -> bool:
        known = self.writes.get(vod_id)
        return known is None or not set(known.by_column) >= SYNOPSIS_COLUMNS

    def look(self) -> DriftBatch:
        suspects: dict[int, set[str]] = {}
        apart: list[Drift] = []
        unsure = 0
        for vod_id, state in self.states.items():
            row, last = self.rows[vod_id], self.writes.get(vod_id, LastWrites())
            different = {column for column, write in last.by_column.items() if row[column] != write.value}
            unsure += len(last.unsure)
            different -= last.unsure
            if state["douban_id_locked"]:
                # What is locked is what our state says, whatever the log last wrote.
                different -= {_ID}
                different |= {_ID} if row[_ID] != state[_ID] and _ID not in last.under_way else set()
            elif state["douban_id_source"] in BY_PEOPLE and row[_ID] == state[_ID]:
                different -= {_ID}
            if different:
                suspects[vod_id] = different
            if _BLURB not in different | last.unsure and self._apart(vod_id):
                apart.append(self._blurb_of_others(vod_id, last.by_column[_SYNOPSIS]))
        if not suspects:
            return DriftBatch(len(self.rows), unsure, tuple(apart))
        writes = full_writes(self.connection, self.services.tables, suspects, self.first)
        waiting = self._decisions_wait(suspects)
        found = [
            drift
            for vod_id, columns in sorted(suspects.items())
            for column in sorted(columns)
            if (drift := self._drift(vod_id, column, writes[vod_id].by_column.get(column), vod_id in waiting))
        ]
        forms = {drift.vod_id for drift in found if drift.looks is DriftCause.STALE_FORM and drift.column != _ID}
        found = [drift if drift.vod_id in forms else self._by_itself(drift) for drift in found]
        return DriftBatch(len(self.rows), unsure, tuple(sorted([*found, *apart], key=lambda drift: drift.vod_id)))

    def _apart(self, vod_id: int) -> bool:
        """Return whether the synopsis is as we wrote it, and the blurb is not its beginning."""
        row, last = self.rows[vod_id], self.writes.get(vod_id, LastWrites())
        text = last.by_column.get(_SYNOPSIS)
        if text is None or text.action in _PUTS_BACK or _SYNOPSIS in last.unsure or row[_SYNOPSIS] != text.value:
            return False
        blurb = last.by_column.get(_BLURB)
        if blurb is not None and blurb.change_id >= text.change_id and row[_BLURB] == blurb.value:
            return False  # as it was written, which is the beginning as far as its column can hold it
        return not is_beginning(row[_BLURB], text.value)

    def _blurb_of_others(self, vod_id: int, text: LastWrite) -> Drift:
        row, state = self.rows[vod_id], self.states[vod_id]
        kind, looks, title = DriftKind.APART, DriftCause.UNKNOWN, readable(row["vod_name"])
        return Drift(vod_id, title, _BLURB, kind, looks, text.value, row[_BLURB], text, text.at, "", state, True)

    def _decisions_wait(self, vod_ids: Collection[int]) -> set[int]:
        decision = self.services.tables.decision
        waits = decision.c.state.in_([DecisionState.PENDING, DecisionState.QUEUED])
        query = select(decision.c.vod_id).where(decision.c.vod_id.in_(vod_ids), waits)
        return set(self.connection.execute(query).scalars())

    def _drift(self, vod_id: int, column: str, write: LastWrite | None, decided: bool) -> Drift | None:
        """Return the finding for a column that differs, None if it was never ours."""
        row, state = self.rows[vod_id], self.states[vod_id]
        lock, since = _lock_of(column, state)
        current, written = row[column], write.value if write else None
        at = write.at if write else None
        author, earlier = write, write.before if write else ()
        if lock and column == _ID:
            written = state[_ID]
            if write is None:
                at = since
            elif write.value != written:
                # It was locked as the CMS had it; what we wrote before that is as old as a form may be.
                at, author, earlier = since, None, (*write.before, write.value)
        elif lock:
            if write is None or (since is not None and write.at < since):
                # Nobody knows what the text was when it was locked.
                return None
        elif write is None or write.noted:
            return None
        if current == written:
            return None
        lost = current in earlier
        saved = at is not None and row["vod_time"] > at.timestamp()
        looks = DriftCause.STALE_FORM if lost else DriftCause.SAVED
        if not saved:
            looks = DriftCause.ANNOTATED if column in ANNOTATED and not lost else DriftCause.PROGRAM
        apart = column == _BLURB and self._apart(vod_id)
        kind = DriftKind.APART if apart else DriftKind.EDITED
        if lock:
            kind = DriftKind.LOCKED
        elif column == _ID:
            kind = DriftKind.ID
        elif lost:
            kind = DriftKind.PUT_BACK
        title, held = readable(row["vod_name"]), self._held(row, state, write, written, since, decided) if lock else ""
        return Drift(vod_id, title, column, kind, looks, written, current, author, at, held, state, apart)

    def _by_itself(self, drift: Drift) -> Drift:
        """Return the finding of a video of which no column but the id is back at its old value.

        A form that was open since before sets back all that was written; an id alone was cleared by a person.
        """
        known = self.writes.get(drift.vod_id, LastWrites())
        others = set(known.by_column) - SYNOPSIS_COLUMNS - {_ID}  # a synopsis may only have been noted
        alone = drift.column == _ID and not drift.current and drift.looks is DriftCause.STALE_FORM and bool(others)
        return replace(drift, looks=DriftCause.SAVED) if alone else drift

    def _held(
        self,
        row: Mapping[Any, Any],
        state: Mapping[Any, Any],
        write: LastWrite | None,
        written: Any,
        since: datetime | None,
        decided: bool,
    ) -> str:
        """Return why a locked value must not be restored, empty if it may be."""
        respect = self.services.settings.respect_vod_lock
        refusal = restore_refusal(row, state, respect_vod_lock=respect, decision_waits=decided)
        if refusal is not None:
            return refusal.sentence
        reverted = write is not None and write.action == REVERT and write.value != written
        if reverted and write is not None and (since is None or write.at > since):
            return f"变更 {write.change_id} 撤销了恢复；请解锁，或重新指定"
        return ""


def _lock_of(column: str, state: Mapping[Any, Any]) -> tuple[bool, datetime | None]:
    """Return whether a column is locked, and since when."""
    if column == _ID:
        return bool(state["douban_id_locked"]), state["douban_id_lock_time"]
    if column in SYNOPSIS_COLUMNS:
        return bool(state["intro_locked"]), state["intro_lock_time"]
    return False, None


_NOTED_BY_INTAKE = "锁定的豆瓣 ID "
"""How the reason begins that is noted on a video whose locked id was changed; it is gone once the id is back."""

_NAMES = {"vod_douban_id": "豆瓣 ID", "vod_content": "简介", "vod_blurb": "简介摘要"}


def restore(change_log: ChangeLog, found: Iterable[Drift]) -> dict[tuple[int, str], str]:
    """Restore the locked values that may be restored; return the outcome of each, by video and column.

    Once a run: what is changed again while it writes is left to the next one. Each write takes effect only where the
    value that was seen and the lock are still there.
    """
    by_video: dict[int, list[Drift]] = {}
    outcome_by_value: dict[tuple[int, str], str] = {}
    for drift in found:
        if drift.kind is not DriftKind.LOCKED:
            continue
        if drift.held:
            outcome_by_value[drift.vod_id, drift.column] = f"未恢复：{drift.held}"
        else:
            by_video.setdefault(drift.vod_id, []).append(drift)
    outcomes = change_log.write([_change(of_video) for of_video in by_video.values()])
    for outcome in outcomes:
        applied = outcome.state is ChangeState.APPLIED
        what = f"已恢复（变更 {outcome.change_id}）" if applied else f"未恢复：{outcome.reason}"
        outcome_by_value |= {(outcome.change.vod_id, column): what for column in outcome.change.new}
    return outcome_by_value


def _change(of_video: list[Drift]) -> Change:
    state = {}
    noted = of_video[0].state["douban_review_reason"].startswith(_NOTED_BY_INTAKE)
    if noted and any(drift.column == "vod_douban_id" for drift in of_video):
        state = {"douban_review_reason": ""}
    return Change(
        vod_id=of_video[0].vod_id,
        action=RESTORE,
        old={drift.column: drift.current for drift in of_video},
        new={drift.column: drift.written for drift in of_video},
        state=state,
        reason="；".join(_reason(drift) for drift in of_video),
    )


def _reason(drift: Drift) -> str:
    edit = f"改为 {drift.current}" if drift.column == "vod_douban_id" else "改动"
    by = f"由变更 {drift.change.change_id} 写入，" if drift.change is not None else ""
    return f"锁定的{_NAMES[drift.column]}（{by}已锁定）在 CMS 中被{edit}，看来是{DRIFT_LOOKS[drift.looks]}；恢复锁定值"
