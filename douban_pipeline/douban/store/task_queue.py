"""The queue of work: who does what, once, and what happens to it when a run dies.

A task is leased by a conditional UPDATE, which every supported server makes atomic, so two runs never hold the same
task. What a dead or silent run held is free again when its process is gone or its lease runs out. Whoever finishes or
requeues a task, or hands it on, must still hold its lease: a run that was silent for too long learns from the answer
that another has the task by now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Engine,
    Update,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    update,
)

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.database import chunks, insert_missing, reading, run_statement, run_transaction
from douban_pipeline.core.owner import is_dead
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
            self._free_or_ours(now),
        )
        if ordered_only:
            least = ORDERED_INTRO_PRIORITY if stage is TaskStage.INTRO else ORDERED_PRIORITY
            leasable = (*leasable, task.c.priority >= least)
        ours_first = case((task.c.lease_owner == self.owner, 0), else_=1)
        with reading(self.engine) as connection:
            query = (
                select(task.c.task_id)
                .where(*leasable)
                .order_by(ours_first, task.c.priority.desc(), task.c.run_after, task.c.task_id)
                .limit(limit)
            )
            wanted = list(connection.execute(query).scalars())

        def lease_chunk(connection: Connection, task_ids: Sequence[int]) -> list[Task]:
            connection.execute(
                update(task)
                .where(task.c.task_id.in_(task_ids), *leasable)
                .ordered_values(
                    # Later steps of a run lease it again: the work began with the first. MySQL assigns in the order
                    # written, so this comes before the owner changes.
                    (task.c.started_at, case((task.c.lease_owner == self.owner, task.c.started_at), else_=now)),
                    (task.c.status, TaskStatus.RUNNING),
                    (task.c.lease_owner, self.owner),
                    (task.c.lease_until, now + self.lease_time),
                )
            )
            ours = (task.c.task_id.in_(task_ids), task.c.lease_owner == self.owner, task.c.stage == stage)
            return [Task.from_row(row) for row in connection.execute(select(task).where(*ours))]

        leased: list[Task] = []
        for chunk in chunks(wanted):
            leased += run_transaction(self.engine, partial(lease_chunk, task_ids=chunk))
        order = {task_id: position for position, task_id in enumerate(wanted)}
        return sorted(leased, key=lambda item: order[item.task_id])

    def queued_by(self, run_id: str, shards: Collection[int], stage: TaskStage) -> int:
        """Return how many open tasks of ``stage`` a run queued that can be done now and that no other run holds."""
        task, now = self.task, self.clock.now()
        query = select(func.count()).where(
            task.c.shard.in_(shards),
            task.c.stage == stage,
            task.c.status.in_(OPEN),
            task.c.run_id == run_id,
            task.c.run_after <= now,
            self._free_or_ours(now),
        )
        with reading(self.engine) as connection:
            return int(connection.execute(query).scalar_one())

    def _free_or_ours(self, now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
        """Return the condition that no other run holds a task."""
        task = self.task
        return or_(task.c.lease_until.is_(None), task.c.lease_until < now, task.c.lease_owner == self.owner)

    def renew(self) -> None:
        """Renew all leases of this run: its heartbeat."""
        task = self.task
        with reading(self.engine) as connection:
            query = select(task.c.task_id).where(task.c.lease_owner == self.owner, task.c.status == TaskStatus.RUNNING)
            ours = sorted(connection.execute(query).scalars())
        # By key and in order: an update by lease_owner would lock through an index that finishing a task changes.
        for chunk in chunks(ours):
            still_ours = (task.c.task_id.in_(chunk), task.c.lease_owner == self.owner)
            until = self.clock.now() + self.lease_time
            run_statement(self.engine, update(task).where(*still_ours).values(lease_until=until))

    def advance(self, connection: Connection, task: Task, stage: TaskStage, payload: Mapping[str, Any]) -> bool:
        """Hand ``task`` on to ``stage`` of the same run, with what was found so far; return whether it was still ours.

        Nothing changes where the lease was lost.
        """
        statement = (
            update(self.task)
            .where(self.task.c.task_id == task.task_id, self.task.c.lease_owner == self.owner)
            .values(stage=stage, payload=payload, lease_until=self.clock.now() + self.lease_time)
        )
        return bool(connection.execute(statement).rowcount)

    def finish(self, connection: Connection, task_id: int, status: TaskStatus, note: str = "") -> bool:
        """Close a task of this run and settle the decision that it applies, if any; return whether it was still ours.

        Nothing changes where the lease was lost: whoever holds the task now finishes it, and what this run did for it
        does not count.
        """
        known = {"closed_id": task_id, "said": note[:500], "at": self.clock.now()}
        if not connection.execute(self._close_ours, {**known, "closed_as": status}).rowcount:
            return False
        self._settle_decision(connection, known, note, done=status is TaskStatus.SUCCESS)
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
        known = {"closed_id": task_id, "said": note[:500], "at": self.clock.now()}
        statement = self._close_free if unless_held else self._close_any
        if not connection.execute(statement, {**known, "closed_as": TaskStatus.SKIP}).rowcount:
            return False
        self._settle_decision(connection, known, note, done=False)
        return True

    def _settle_decision(self, connection: Connection, known: Mapping[str, Any], note: str, *, done: bool) -> None:
        """Settle the decision that a closed task applies.

        One that has written something already, a lock, is never called refused: it says what was not done.
        """
        state = DecisionState.APPLIED if done else DecisionState.REFUSED
        remark = note if done else f"{LOCKED_ONLY}{note}"
        connection.execute(self._settle, {**known, "settled_as": state, "remark": remark[:500]})

    # Built once: a run finishes tasks by the thousand, and putting a statement together costs more than sending it.

    @cached_property
    def _close_ours(self) -> Update:
        return self._close.where(self.task.c.lease_owner == self.owner)

    @cached_property
    def _close_free(self) -> Update:
        return self._close_any.where(self._free_or_ours(bindparam("at")))

    @cached_property
    def _close_any(self) -> Update:
        return self._close.where(self.task.c.open_key.is_not(None))

    @property
    def _close(self) -> Update:
        return (
            update(self.task)
            .where(self.task.c.task_id == bindparam("closed_id"))
            .values(
                status=bindparam("closed_as"),
                open_key=None,
                lease_owner=None,
                lease_until=None,
                last_error=bindparam("said"),
                finished_at=bindparam("at"),
            )
        )

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
        values: dict[str, Any] = {
            "status": TaskStatus.PENDING,
            "run_after": run_after,
            "lease_owner": None,
            "lease_until": None,
            "last_error": reason[:500],
        }
        if failed:
            values["attempts"] = self.task.c.attempts + 1
        if stage is not None:
            values["stage"] = stage
        ours = (self.task.c.task_id == task_id, self.task.c.lease_owner == self.owner)
        return bool(connection.execute(update(self.task).where(*ours).values(**values)).rowcount)

    def give_up(self, connection: Connection, task_ids: Collection[int], run_after: datetime) -> int:
        """Return untouched tasks of this run to the queue, as many as a statement may name; return how many were ours.

        Args:
            connection: A transaction.
            task_ids: The tasks.
            run_after: No run leases them before this.
        """
        ours = (self.task.c.task_id.in_(task_ids), self.task.c.lease_owner == self.owner)
        free = {"status": TaskStatus.PENDING, "run_after": run_after, "lease_owner": None, "lease_until": None}
        return connection.execute(update(self.task).where(*ours).values(**free, last_error="")).rowcount

    def holds(self, connection: Connection, task_id: int) -> bool:
        """Return whether a task is still this run's, and keep it so for as long as the transaction lasts."""
        task = self.task
        query = select(task.c.task_id).where(task.c.task_id == task_id, task.c.lease_owner == self.owner)
        return connection.execute(query.with_for_update()).first() is not None

    def held(self, connection: Connection, task_ids: Collection[int]) -> set[int]:
        """Return those of ``task_ids`` that are this run's at this moment."""
        task = self.task
        query = select(task.c.task_id).where(task.c.task_id.in_(task_ids), task.c.lease_owner == self.owner)
        return set(connection.execute(query).scalars())

    def release_dead(self) -> list[str]:
        """Free the tasks of owners whose process is gone; return those owners."""
        task = self.task
        with reading(self.engine) as connection:
            owners = connection.execute(select(task.c.lease_owner).where(task.c.lease_owner.is_not(None)).distinct())
            dead = [owner for owner in owners.scalars() if is_dead(owner)]
        if dead:
            free = {"status": TaskStatus.PENDING, "lease_owner": None, "lease_until": None}
            run_statement(self.engine, update(task).where(task.c.lease_owner.in_(dead)).values(**free))
        return dead
