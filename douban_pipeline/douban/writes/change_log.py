"""The only door through which a CMS row is written or put back.

`mac_vod` is MyISAM and cannot take part in a transaction, so a write is three steps: a log row `prepared` with old
and new values → a conditional UPDATE that takes effect only where the old values still stand and no lock forbids
it → the log row `applied` and our state row updated, in one transaction. A process may die between any two of them:
`reconcile` reads from the CMS which side of the UPDATE it died on.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, func, insert, or_, select, update
from sqlalchemy.exc import DataError

from douban_pipeline.cms.maccms import WRITABLE_COLUMNS, Cms
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading, transactions
from douban_pipeline.core.owner import is_dead
from douban_pipeline.douban.store.states import ChangeState, DecisionAction
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import GONE, state_rows
from douban_pipeline.douban.writes import intro_changes, permissions, reverted
from douban_pipeline.douban.writes.conditional_update import ConditionalUpdates, Write
from douban_pipeline.douban.writes.intro_changes import INTRO
from douban_pipeline.douban.writes.log_values import decode, encode
from douban_pipeline.douban.writes.permissions import SYNOPSIS_COLUMNS

PIPELINE = "pipeline"
"""The operator of everything automatic."""

REVERT = "revert"
"""Action of a change that takes another one back."""

RESTORE = "restore"
"""Action of a change that puts back what a lock protects, after somebody changed it in the CMS."""

LOST_AFTER = timedelta(hours=1)
"""A write is done seconds after it was prepared; what is still prepared after this long belongs to nobody."""

_CHUNK = 100

__all__ = [
    "LOST_AFTER",
    "PIPELINE",
    "RESTORE",
    "REVERT",
    "SYNOPSIS_COLUMNS",
    "Change",
    "ChangeLog",
    "Outcome",
    "Reconciled",
    "decode",
    "encode",
]


@dataclass(frozen=True, slots=True)
class Change:
    """A write to one video, as it is wanted.

    Attributes:
        vod_id: The video.
        action: What kind of write it is: ``link``, ``sync``, ``intro``, `REVERT`, `RESTORE`, or a decision's action.
        old: CMS columns as they were read.
        new: The same columns as they shall be.
        state: Columns of our state row as they shall be once the write stands.
        operator: `PIPELINE`, or the person who decided.
        reason: One sentence for people, in Chinese.
        automatic: Whether locks forbid it; a person's decision is not automatic. A restore needs the lock.
        given: CMS columns on which the write rests though it leaves them alone, as they were read.
        seen: Columns of our state row on which it rests, as they were read: nothing is written once they differ.
        intro_id: The row of the intro that it writes, whose state follows the change's.
    """

    vod_id: int
    action: str
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    state: Mapping[str, Any] = field(default_factory=dict)
    operator: str = PIPELINE
    reason: str = ""
    automatic: bool = True
    given: Mapping[str, Any] = field(default_factory=dict)
    seen: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None
    task_id: int | None = None
    verdict_id: int | None = None
    decision_id: int | None = None
    snapshot_id: int | None = None
    reverts_change_id: int | None = None
    intro_id: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a wanted change: its row in the log, its state, and why if it was refused."""

    change: Change
    change_id: int
    state: ChangeState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a dead run's prepared change turned out to be."""

    change_id: int
    vod_id: int
    state: ChangeState


