"""Applying reviewers' decisions: in runs of their own, and first in every run of the chain that finds some.

Two runs never apply one together (`leases`). A run may die between any two steps and another goes on: what a decision
wrote is found in the log by its id, intros are reverted by what is current, and everything else is one transaction
together with the decision's own state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, RowMapping, Update, func, select, update

from douban_pipeline.cms.maccms import MATCH_COLUMNS
from douban_pipeline.core.database import chunks, reading, run_statement, run_transaction
from douban_pipeline.douban.decisions.effects import Effect, close_in_hand, effect_of, order, target_of, task_of
from douban_pipeline.douban.decisions.leases import DecisionLeases, decision_leases, due_decision
from douban_pipeline.douban.decisions.refusals import decision_refusal, missing_link_refusal
from douban_pipeline.douban.decisions.subject_checks import Deferral, SubjectChecks
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import NAMING, Aspect, Decision, DecisionStatus
from douban_pipeline.douban.store.states import ChangeState, DecisionAction, DecisionState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import DECISION, LOCKED_ONLY, OUT_OF_SCOPE, Task
from douban_pipeline.douban.store.videos import GONE, state_rows
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.intro_changes import current_intros
from douban_pipeline.douban.writes.refusals import cms_lock_refusal
from douban_pipeline.douban.writes.revert import WITH_ITS_LINK, ChangeSelection, revert

_REVERTED = "执行之后已被撤销"
_REPLACED_AFTER = "执行的同时有了更新的决定"
_ONLY_LOCKED = f"{LOCKED_ONLY}{OUT_OF_SCOPE}"
"""An earlier run wrote the lock and died, and the CMS moved the video since."""
_MOST_IN_LANE = 5000
"""Decisions that one run of the lane looks for: more than it can apply before it makes room for newer ones."""

_AT_ONCE = 50
"""Videos whose decisions are leased together: few, so that overlapping runs share them out."""


def waiting_videos(
    services: Services,
    shards: Collection[int],
    *,
    ready: bool = False,
    most: int | None = None,
    videos: Collection[int] | None = None,
) -> list[int]:
    """Return the videos of ``shards`` with pending decisions: first those that ask no source, the oldest first.

    Args:
        services: Database and time.
        shards: Which shards.
        ready: Leave out what waits for a source, and what another run holds.
        most: Look at no more than this many decisions.
        videos: Only these; by default all.
    """
    decision, now = services.tables.decision, services.clock.now()
    query = (
        select(decision.c.vod_id, decision.c.action, decision.c.checked_at)
        .where(decision.c.state == DecisionState.PENDING, decision.c.shard.in_(shards))
        .order_by(decision.c.decision_id)
        .limit(most)
    )
    if videos is not None:
        query = query.where(decision.c.vod_id.in_(videos))
    if ready:
        query = query.where(due_decision(services.tables, now), decision_leases(services.tables).free(now))
    asking: dict[int, bool] = {}
    with reading(services.engine) as connection:
        for vod_id, action, checked_at in connection.execute(query):
            asks = action in NAMING and checked_at is None
            asking[vod_id] = asks or asking.get(vod_id, False)
    return sorted(asking, key=lambda vod_id: asking[vod_id])


def defer_decisions(services: Services, shards: Collection[int], until: datetime) -> int:
    """Defer the visits of videos of ``shards`` with pending decisions (in a dry run); return how many decisions."""
    waiting = waiting_videos(services, shards)
    for vod_ids in chunks(waiting):
        run_statement(services.engine, _visit_later(services.tables, vod_ids, until))
    return pending_count(services, shards)


def pending_count(services: Services, shards: Collection[int]) -> int:
    """Return how many decisions about videos of ``shards`` are pending."""
    decision = services.tables.decision
    query = select(func.count()).where(decision.c.state == DecisionState.PENDING, decision.c.shard.in_(shards))
    with reading(services.engine) as connection:
        return int(connection.execute(query).scalar_one())


def apply_decisions(
    services: Services,
    queue: TaskQueue,
    change_log: ChangeLog,
    shards: Collection[int],
    *,
    deadline: datetime,
    lane: bool = False,
    videos: Collection[int] | None = None,
) -> int:
    """Apply the pending decisions about videos of ``shards`` through the change log; return how many were looked at.

    Each is applied, refused with its reason, or deferred until its source can be asked. Of one video the link is
    decided on first, then its lock, then what depends on the link. What they order (the sync of a new link, a sync, an
    intro) is queued. What another run holds is left to it.

    Args:
        services: Database, source and settings.
        queue: The run's view of the tasks.
        change_log: The log to write through.
        shards: The run's shards.
        deadline: After this no source is asked any more.
        lane: Whether it is the run whose only work this is: it looks at what is ready alone, and ends at the deadline.
        videos: Only the decisions about these videos of ``shards``; by default all.
    """
    leases = DecisionLeases(services, queue.owner)
    applier = _DecisionApplier(services, queue, change_log, SubjectChecks(services, deadline), leases)
    handled = 0
    try:
        waiting = waiting_videos(services, shards, ready=lane, most=_MOST_IN_LANE if lane else None, videos=videos)
        for vod_ids in chunks(waiting, _AT_ONCE):
            for of_video in leases.lease(vod_ids):
                if lane and services.clock.now() >= deadline:
                    return handled
                for _ in applier.apply(sorted(of_video, key=lambda each: (each.aspect, each.decision_id))):
                    handled += 1
                leases.renew()
            queue.renew()
    finally:
        leases.release()
    return handled


def decisions_of_run(services: Services, queue: TaskQueue, tasks: Sequence[Task]) -> list[Decision]:
    """Return the decisions that a run applied, refused or deferred so far, in whichever step, as they are now.

    Args:
        services: Database.
        queue: The run's view of the tasks.
        tasks: The run's tasks. Decisions of earlier runs that queued one of them are returned, too.
    """
    table = services.tables.decision
    task_ids = [task.task_id for task in tasks if DECISION in task.payload]
    found: dict[int, Decision] = {}
    with reading(services.engine) as connection:
        ours = [table.c.lease_owner == queue.owner, *(table.c.task_id.in_(chunk) for chunk in chunks(task_ids))]
        for condition in ours:
            for row in connection.execute(select(table).where(condition)).mappings():
                found[row["decision_id"]] = Decision.from_row(row)
    return [found[key] for key in sorted(found)]


@dataclass(slots=True)
class _DecisionApplier:
    """Applies the decisions of one run."""

    services: Services
    queue: TaskQueue
    change_log: ChangeLog
    checks: SubjectChecks
    leases: DecisionLeases

    def apply(self, of_video: Sequence[Decision]) -> Iterator[Decision]:
        """Apply the decisions about one video; what depends on one that must wait waits with it."""
        deferral: Deferral | None = None
        for decision in of_video:
            if deferral is None or decision.aspect is Aspect.INTRO_LOCK:
                result = self._apply_one(decision)
                if isinstance(result, Decision):
                    yield result
                    continue
                deferral = result
            yield self._defer(decision, deferral)

    def _apply_one(self, decision: Decision) -> Decision | Deferral:
        now = self.services.clock.now()
        if decision.run_after is not None and decision.run_after > now:
            return Deferral(decision.run_after, decision.reason)
        with reading(self.services.engine) as connection:
            row = self.services.cms.rows(connection, [decision.vod_id]).get(decision.vod_id)
            state = state_rows(connection, self.services.tables, [decision.vod_id]).get(decision.vod_id)
            written = self._written(connection, decision)
            without_link = missing_link_refusal(connection, self.services.tables, decision)
        if row is None or state is None:
            return self._settle(decision, DecisionStatus.REFUSED, GONE)
        if written is ChangeState.REVERTED:
            return self._settle(decision, DecisionStatus.REVERTED, _REVERTED)
        if written is None:
            refusal: str | Deferral | None = without_link
            refusal = refusal or decision_refusal(decision, row, state, self.services.settings)
            refusal = refusal or self.checks.refusal(decision, row)
            if isinstance(refusal, Deferral):
                return refusal
            settled = self._settled_since(decision)
            if settled is not None:
                return settled
            refusal = refusal or self._write(decision, effect_of(decision, row, state, now), row)
            if refusal:
                return self._settle(decision, DecisionStatus.REFUSED, refusal)
        return self._complete(decision, row, self._revert_intros(decision, row))

    def _settled_since(self, decision: Decision) -> Decision | None:
        """Return a decision as it is now if it is no longer this run's: a newer one may have replaced it."""
        table = self.services.tables.decision
        query = select(table).where(table.c.decision_id == decision.decision_id)
        with reading(self.services.engine) as connection:
            row = connection.execute(query).mappings().one()
        current = Decision.from_row(row)
        return None if current.pending and row["lease_owner"] == self.leases.owner else current

    def _written(self, connection: Connection, decision: Decision) -> ChangeState | None:
        """Return the state of the change that an earlier run wrote for a decision; None if there is none."""
        log = self.services.tables.log
        query = (
            select(log.c.state)
            .where(
                log.c.decision_id == decision.decision_id,
                log.c.action == decision.action,
                log.c.state.in_((ChangeState.APPLIED, ChangeState.REVERTED)),
            )
            .order_by(log.c.change_id.desc())
            .limit(1)
        )
        state = connection.execute(query).scalar()
        return ChangeState(state) if state else None

    def _write(self, decision: Decision, effect: Effect, row: RowMapping) -> str | None:
        """Write what a decision changes; return why it could not be written, None if it was.

        A link is written only to the video that was compared with the subject, which may have taken minutes: by now
        the row may be another film's.
        """
        if effect.nothing:
            return None
        change = Change(
            vod_id=decision.vod_id,
            action=decision.action,
            old=effect.old,
            new=effect.new,
            state=effect.state,
            operator=decision.reviewer,
            reason=decision.note or "审核决定",
            automatic=False,
            override_cms_lock=decision.override_cms_lock,
            given={column: row[column] for column in MATCH_COLUMNS} if decision.linking else {},
            decision_id=decision.decision_id,
        )
        [outcome] = self.change_log.write([change])
        if outcome.state is ChangeState.APPLIED:
            return None
        with reading(self.services.engine) as connection:
            # Another run that is at work on the shard too may have been faster.
            return None if self._written(connection, decision) else outcome.reason

    def _revert_intros(self, decision: Decision, row: RowMapping) -> str:
        """Revert the intros that were written from another subject than the one chosen; return why any was left.

        Asked of what is current, not of what this run changed: a run may die between a decision and this.
        """
        if not decision.linking and decision.action is not DecisionAction.clear_id:
            return ""
        with reading(self.services.engine) as connection:
            intros = current_intros(connection, self.services.tables, [decision.vod_id])
        subject = target_of(decision, row)
        wrong = tuple(intro.change_id for intro in intros if intro.douban_id != subject)
        if not wrong:
            return ""
        results = revert(
            self.change_log,
            ChangeSelection(wrong),
            operator=decision.reviewer,
            reason=WITH_ITS_LINK,
            dry_run=False,
            decision_id=decision.decision_id,
            override_cms_lock=decision.override_cms_lock,
        )
        return "；".join(f"简介（变更 {item.change_id}）未撤销：{item.reason}" for item in results if item.skipped)

    def _complete(self, decision: Decision, row: RowMapping, note: str) -> Decision:
        """Queue what follows from a decision and settle it, in one transaction."""
        ordered = decision.action in (DecisionAction.sync_now, DecisionAction.redo_intro)
        task = task_of(decision) if self.services.settings.works_on(row["type_id"]) else None
        # Without a task there is nothing that would settle it.
        queued = ordered and task is not None
        status = DecisionStatus.QUEUED if queued else DecisionStatus.APPLIED
        settled = replace(decision, status=status, reason=_ONLY_LOCKED if ordered and task is None else note)
        locked = cms_lock_refusal(row, respect_vod_lock=self.services.settings.respect_vod_lock)
        if decision.linking and locked is not None:
            # The fields are automation's, whose write the site's lock would refuse: Douban need not be asked.
            task = None

        def complete(connection: Connection) -> None:
            if not self._still_ours(connection, decision):
                self._mark_applied(connection, decision)
                return
            close_in_hand(connection, self.services.tables, self.queue, decision)
            task_id = None
            if task is not None:
                task_id = order(connection, self.services.tables, self.queue, task, run_id=self.change_log.run_id)
            # The sync that follows a link is a task of its own: the decision does not wait for it.
            connection.execute(self._close(settled, task_id if queued else None))

        run_transaction(self.services.engine, complete)
        return settled

    def _settle(self, decision: Decision, status: DecisionStatus, reason: str) -> Decision:
        settled = replace(decision, status=status, reason=reason)
        run_statement(self.services.engine, self._close(settled, None))
        return settled

    def _close(self, decision: Decision, task_id: int | None) -> Update:
        """Return the statement that settles a pending decision."""
        table = self.services.tables.decision
        queued = decision.status is DecisionStatus.QUEUED
        return (
            update(table)
            .where(self.leases.ours(decision.decision_id))
            .values(
                state=DecisionState(decision.status),
                state_reason=decision.reason[:500],
                pending_key=None,
                lease_until=None,
                task_id=task_id,
                settled_at=None if queued else self.services.clock.now(),
            )
        )

    def _mark_applied(self, connection: Connection, decision: Decision) -> None:
        """Mark a decision as applied that was replaced just when its change was written: the log has the change."""
        table = self.services.tables.decision
        if self._written(connection, decision) is ChangeState.APPLIED:
            connection.execute(
                update(table)
                .where(table.c.decision_id == decision.decision_id, table.c.state == DecisionState.REFUSED)
                .values(state=DecisionState.APPLIED, state_reason=_REPLACED_AFTER)
            )

    def _still_ours(self, connection: Connection, decision: Decision) -> bool:
        table = self.services.tables.decision
        query = select(table.c.decision_id).where(self.leases.ours(decision.decision_id)).with_for_update()
        return connection.execute(query).first() is not None

    def _defer(self, decision: Decision, deferral: Deferral) -> Decision:
        """Defer a decision, and the video's visit with it: it gets no automatic task until then."""
        table = self.services.tables.decision
        defer = (
            update(table)
            .where(self.leases.ours(decision.decision_id))
            .values(run_after=deferral.until, state_reason=deferral.reason[:500], lease_until=None)
        )
        visit = _visit_later(self.services.tables, [decision.vod_id], deferral.until)
        run_transaction(self.services.engine, partial(_execute, statements=(defer, visit)))
        return replace(decision, status=DecisionStatus.WAITING, reason=deferral.reason, run_after=deferral.until)


def _execute(connection: Connection, statements: Sequence[Update]) -> None:
    for statement in statements:
        connection.execute(statement)


def _visit_later(tables: OwnTables, vod_ids: Collection[int], until: datetime) -> Update:
    """Return the statement that moves visits before ``until`` there."""
    video = tables.video
    return (
        update(video)
        .where(video.c.vod_id.in_(vod_ids), video.c.douban_next_sync_at < until)
        .values(douban_next_sync_at=until)
    )
