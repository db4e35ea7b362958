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
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, and_, exists, insert, or_, select, update
from sqlalchemy.exc import DataError

from douban_pipeline.catalog import decisions, intro_changes
from douban_pipeline.catalog.database import reading, transactions
from douban_pipeline.catalog.intro_changes import INTRO
from douban_pipeline.catalog.maccms import DECIMAL_COLUMNS, WRITABLE_COLUMNS, Cms
from douban_pipeline.catalog.owner import is_dead
from douban_pipeline.catalog.states import ChangeState, DecisionAction, ReviewStatus
from douban_pipeline.catalog.tables import OwnTables
from douban_pipeline.catalog.tasks import shard_of
from douban_pipeline.catalog.videos import GONE, state_rows
from douban_pipeline.clock import Clock

PIPELINE = "pipeline"
"""The operator of everything automatic."""

SYNOPSIS_COLUMNS = frozenset({"vod_content", "vod_blurb"})
LOST_AFTER = timedelta(hours=1)
"""A write is done seconds after it was prepared; what is still prepared after this long belongs to nobody."""

_CHUNK = 100


@dataclass(frozen=True, slots=True)
class Change:
    """A write to one video, as it is wanted.

    Attributes:
        vod_id: The video.
        action: What kind of write it is: ``link``, ``sync``, ``intro``, ``revert``, or a decision's action.
        old: CMS columns as they were read.
        new: The same columns as they shall be.
        state: Columns of our state row as they shall be once the write stands.
        operator: `PIPELINE`, or the person who decided.
        reason: One sentence for people, in Chinese.
        automatic: Whether locks forbid it; a person's decision is not automatic.
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
                    for outcome in settled:
                        self._settle(connection, outcome)
            outcomes += settled
        return outcomes

    def _prepare(self, changes: Sequence[Change]) -> list[int]:
        now = self.clock.now()
        for transaction in transactions(self.engine):
            with transaction as connection:
                change_ids: list[int] = []
                states = state_rows(connection, self.tables, [change.vod_id for change in changes])
                for change in changes:
                    state = states.get(change.vod_id)
                    result = connection.execute(
                        insert(self.tables.log).values(
                            vod_id=change.vod_id,
                            shard=shard_of(change.vod_id),
                            action=change.action,
                            old_values=encode(change.old),
                            new_values=encode(change.new),
                            state_old=encode({name: state[name] for name in change.state} if state else {}),
                            state_new=encode(change.state),
                            reason=change.reason[:500],
                            score=change.score,
                            operator=change.operator,
                            batch_id=self.batch_id,
                            run_id=self.run_id,
                            owner=self.owner,
                            rule_version=self.rule_version,
                            task_id=change.task_id,
                            verdict_id=change.verdict_id,
                            decision_id=change.decision_id,
                            snapshot_id=change.snapshot_id,
                            reverts_change_id=change.reverts_change_id,
                            state=ChangeState.PREPARED,
                            prepared_at=now,
                        )
                    )
                    key = result.inserted_primary_key
                    assert key is not None
                    change_ids.append(int(key[0]))
                    if change.intro_id is not None:
                        intro_changes.attach(connection, self.tables, change.intro_id, change_ids[-1])
        return change_ids

    def _apply(self, change: Change, change_id: int) -> Outcome:
        """Do the conditional UPDATE; the conditions and the write are one statement."""
        if not change.new:
            return Outcome(change, change_id, ChangeState.APPLIED)
        vod = self.cms.vod
        dialect = self.engine.dialect.name
        conditions = [vod.c.vod_id == change.vod_id]
        conditions += [self.cms.equals(column, value, dialect) for column, value in change.old.items()]
        conditions += self._permissions(change)
        try:
            for transaction in transactions(self.engine):
                with transaction as connection:
                    written = connection.execute(update(vod).where(*conditions).values(**change.new)).rowcount
        except DataError as error:
            # One value that does not fit must not stop the rest; sessions are strict, so nothing was written.
            return Outcome(change, change_id, ChangeState.REFUSED, f"CMS 容纳不下要写入的值：{error.orig}")
        if written:
            return Outcome(change, change_id, ChangeState.APPLIED)
        return Outcome(change, change_id, ChangeState.REFUSED, self._why_refused(change))

    def _permissions(self, change: Change) -> list[ColumnElement[bool]]:
        if not change.automatic:
            return []
        video = self.tables.video
        forbidden = [video.c.douban_review_status == ReviewStatus.IGNORED]
        if "vod_douban_id" in change.new:
            forbidden.append(video.c.douban_id_locked.is_(True))
        if SYNOPSIS_COLUMNS & set(change.new):
            forbidden.append(video.c.intro_locked.is_(True))
        allowed = [
            ~exists().where(and_(video.c.vod_id == change.vod_id, condition)).correlate(None) for condition in forbidden
        ]
        if self.respect_vod_lock:
            allowed.append(self.cms.vod.c.vod_lock == 0)
        return allowed

    def _why_refused(self, change: Change) -> str:
        with reading(self.engine) as connection:
            row = self.cms.rows(connection, [change.vod_id]).get(change.vod_id)
            state = state_rows(connection, self.tables, [change.vod_id]).get(change.vod_id)
        if row is None:
            return GONE
        changed = [column for column, value in change.old.items() if row[column] != value]
        if changed:
            return f"读取之后 CMS 中的值已被改动：{', '.join(changed)}"
        if self.respect_vod_lock and row["vod_lock"]:
            return "影片已在 CMS 中锁定（vod_lock）"
        if state is not None and state["douban_review_status"] == ReviewStatus.IGNORED:
            return "影片已被忽略"
        if state is not None and state["douban_id_locked"] and "vod_douban_id" in change.new:
            return "豆瓣 ID 已锁定"
        if state is not None and state["intro_locked"] and SYNOPSIS_COLUMNS & set(change.new):
            return "简介已锁定"
        return "写入条件不再成立"

    def _settle(self, connection: Connection, outcome: Outcome) -> None:
        log = self.tables.log
        now = self.clock.now()
        values: dict[str, Any] = {"state": outcome.state, "state_reason": outcome.reason[:500]}
        if outcome.state is ChangeState.APPLIED:
            values["applied_at"] = now
        # Two runs may reconcile the same row at once: the first settles it, and our state is not put back by the other.
        prepared = (log.c.change_id == outcome.change_id, log.c.state == ChangeState.PREPARED)
        settled = connection.execute(update(log).where(*prepared).values(**values)).rowcount
        change = outcome.change
        if settled and change.action == INTRO:
            intro_changes.follow(connection, self.tables, outcome.change_id, outcome.state, outcome.reason)
        if not settled or outcome.state is not ChangeState.APPLIED:
            return
        if change.state:
            video = self.tables.video
            connection.execute(update(video).where(video.c.vod_id == change.vod_id).values(**change.state))
        if change.reverts_change_id is not None:
            self._mark_reverted(connection, change.reverts_change_id, set(change.new))

    def _mark_reverted(self, connection: Connection, change_id: int, restored: set[str]) -> None:
        """Mark a change as taken back; what it had itself taken back stands again, and so on down the line.

        One of which only some columns could be put back stays applied: the others may be taken back later.
        """
        log = self.tables.log
        query = select(log.c.new_values).where(log.c.change_id == change_id)
        if set(connection.execute(query).scalar_one()) - restored:
            connection.execute(update(log).where(log.c.change_id == change_id).values(state_reason="部分列已撤销"))
            return
        undone: int | None = change_id
        state = ChangeState.REVERTED
        while undone is not None:
            connection.execute(update(log).where(log.c.change_id == undone).values(state=state))
            intro_changes.follow(connection, self.tables, undone, state)
            query = select(log.c.action, log.c.decision_id, log.c.reverts_change_id).where(log.c.change_id == undone)
            action, decision_id, undone = connection.execute(query).one()
            if decision_id is not None:
                again = state is ChangeState.APPLIED
                decisions.note_taken_back(connection, self.tables, decision_id, action, again=again)
            state = ChangeState.APPLIED if state is ChangeState.REVERTED else ChangeState.REVERTED

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
                    self._settle(connection, Outcome(change, row["change_id"], state, reason))
            settled.append(Reconciled(row["change_id"], change.vod_id, state))
        return settled

    def undone_values(self, connection: Connection, vod_ids: Sequence[int]) -> dict[int, dict[str, list[Any]]]:
        """Return, by video and column, the values that people took back: automation must not write them again."""
        log = self.tables.log
        query = (
            select(log.c.vod_id, log.c.old_values)
            .where(
                log.c.vod_id.in_(vod_ids),
                or_(log.c.reverts_change_id.is_not(None), log.c.action == DecisionAction.clear_id),
                log.c.state == ChangeState.APPLIED,
            )
            .order_by(log.c.change_id)
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


def encode(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` as the log stores them in JSON; see `decode`."""
    encoded: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Decimal):
            encoded[name] = str(value)
        elif isinstance(value, datetime):
            encoded[name] = {"time": value.isoformat()}
        else:
            encoded[name] = value
    return encoded


def decode(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return logged values as they are written: scores as `Decimal`, times as `datetime`."""
    decoded: dict[str, Any] = {}
    for name, value in values.items():
        if name in DECIMAL_COLUMNS and value is not None:
            decoded[name] = Decimal(value)
        elif isinstance(value, dict) and "time" in value:
            decoded[name] = datetime.fromisoformat(value["time"])
        else:
            decoded[name] = value
    return decoded