class ChangeLog:
    """The change log as one run writes it.

    Args:
        engine: Database of the CMS and of our tables.
        tables: Our tables.
        cms: The CMS's tables.
        clock: Time.
        owner: This run's name, see `owner.owner_name`.
        run_id: The Dagster run, noted with every change.
        rule_version: The rules in force, noted with every change.
        respect_vod_lock: Whether automatic changes leave rows with ``vod_lock = 1`` alone.
        batch_id: Groups the changes of one batch; a new one by default.
    """

    def __init__(
        self,
        engine: Engine,
        tables: OwnTables,
        cms: Cms,
        clock: Clock,
        *,
        owner: str,
        run_id: str,
        rule_version: str,
        respect_vod_lock: bool = True,
        batch_id: str | None = None,
    ) -> None:
        self.engine = engine
        self.tables = tables
        self.cms = cms
        self.clock = clock
        self.owner = owner
        self.run_id = run_id
        self.rule_version = rule_version
        self.respect_vod_lock = respect_vod_lock
        self._updates = ConditionalUpdates(cms, tables, engine.dialect.name, respect_vod_lock)
        self.batch_id = batch_id or uuid.uuid4().hex[:16]

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """Write ``changes`` one by one, each only if its row is still as it was read and no lock forbids it.

        Raises:
            ValueError: A change names a column the pipeline must never write, does not know what stood in a column
                it writes, or is the second of the call for its video; nothing of the call is written.
        """
        seen: set[int] = set()
        for change in changes:
            foreign = (set(change.new) | set(change.old)) - WRITABLE_COLUMNS
            if foreign:
                raise ValueError(f"video {change.vod_id}: not to be written by the pipeline: {sorted(foreign)}")
            if set(change.new) != set(change.old):
                odd = sorted(set(change.new) ^ set(change.old))
                raise ValueError(f"video {change.vod_id}: old and new values name different columns: {odd}")
            if change.vod_id in seen:
                raise ValueError(f"video {change.vod_id}: two changes in one call")
            seen.add(change.vod_id)
        outcomes: list[Outcome] = []
        for start in range(0, len(changes), _CHUNK):
            chunk = changes[start : start + _CHUNK]
            prepared = self._prepare(chunk)
            settled = [self._apply(change, change_id) for change, change_id in zip(chunk, prepared, strict=True)]
            for transaction in transactions(self.engine):
                with transaction as connection:
                    self._settle(connection, settled)
            outcomes += settled
        return outcomes

    def _prepare(self, changes: Sequence[Change]) -> list[int]:
        """Log what is about to be written; return the rows' keys in the order of ``changes``."""
        log = self.tables.log
        vod_ids = [change.vod_id for change in changes]
        for transaction in transactions(self.engine):
            with transaction as connection:
                states = state_rows(connection, self.tables, vod_ids)
                rows = [self._row(change, states.get(change.vod_id)) for change in changes]
                connection.execute(insert(log), rows)
                # No two of a call are about one video, and nobody else writes in this name: ours are the newest.
                ours = (log.c.batch_id == self.batch_id, log.c.owner == self.owner, log.c.vod_id.in_(vod_ids))
                query = select(log.c.vod_id, func.max(log.c.change_id)).where(*ours).group_by(log.c.vod_id)
                keys = {vod_id: int(change_id) for vod_id, change_id in connection.execute(query)}
                for change in changes:
                    if change.intro_id is not None:
                        intro_changes.attach(connection, self.tables, change.intro_id, keys[change.vod_id])
        return [keys[vod_id] for vod_id in vod_ids]

    def _row(self, change: Change, state: RowMapping | None) -> dict[str, Any]:
        return {
            "vod_id": change.vod_id,
            "shard": shard_of(change.vod_id),
            "action": change.action,
            "old_values": encode(change.old),
            "new_values": encode(change.new),
            "state_old": encode({name: state[name] for name in change.state} if state else {}),
            "state_new": encode(change.state),
            "reason": change.reason[:500],
            "score": change.score,
            "operator": change.operator,
            "batch_id": self.batch_id,
            "run_id": self.run_id,
            "owner": self.owner,
            "rule_version": self.rule_version,
            "task_id": change.task_id,
            "verdict_id": change.verdict_id,
            "decision_id": change.decision_id,
            "snapshot_id": change.snapshot_id,
            "reverts_change_id": change.reverts_change_id,
            "state": ChangeState.PREPARED,
            "prepared_at": self.clock.now(),
        }

    def _apply(self, change: Change, change_id: int) -> Outcome:
        """Do the conditional UPDATE."""
        if not change.new:
            return self._apply_state(change, change_id)
        write = Write(
            change.vod_id,
            new=change.new,
            stands={**change.given, **change.old},
            seen=change.seen,
            automatic=change.automatic,
            restores=change.action == RESTORE,
        )
        try:
            for transaction in transactions(self.engine):
                with transaction as connection:
                    written = self._updates.execute(connection, write)
        except DataError as error:
            # One value that does not fit must not stop the rest; sessions are strict, so nothing was written.
            return Outcome(change, change_id, ChangeState.REFUSED, f"CMS 容纳不下要写入的值：{error.orig}")
        if written:
            return Outcome(change, change_id, ChangeState.APPLIED)
        return Outcome(change, change_id, ChangeState.REFUSED, self._why_refused(change))

    def _apply_state(self, change: Change, change_id: int) -> Outcome:
        """Return what becomes of a change of our state alone; `_settle` writes it."""
        if change.seen:
            vod_id = self.cms.vod.c.vod_id
            still = permissions.still_seen(self.tables, change.vod_id, change.seen)
            with reading(self.engine) as connection:
                if connection.execute(select(vod_id).where(vod_id == change.vod_id, still)).first() is None:
                    return Outcome(change, change_id, ChangeState.REFUSED, self._why_refused(change))
        return Outcome(change, change_id, ChangeState.APPLIED)

    def _why_refused(self, change: Change) -> str:
        with reading(self.engine) as connection:
            row = self.cms.rows(connection, [change.vod_id]).get(change.vod_id)
            state = state_rows(connection, self.tables, [change.vod_id]).get(change.vod_id)
        if row is None:
            return GONE
        stood = {**change.given, **change.old}
        changed = [column for column, value in stood.items() if row[column] != value]
        if changed:
            return f"读取之后 CMS 中的值已被改动：{', '.join(changed)}"
        if change.seen and (state is None or any(state[name] != value for name, value in change.seen.items())):
            return "读取之后影片被锁定、解锁或另有决定"
        why = ""
        if change.automatic:
            restores = change.action == RESTORE
            why = permissions.why_not(row, state, change.new, restores=restores, respect_vod_lock=self.respect_vod_lock)
        return why or "写入条件不再成立"

    def _settle(self, connection: Connection, outcomes: Sequence[Outcome]) -> None:
        """Note what became of prepared changes, and what follows from those that stand."""
        log, video = self.tables.log, self.tables.video
        # Two runs may reconcile the same row at once: the first settles it, and our state is not put back by the other.
        prepared = (
            log.c.change_id.in_([outcome.change_id for outcome in outcomes]),
            log.c.state == ChangeState.PREPARED,
        )
        open_ = set(connection.execute(select(log.c.change_id).where(*prepared).with_for_update()).scalars())
        settled = [outcome for outcome in outcomes if outcome.change_id in open_]
        alike: dict[tuple[ChangeState, str], list[int]] = {}
        for outcome in settled:
            alike.setdefault((outcome.state, outcome.reason[:500]), []).append(outcome.change_id)
        for (state, reason), change_ids in alike.items():
            values: dict[str, Any] = {"state": state, "state_reason": reason}
            if state is ChangeState.APPLIED:
                values["applied_at"] = self.clock.now()
            connection.execute(update(log).where(log.c.change_id.in_(change_ids)).values(**values))
        taken_back: dict[int, set[str]] = {}
        for outcome in settled:
            change = outcome.change
            if change.action == INTRO:
                intro_changes.follow(connection, self.tables, outcome.change_id, outcome.state, outcome.reason)
            if outcome.state is not ChangeState.APPLIED:
                continue
            if change.state:
                connection.execute(update(video).where(video.c.vod_id == change.vod_id).values(**change.state))
            if change.reverts_change_id is not None:
                taken_back[change.reverts_change_id] = set(change.new)
        reverted.mark(connection, self.tables, taken_back)

    def reconcile(self) -> list[Reconciled]:
        """Settle what dead runs left `prepared`: the CMS row tells whether the UPDATE took effect.

        Rows of runs that may still be alive are left to them, but not for longer than `LOST_AFTER`: nobody can tell
        whether a process on another machine still lives.
        """
        log = self.tables.log
        lost = self.clock.now() - LOST_AFTER
        with reading(self.engine) as connection:
            rows = connection.execute(select(log).where(log.c.state == ChangeState.PREPARED)).mappings().all()
            rows = [
                row for row in rows if row["owner"] == self.owner or row["prepared_at"] <= lost or is_dead(row["owner"])
            ]
            current = self.cms.rows(connection, [row["vod_id"] for row in rows])
        settled: list[Reconciled] = []
        for row in rows:
            change = _change_of(row)
            stands = current.get(change.vod_id)
            if stands is None:
                state, reason = ChangeState.CONFLICT, f"{GONE}，无法判断写入是否生效"
            elif all(stands[column] == value for column, value in change.new.items()):
                state, reason = ChangeState.APPLIED, "运行中断后核对：写入已生效"
            elif all(stands[column] == value for column, value in change.old.items()):
                state, reason = ChangeState.ABANDONED, "运行中断后核对：写入未发生"
            else:
                state, reason = ChangeState.CONFLICT, "运行中断后 CMS 中的值又被他人改动"
            for transaction in transactions(self.engine):
                with transaction as connection:
                    self._settle(connection, [Outcome(change, row["change_id"], state, reason)])
            settled.append(Reconciled(row["change_id"], change.vod_id, state))
        return settled

    def undone_values(self, connection: Connection, vod_ids: Sequence[int]) -> dict[int, dict[str, list[Any]]]:
        """Return, by video and column, the values that people took back: automation must not write them again."""
        return undone_values(connection, self.tables, vod_ids)


def undone_values(connection: Connection, tables: OwnTables, vod_ids: Sequence[int]) -> dict[int, dict[str, list[Any]]]:
    """Return, by video and column, the values that people took back; see `ChangeLog.undone_values`."""
    log = tables.log
    query = select(log.c.vod_id, log.c.old_values).where(
        log.c.vod_id.in_(vod_ids),
        or_(log.c.reverts_change_id.is_not(None), log.c.action == DecisionAction.clear_id),
        log.c.state == ChangeState.APPLIED,
    )
    undone: dict[int, dict[str, list[Any]]] = {}
    for vod_id, values in connection.execute(query):
        for column, value in decode(values).items():
            undone.setdefault(vod_id, {}).setdefault(column, []).append(value)
    return undone


def _change_of(row: RowMapping) -> Change:
    return Change(
        vod_id=row["vod_id"],
        action=row["action"],
        old=decode(row["old_values"]),
        new=decode(row["new_values"]),
        state=decode(row["state_new"]),
        operator=row["operator"],
        reverts_change_id=row["reverts_change_id"],
    )
