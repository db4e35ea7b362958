"""Carrying out reviewers' decisions, before anything automatic is written.

A run may die between any two steps and another goes on: what a decision wrote is found in the log by its id, intros
are taken back by what stands, and everything else is one transaction together with the decision's own state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, select, update

from douban_pipeline.core.database import reading, transactions
from douban_pipeline.douban.chain.due.due_videos import works_on
from douban_pipeline.douban.chain.syncing.effects import Effect, effect_of, target_of
from douban_pipeline.douban.chain.syncing.naming import Naming, Wait
from douban_pipeline.douban.chain.syncing.orders import close_in_hand, order, task_of
from douban_pipeline.douban.chain.syncing.refusals import why_refused, why_without_link
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import LINKING, Aspect, aspect_of
from douban_pipeline.douban.store.states import ChangeState, DecisionAction, DecisionState
from douban_pipeline.douban.store.tasks import DECISION, Task, TaskQueue
from douban_pipeline.douban.store.videos import GONE, state_rows
from douban_pipeline.douban.writes.change_log import Change, ChangeLog
from douban_pipeline.douban.writes.intro_changes import standing_intros
from douban_pipeline.douban.writes.revert import WITH_ITS_LINK, Selection, revert

_TAKEN_BACK = "执行之后已被撤销"
_REPLACED_AFTER = "执行的同时有了更新的决定"
_RENEW_EVERY = 20


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of a decision in a run; one that is still pending waits, and ``reason`` says for what."""

    decision_id: int
    vod_id: int
    shard: int
    action: str
    douban_id: int
    reviewer: str
    state: DecisionState
    reason: str = ""


def pending_decisions(services: Services, shards: Collection[int]) -> list[list[RowMapping]]:
    """Return the pending decisions about videos of ``shards``, a list a video, in the order of carrying out.

    The video whose oldest decision is oldest comes first. Of one video the link is decided on first, then its lock,
    then what rests on the link.
    """
    decision = services.tables.decision
    query = (
        select(decision)
        .where(decision.c.state == DecisionState.PENDING, decision.c.shard.in_(shards))
        .order_by(decision.c.decision_id)
    )
    by_video: dict[int, list[RowMapping]] = {}
    with reading(services.engine) as connection:
        for row in connection.execute(query).mappings():
            by_video.setdefault(row["vod_id"], []).append(row)
    for of_video in by_video.values():
        of_video.sort(key=lambda row: (_aspect(row), row["decision_id"]))
    return list(by_video.values())


def let_wait(services: Services, shards: Collection[int], until: datetime) -> int:
    """Let pending decisions about videos of ``shards`` wait (in a dry run); return how many there are."""
    waiting = pending_decisions(services, shards)
    for transaction in transactions(services.engine):
        with transaction as connection:
            _visit_later(services, connection, [of_video[0]["vod_id"] for of_video in waiting], until)
    return sum(map(len, waiting))


def carry_out(
    services: Services, queue: TaskQueue, change_log: ChangeLog, shards: Collection[int], *, deadline: datetime
) -> list[Carried]:
    """Carry out the pending decisions about videos of ``shards`` through the change log.

    What they order (the sync of a new link, a sync, an intro) is queued for this run.

    Args:
        services: Database, source and settings.
        queue: The run's view of the tasks.
        change_log: The log to write through.
        shards: The run's shards.
        deadline: After this no source is asked any more.
    """
    carrier = _Carrier(services, queue, change_log, Naming(services, deadline))
    carried: list[Carried] = []
    for of_video in pending_decisions(services, shards):
        for item in carrier.carry_out(of_video):
            carried.append(item)
            if len(carried) % _RENEW_EVERY == 0:
                queue.renew()
    return carried


def outcomes(services: Services, carried: Iterable[Carried], tasks: Sequence[Task]) -> list[Carried]:
    """Return what became of decisions in a run once its tasks are done.

    Args:
        services: Database.
        carried: What `carry_out` returned.
        tasks: The run's tasks: of those that earlier runs queued for a decision, that decision is told too.
    """
    told = {item.decision_id: item for item in carried}
    decision = services.tables.decision
    task_ids = [task.task_id for task in tasks if DECISION in task.payload]
    queued = [item.decision_id for item in told.values() if item.state is DecisionState.QUEUED]
    if not (queued or task_ids):
        return list(told.values())
    query = select(decision).where(decision.c.decision_id.in_(queued) | decision.c.task_id.in_(task_ids))
    with reading(services.engine) as connection:
        for row in connection.execute(query.order_by(decision.c.decision_id)).mappings():
            told[row["decision_id"]] = _told(row, DecisionState(row["state"]), row["state_reason"])
    return list(told.values())


