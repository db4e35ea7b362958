"""The only module through which a CMS row is written or reverted.

`mac_vod` is MyISAM and cannot take part in a transaction, so a write is three steps: a log row `prepared` with old
and new values → a conditional UPDATE that takes effect only where the old values are still there and no lock forbids
it → the log row `applied` and our state row updated, in one transaction. A process may die between any two of them:
`reconcile` reads from the CMS which side of the UPDATE it died on.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, and_, bindparam, func, insert, or_, select, update
from sqlalchemy.exc import DataError, IntegrityError

from douban_pipeline.cms.maccms import WRITABLE_COLUMNS, Cms
from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.owner import is_dead
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.store.videos import GONE, state_rows
from douban_pipeline.douban.writes import intro_changes
from douban_pipeline.douban.writes.changes import (
    PIPELINE,
    RESTORE,
    Change,
    ReconciledChange,
    WriteOutcome,
    decode,
    encode,
)
from douban_pipeline.douban.writes.conditional_update import ConditionalUpdates, ConditionalWrite, still_seen
from douban_pipeline.douban.writes.intro_changes import INTRO
from douban_pipeline.douban.writes.refusals import (
    Reason,
    Refusal,
    automatic_write_refusal,
    changed_since_refusal,
    cms_lock_refusal,
)
from douban_pipeline.douban.writes.reverted_changes import mark_reverted, undone_values

LOST_AFTER = timedelta(hours=1)
"""A write is done seconds after it was prepared; what is still prepared after this long belongs to nobody."""

_CHUNK = 100


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
        respect_vod_lock: Whether rows with ``vod_lock = 1`` are left alone, unless a change overrides that.
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
        self._updates = ConditionalUpdates(cms, tables, engine.dialect.name)
        self.batch_id = batch_id or uuid.uuid4().hex[:16]

    def write(self, changes: Sequence[Change]) -> list[WriteOutcome]:
        """Write ``changes`` one by one, each only if its row is still as it was read and no lock forbids it.

        Raises:
            ValueError: A change names a column the pipeline must never write, does not know what stood in a column
                it writes, or is the second for its video in this call; nothing is written then.
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
        outcomes: list[WriteOutcome] = []
        for start in range(0, len(changes), _CHUNK):
            chunk = changes[start : start + _CHUNK]
            prepared = self._prepare(chunk)
            done = [self._apply(change, change_id) for change, change_id in zip(chunk, prepared, strict=True)]
            self._record(done)
            outcomes += done
        return outcomes

    def _prepare(self, changes: Sequence[Change]) -> list[int]:
        """Log what is about to be written; return the rows' keys in the order of ``changes``."""
        log = self.tables.log
        vod_ids = [change.vod_id for change in changes]

        def prepare(connection: Connection) -> list[int]:
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

        return run_transaction(self.engine, prepare)

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

    def _apply(self, change: Change, change_id: int) -> WriteOutcome:
        """Do the conditional UPDATE."""
        if not change.new:
            return self._apply_state(change, change_id)
        write = ConditionalWrite(
            change.vod_id,
            new=change.new,
            read={**change.given, **change.old},
            seen=change.seen,
            automatic=change.automatic,
            respect_vod_lock=self._respects_vod_lock(change),
            restores=change.action == RESTORE,
        )
        try:
            written = run_transaction(self.engine, lambda connection: self._updates.execute(connection, write))
        except (DataError, IntegrityError) as error:
            # One value that does not fit, or that a site's own unique key forbids, must not stop the others; sessions
            # are strict, so nothing was written.
            refusal = Refusal.of(Reason.VALUE_DOES_NOT_FIT, error=error.orig)
            return WriteOutcome(change, change_id, ChangeState.REFUSED, refusal.sentence)
        return WriteOutcome(change, change_id, ChangeState.APPLIED) if written else self._refused(change, change_id)

    def _respects_vod_lock(self, change: Change) -> bool:
        """Return whether the site's lock of a row forbids a change. One that notes a text as it is may be made."""
        return self.respect_vod_lock and not change.override_cms_lock and dict(change.new) != dict(change.old)

    def _apply_state(self, change: Change, change_id: int) -> WriteOutcome:
        """Return the outcome of a change of our state alone; `_settle` writes it."""
        if change.seen:
            vod_id = self.cms.vod.c.vod_id
            unchanged = still_seen(self.tables, change.vod_id, change.seen)
            with reading(self.engine) as connection:
                if connection.execute(select(vod_id).where(vod_id == change.vod_id, unchanged)).first() is None:
                    return self._refused(change, change_id)
        return WriteOutcome(change, change_id, ChangeState.APPLIED)

    def _refused(self, change: Change, change_id: int) -> WriteOutcome:
        """Return the outcome of a change whose conditions did not hold, with the reason that can be found now."""
        with reading(self.engine) as connection:
            row = self.cms.rows(connection, [change.vod_id]).get(change.vod_id)
            state = state_rows(connection, self.tables, [change.vod_id]).get(change.vod_id)
        refusal = changed_since_refusal(row, state, read={**change.given, **change.old}, seen=change.seen)
        respect_vod_lock = self._respects_vod_lock(change)
        if refusal is None and row is not None and change.automatic:
            refusal = automatic_write_refusal(
                row,
                state,
                change.new,
                restores=change.action == RESTORE,
                respect_vod_lock=respect_vod_lock,
            )
        elif refusal is None and row is not None and change.new:
            refusal = cms_lock_refusal(row, respect_vod_lock=respect_vod_lock)
        refusal = refusal or Refusal.of(Reason.CONDITIONS_CHANGED)
        return WriteOutcome(change, change_id, ChangeState.REFUSED, refusal.sentence)

    def _record(self, outcomes: Sequence[WriteOutcome]) -> None:
        run_transaction(self.engine, lambda connection: self._settle(connection, outcomes))

    def _settle(self, connection: Connection, outcomes: Sequence[WriteOutcome]) -> None:
        """Store the outcomes of prepared changes, and the consequences of the applied ones."""
        log, video = self.tables.log, self.tables.video
        # Two runs may reconcile the same row at once: the first settles it, and our state is not set back by the other.
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
        applied = [outcome for outcome in settled if outcome.state is ChangeState.APPLIED and outcome.change.state]
        decided_since = self._decided_since(connection, applied)
        reverted: dict[int, set[str]] = {}
        states: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for outcome in settled:
            change = outcome.change
            if change.action == INTRO:
                said = (outcome.change_id, outcome.state, outcome.reason)
                intro_changes.follow(connection, self.tables, *said, intro_id=change.intro_id)
            if outcome.state is not ChangeState.APPLIED:
                continue
            decided = decided_since.get(outcome.change_id, set())
            ours = {name: value for name, value in change.state.items() if name not in decided}
            if ours:
                # SQLAlchemy keeps the names of columns for itself.
                bound = {f"new_{name}": value for name, value in ours.items()}
                states.setdefault(tuple(ours), []).append({"of_vod_id": change.vod_id, **bound})
            if change.reverts_change_id is not None:
                reverted[change.reverts_change_id] = set(change.new)
        # A statement for each set of columns, put together once: that takes longer than sending it.
        for names, rows in states.items():
            new = {name: bindparam(f"new_{name}", type_=video.c[name].type) for name in names}
            connection.execute(update(video).where(video.c.vod_id == bindparam("of_vod_id")).values(new), rows)
        mark_reverted(connection, self.tables, reverted)

    def _decided_since(self, connection: Connection, outcomes: Sequence[WriteOutcome]) -> dict[int, set[str]]:
        """Return, by change, the columns of our state that a person decided on since it was prepared.

        A run may be slow, or die, between the UPDATE of the CMS and this: what a person decided in between stays.
        """
        if not outcomes:
            return {}
        log, vod_ids = self.tables.log, [outcome.change.vod_id for outcome in outcomes]
        # Locked first: whoever settles a change of these videos after this read writes after us.
        state_rows(connection, self.tables, vod_ids, lock=True)
        newer = log.alias()
        ours = (log.c.change_id.in_([outcome.change_id for outcome in outcomes]), log.c.vod_id.in_(vod_ids))
        # Of two people's changes the one that was requested later counts.
        after_automatic = and_(log.c.operator == PIPELINE, newer.c.applied_at > log.c.prepared_at)
        later = or_(newer.c.change_id > log.c.change_id, after_automatic)
        query = (
            select(log.c.change_id, newer.c.state_new)
            .join(newer, newer.c.vod_id == log.c.vod_id)
            .where(*ours, newer.c.state == ChangeState.APPLIED, newer.c.operator != PIPELINE, later)
        )
        decided: dict[int, set[str]] = {}
        for change_id, state in connection.execute(query):
            decided.setdefault(change_id, set()).update(state)
        return decided

    def reconcile(self) -> list[ReconciledChange]:
        """Settle changes that dead runs left `prepared`: the CMS row shows whether the UPDATE took effect.

        Rows of runs that may still be alive are left to them for at most `LOST_AFTER`: whether a process on another
        machine is alive cannot be determined.
        """
        log = self.tables.log
        lost = self.clock.now() - LOST_AFTER
        with reading(self.engine) as connection:
            rows = connection.execute(select(log).where(log.c.state == ChangeState.PREPARED)).mappings().all()
            rows = [
                row for row in rows if row["owner"] == self.owner or row["prepared_at"] <= lost or is_dead(row["owner"])
            ]
            current = self.cms.rows(connection, [row["vod_id"] for row in rows])
        settled: list[ReconciledChange] = []
        for row in rows:
            change = _change_of(row)
            now = current.get(change.vod_id)
            if now is None:
                state, reason = ChangeState.CONFLICT, f"{GONE}，无法判断写入是否生效"
            elif change.decision_id is not None and dict(change.new) == dict(change.old):
                # Our state is written when it is settled, which did not happen: if the decision still waits, a run
                # applies it; if it was withdrawn or replaced since, nobody must.
                state, reason = ChangeState.ABANDONED, "运行中断后核对：状态未写入"
            elif all(now[column] == value for column, value in change.new.items()):
                state, reason = ChangeState.APPLIED, "运行中断后核对：写入已生效"
            elif all(now[column] == value for column, value in change.old.items()):
                state, reason = ChangeState.ABANDONED, "运行中断后核对：写入未发生"
            else:
                state, reason = ChangeState.CONFLICT, "运行中断后 CMS 中的值又被他人改动"
            self._record([WriteOutcome(change, row["change_id"], state, reason)])
            settled.append(ReconciledChange(row["change_id"], change.vod_id, state))
        return settled

    def undone_values(self, connection: Connection, vod_ids: Sequence[int]) -> dict[int, dict[str, list[Any]]]:
        """Return the values that people reverted, see `reverted_changes.undone_values`."""
        return undone_values(connection, self.tables, vod_ids)


def _change_of(row: RowMapping) -> Change:
    return Change(
        vod_id=row["vod_id"],
        action=row["action"],
        old=decode(row["old_values"]),
        new=decode(row["new_values"]),
        state=decode(row["state_new"]),
        operator=row["operator"],
        decision_id=row["decision_id"],
        reverts_change_id=row["reverts_change_id"],
    )
