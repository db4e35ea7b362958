"""The queue of work: who does what, once, and what happens to it when a run dies.

Tasks are leased (`core.leases`), so two runs never hold the same one. What a dead or silent run held is free again when
its process is gone or its lease runs out. Whoever finishes or requeues a task, or hands it on, must still hold it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, cached_property, partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Update,
    bindparam,
    case,
    exists,
    func,
    select,
    update,
)

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import chunks, insert_missing, reading, run_transaction
from douban_pipeline.core.leases import Leases
from douban_pipeline.douban.store.states import ChangeState, DecisionState, TaskStage, TaskStatus
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import (
    LOCKED_ONLY,
    OPEN,
    ORDERED_INTRO_PRIORITY,
    ORDERED_PRIORITY,
    NewTask,
    Task,
    shard_of,
)

_PUT_BACK = {"status": TaskStatus.PENDING}


@cache
def task_leases(tables: OwnTables) -> Leases:
    """Return the leases of tasks."""
    task = tables.task
    return Leases(task.c.task_id, task.c.lease_owner, task.c.lease_until)


class TaskQueue:
    """The tasks as one run sees them.

    Args:
        engine: Database of our tables.
        tables: Our tables.
        clock: Time.
        owner: This run's name, see `owner.owner_name`.
        lease: How long a task stays ours without a sign of life.
    """

    def __init__(self, engine: Engine, tables: OwnTables, clock: Clock, *, owner: str, lease: timedelta) -> None:
        self.engine = engine
        self.task = tables.task
        self.leases = task_leases(tables)
        self.decision = tables.decision
        self.log = tables.log
        self.clock = clock
        self.owner = owner
        self.lease_time = lease

    def enqueue(self, connection: Connection, tasks: Iterable[NewTask], *, run_id: str) -> int:
        """Queue ``tasks`` except those whose video has an open task of the type; return how many are new."""
        now = self.clock.now()
        rows = [
            {
                "vod_id": task.vod_id,
                "shard": shard_of(task.vod_id),
                "task_type": task.task_type,
                "stage": task.stage,
                "status": TaskStatus.PENDING,
                "open_key": f"{task.vod_id}:{task.task_type}",
                "priority": task.priority,
                "run_after": now,
                "created_at": now,
                "run_id": run_id,
                "payload": dict(task.payload) or None,
            }
            for task in tasks
        ]
        return sum(self._insert_missing(connection, chunk) for chunk in chunks(rows))

    def _insert_missing(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
        keys = [row["open_key"] for row in rows]
        query = select(self.task.c.open_key).where(self.task.c.open_key.in_(keys))
        present = set(connection.execute(query).scalars())
        new = [row for row in rows if row["open_key"] not in present]
        if not new:
            return 0
        # Another run may queue the same between the look and the insert: the unique key decides, quietly.
        insert_missing(connection, self.task, new, key="open_key")
        return len(new)

    def lease(self, shards: Collection[int], stage: TaskStage, *, limit: int, ordered_only: bool = False) -> list[Task]:
        """Lease up to ``limit`` tasks of ``stage`` that are free, or ours already; the most valuable come first.

        So a later step of a run goes on with what its earlier steps leased. With ``ordered_only`` only what a person
        ordered is leased.
        """
        task = self.task
        now = self.clock.now()
        leasable: tuple[ColumnElement[bool], ...] = (
            task.c.shard.in_(shards),
            task.c.stage == stage,
            task.c.status.in_(OPEN),
            task.c.run_after <= now,
        )
        if ordered_only:
            least = ORDERED_INTRO_PRIORITY if stage is TaskStage.INTRO else ORDERED_PRIORITY
            leasable = (*leasable, task.c.priority >= least)
        ours_first = case((task.c.lease_owner == self.owner, 0), else_=1)
        order = (ours_first, task.c.priority.desc(), task.c.run_after, task.c.task_id)
        with reading(self.engine) as connection:
            wanted = self.leases.choose(connection, self.owner, now=now, where=leasable, order_by=order, limit=limit)
        # Later steps of a run lease it again: the work began with the first.
        begun = case((task.c.lease_owner == self.owner, task.c.started_at), else_=now)
        take = partial(
            self.leases.take,
            owner=self.owner,
            now=now,
            until=now + self.lease_time,
            where=leasable,
            values={"started_at": begun, "status": TaskStatus.RUNNING},
        )
        leased: list[Task] = []
        for chunk in chunks(wanted):
            leased += map(Task.from_row, run_transaction(self.engine, partial(take, keys=chunk)))
        return leased

    def queued_by(self, run_id: str, shards: Collection[int], stage: TaskStage) -> int:
        """Return how many open tasks of ``stage`` a run queued that can be done now and that no other run holds."""
        task, now = self.task, self.clock.now()
        query = select(func.count()).where(
            task.c.shard.in_(shards),
            task.c.stage == stage,
            task.c.status.in_(OPEN),
            task.c.run_id == run_id,
            task.c.run_after <= now,
            self.leases.available([self.owner], now),
        )
        with reading(self.engine) as connection:
            return int(connection.execute(query).scalar_one())

    def renew(self) -> None:
        """Renew all leases of this run: its heartbeat."""
        with reading(self.engine) as connection:
            ours = self.leases.held(connection, self.owner)
        for chunk in chunks(ours):
            until = self.clock.now() + self.lease_time
            run_transaction(self.engine, partial(self.leases.renew, owner=self.owner, keys=chunk, until=until))

    def advance(self, connection: Connection, task: Task, stage: TaskStage, payload: Mapping[str, Any]) -> bool:
        """Hand ``task`` on to ``stage`` of the same run, with what was found so far; return whether it was still ours.

        Nothing changes where the lease was lost.
        """
        until = self.clock.now() + self.lease_time
        found = {"stage": stage, "payload": payload}
        return not self.leases.renew(connection, self.owner, [task.task_id], until, found)

    def finish(self, connection: Connection, task_id: int, status: TaskStatus, note: str = "") -> bool:
        """Close a task of this run and settle the decision that it applies, if any; return whether it was still ours.

        Nothing changes where the lease was lost: whoever holds the task now finishes it, and what this run did for it
        does not count.
        """
        now = self.clock.now()
        closed = {"status": status, "open_key": None, "last_error": note[:500], "finished_at": now}
        if self.leases.finish(connection, task_id, self.owner, closed, self._finish_unordered):
            return True
        if not self.leases.finish(connection, task_id, self.owner, closed):
            return False
        self._settle_decision(connection, task_id, note, now, done=status is TaskStatus.SUCCESS)
        return True

    def cancel(self, connection: Connection, task_id: int, note: str, *, unless_held: bool = False) -> bool:
        """Skip an open task, whoever holds it, and refuse the decision that it applies; return whether it was open.

        The run that held it learns so when it finishes the task.

        Args:
            connection: A transaction.
            task_id: The task.
            note: Why, for people.
            unless_held: Leave a task alone that another run holds.
        """
        task, now = self.task, self.clock.now()
        closed = {"status": TaskStatus.SKIP, "open_key": None, "last_error": note[:500], "finished_at": now}
        which = [task.c.task_id == task_id, task.c.open_key.is_not(None)]
        if unless_held:
            which.append(self.leases.available([self.owner], now))
        if not connection.execute(update(task).where(*which).values({**self.leases.freed, **closed})).rowcount:
            return False
        self._settle_decision(connection, task_id, note, now, done=False)
        return True

    def _settle_decision(self, connection: Connection, task_id: int, note: str, now: datetime, *, done: bool) -> None:
        """Settle the decision that a closed task applies.

        One that has written something already, a lock, is never called refused: it says what was not done.
        """
        state = DecisionState.APPLIED if done else DecisionState.REFUSED
        remark = note if done else f"{LOCKED_ONLY}{note}"
        known = {"closed_id": task_id, "said": note[:500], "at": now, "settled_as": state, "remark": remark[:500]}
        connection.execute(self._settle, known)

    # Built once: a run finishes tasks by the thousand, and putting a statement together costs more than sending it.

    @cached_property
    def _finish_unordered(self) -> Update:
        """What finishes a task that applies no decision, most of them: whoever orders one raises its priority."""
        stage, priority = self.task.c.stage, self.task.c.priority
        ordered = case((stage == TaskStage.INTRO, ORDERED_INTRO_PRIORITY), else_=ORDERED_PRIORITY)
        return self.leases.finishing.where(priority < ordered)

    @cached_property
    def _settle(self) -> Update:
        decision, log = self.decision, self.log
        wrote = (
            exists()
            .where(
                log.c.decision_id == decision.c.decision_id,
                log.c.action == decision.c.action,
                log.c.state == ChangeState.APPLIED,
            )
            .correlate(decision)
        )
        return (
            update(decision)
            .where(decision.c.task_id == bindparam("closed_id"), decision.c.state == DecisionState.QUEUED)
            .values(
                state=case((wrote, DecisionState.APPLIED), else_=bindparam("settled_as")),
                state_reason=case((wrote, bindparam("remark")), else_=bindparam("said")),
                settled_at=bindparam("at"),
            )
        )

    def requeue(
        self,
        connection: Connection,
        task_id: int,
        run_after: datetime,
        reason: str,
        *,
        failed: bool,
        stage: TaskStage | None = None,
    ) -> bool:
        """Return a task of this run to the queue; return whether it was still ours.

        Nothing changes where the lease was lost, or where a person's decision closed the task.

        Args:
            connection: A transaction.
            task_id: The task.
            run_after: No run leases it before this.
            reason: Why, for people.
            failed: Whether it counts as a failure; a closed gate does not.
            stage: Which asset handles it next, if another than before.
        """
        values: dict[str, Any] = {**_PUT_BACK, "run_after": run_after, "last_error": reason[:500]}
        if failed:
            values["attempts"] = self.task.c.attempts + 1
        if stage is not None:
            values["stage"] = stage
        return self.leases.finish(connection, task_id, self.owner, values)

    def give_up(self, connection: Connection, task_ids: Collection[int], run_after: datetime) -> int:
        """Return untouched tasks of this run to the queue, as many as a statement may name; return how many were ours.

        Args:
            connection: A transaction.
            task_ids: The tasks.
            run_after: No run leases them before this.
        """
        free = {**_PUT_BACK, "run_after": run_after, "last_error": ""}
        return self.leases.put_back(connection, self.owner, task_ids, free)

    def holds(self, connection: Connection, task_id: int) -> bool:
        """Return whether a task is still this run's, and keep it so for as long as the transaction lasts."""
        return self.leases.holds(connection, task_id, self.owner)

    def held(self, connection: Connection, task_ids: Collection[int]) -> set[int]:
        """Return those of ``task_ids`` that are this run's at this moment."""
        return set(self.leases.held(connection, self.owner, [*task_ids]))

    def release_dead(self) -> list[str]:
        """Free the tasks of owners whose process is gone; return those owners."""
        return self.leases.put_back_dead(self.engine, values=_PUT_BACK)