@dataclass(slots=True)
class _Carrier:
    """Carries out the decisions of one run."""

    services: Services
    queue: TaskQueue
    change_log: ChangeLog
    naming: Naming

    def carry_out(self, of_video: Sequence[RowMapping]) -> Iterator[Carried]:
        """Carry out the decisions about one video; what rests on one that must wait waits with it."""
        waits: Wait | None = None
        for decision in of_video:
            if waits is None or _aspect(decision) is Aspect.INTRO_LOCK:
                done = self._carry_out_one(decision)
                if isinstance(done, Carried):
                    yield done
                    continue
                waits = done
            yield self._put_off(decision, waits)

    def _carry_out_one(self, decision: RowMapping) -> Carried | Wait:
        vod_id, now = decision["vod_id"], self.services.clock.now()
        if decision["run_after"] is not None and decision["run_after"] > now:
            return Wait(decision["run_after"], decision["state_reason"])
        with reading(self.services.engine) as connection:
            row = self.services.cms.rows(connection, [vod_id]).get(vod_id)
            state = state_rows(connection, self.services.tables, [vod_id]).get(vod_id)
            written = self._written(connection, decision)
            fallen = why_without_link(connection, self.services.tables, decision)
        if row is None or state is None:
            return self._settle(decision, DecisionState.REFUSED, GONE)
        if written is ChangeState.REVERTED:
            return self._settle(decision, DecisionState.REVERTED, _TAKEN_BACK)
        if written is None:
            against: str | Wait = fallen or why_refused(decision, row, state, self.services.settings)
            against = against or self.naming.why_not(decision, row)
            if isinstance(against, Wait):
                return against
            overtaken = self._overtaken(decision)
            if overtaken is not None:
                return overtaken
            against = against or self._write(decision, effect_of(decision, row, state, now))
            if against:
                return self._settle(decision, DecisionState.REFUSED, against)
        return self._complete(decision, row, self._withdraw_intros(decision, row))

    def _overtaken(self, decision: RowMapping) -> Carried | None:
        """Return what became of a decision that was settled since the run began: a newer one may have replaced it."""
        table = self.services.tables.decision
        query = select(table).where(table.c.decision_id == decision["decision_id"])
        with reading(self.services.engine) as connection:
            row = connection.execute(query).mappings().one()
        state = DecisionState(row["state"])
        return None if state is DecisionState.PENDING else _told(row, state, row["state_reason"])

    def _written(self, connection: Connection, decision: RowMapping) -> ChangeState | None:
        """Return what became of the change that an earlier run wrote for a decision; None if there is none."""
        log = self.services.tables.log
        query = (
            select(log.c.state)
            .where(
                log.c.decision_id == decision["decision_id"],
                log.c.action == decision["action"],
                log.c.state.in_((ChangeState.APPLIED, ChangeState.REVERTED)),
            )
            .order_by(log.c.change_id.desc())
            .limit(1)
        )
        state = connection.execute(query).scalar()
        return ChangeState(state) if state else None

    def _write(self, decision: RowMapping, effect: Effect) -> str:
        """Write what a decision changes; return why it could not be written."""
        if effect.nothing:
            return ""
        change = Change(
            vod_id=decision["vod_id"],
            action=decision["action"],
            old=effect.old,
            new=effect.new,
            state=effect.state,
            operator=decision["reviewer"],
            reason=decision["note"] or "审核决定",
            automatic=False,
            decision_id=decision["decision_id"],
        )
        [outcome] = self.change_log.write([change])
        if outcome.state is ChangeState.APPLIED:
            return ""
        with reading(self.services.engine) as connection:
            # Another run that is at work on the shard too may have been faster.
            return "" if self._written(connection, decision) else outcome.reason

    def _withdraw_intros(self, decision: RowMapping, row: RowMapping) -> str:
        """Take back the intros that were told from another subject than the one chosen; return why any was left.

        Asked of what stands, not of what this run changed: a run may die between a decision and this.
        """
        if decision["action"] not in (*LINKING, DecisionAction.clear_id):
            return ""
        with reading(self.services.engine) as connection:
            intros = standing_intros(connection, self.services.tables, [decision["vod_id"]])
        subject = target_of(decision, row)
        wrong = tuple(intro.change_id for intro in intros if intro.douban_id != subject)
        if not wrong:
            return ""
        results = revert(
            self.change_log,
            Selection(wrong),
            operator=decision["reviewer"],
            reason=WITH_ITS_LINK,
            dry_run=False,
            decision_id=decision["decision_id"],
        )
        return "；".join(f"简介（变更 {item.change_id}）未撤销：{item.reason}" for item in results if item.skipped)

    def _complete(self, decision: RowMapping, row: RowMapping, note: str) -> Carried:
        """Order what follows from a decision and settle it, at once: another run finds all of it done or nothing."""
        tables = self.services.tables
        carried = _told(decision, DecisionState.APPLIED, note)
        for transaction in transactions(self.services.engine):
            with transaction as connection:
                if not self._still_pending(connection, decision):
                    self._own_up(connection, decision)
                    continue
                close_in_hand(connection, tables, self.queue, decision)
                task, task_id = task_of(decision), None
                if task is not None and works_on(self.services.settings, row["type_id"]):
                    task_id = order(connection, tables, self.queue, task, run_id=self.change_log.run_id)
                if decision["action"] in (DecisionAction.sync_now, DecisionAction.redo_intro):
                    carried = _told(decision, DecisionState.QUEUED, note)
                else:
                    # The sync that follows a link goes its own way: the link stands.
                    task_id = None
                self._close(connection, carried, task_id)
        return carried

    def _settle(self, decision: RowMapping, state: DecisionState, reason: str) -> Carried:
        carried = _told(decision, state, reason)
        for transaction in transactions(self.services.engine):
            with transaction as connection:
                self._close(connection, carried, None)
        return carried

    def _close(self, connection: Connection, carried: Carried, task_id: int | None) -> None:
        table = self.services.tables.decision
        queued = carried.state is DecisionState.QUEUED
        connection.execute(
            update(table)
            .where(table.c.decision_id == carried.decision_id, table.c.state == DecisionState.PENDING)
            .values(
                state=carried.state,
                state_reason=carried.reason[:500],
                pending_key=None,
                task_id=task_id,
                settled_at=None if queued else self.services.clock.now(),
            )
        )

    def _own_up(self, connection: Connection, decision: RowMapping) -> None:
        """Let a decision that was replaced in the very moment its change was written say that it stands in the log."""
        table = self.services.tables.decision
        if self._written(connection, decision) is ChangeState.APPLIED:
            connection.execute(
                update(table)
                .where(table.c.decision_id == decision["decision_id"], table.c.state == DecisionState.REFUSED)
                .values(state=DecisionState.APPLIED, state_reason=_REPLACED_AFTER)
            )

    def _still_pending(self, connection: Connection, decision: RowMapping) -> bool:
        table = self.services.tables.decision
        query = select(table.c.state).where(table.c.decision_id == decision["decision_id"]).with_for_update()
        return connection.execute(query).scalar() == DecisionState.PENDING

    def _put_off(self, decision: RowMapping, wait: Wait) -> Carried:
        """Let a decision wait, and the video with it: it gets no automatic task and would be due in vain."""
        table = self.services.tables.decision
        for transaction in transactions(self.services.engine):
            with transaction as connection:
                connection.execute(
                    update(table)
                    .where(table.c.decision_id == decision["decision_id"], table.c.state == DecisionState.PENDING)
                    .values(run_after=wait.until, state_reason=wait.reason[:500])
                )
                _visit_later(self.services, connection, [decision["vod_id"]], wait.until)
        return _told(decision, DecisionState.PENDING, wait.reason)


def _visit_later(services: Services, connection: Connection, vod_ids: Collection[int], until: datetime) -> None:
    """Move visits that lie before ``until`` there."""
    video = services.tables.video
    connection.execute(
        update(video)
        .where(video.c.vod_id.in_(vod_ids), video.c.douban_next_sync_at < until)
        .values(douban_next_sync_at=until)
    )


def _aspect(decision: RowMapping) -> Aspect:
    return aspect_of(DecisionAction(decision["action"]))


def _told(decision: RowMapping, state: DecisionState, reason: str) -> Carried:
    return Carried(
        decision["decision_id"],
        decision["vod_id"],
        decision["shard"],
        decision["action"],
        decision["douban_id"],
        decision["reviewer"],
        state,
        reason,
    )
