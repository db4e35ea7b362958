"""Applying reviewers' decisions, before anything automatic is written.

A run may die between any two steps and another goes on: what a decision wrote is found in the log by its id, intros
are reverted by what is current, and everything else is one transaction together with the decision's own state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from sqlalchemy import Connection, RowMapping, Update, select, update

from douban_pipeline.core.database import reading, run_statement, run_transaction
from douban_pipeline.douban.chain.syncing.subject_checks import Deferral, SubjectChecks
from douban_pipeline.douban.decisions.effects import Effect, close_in_hand, effect_of, order, target_of, task_of
from douban_pipeline.douban.decisions.refusals import decision_refusal, missing_link_refusal
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import Aspect, Decision, DecisionStatus
from douban_pipeline.douban.store.states import ChangeState, DecisionAction, DecisionState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import DECISION, Task, TaskQueue
from douban_pipeline.douban.store.videos import GONE, state_rows
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.intro_changes import current_intros
from douban_pipeline.douban.writes.refusals import cms_lock_refusal
from douban_pipeline.douban.writes.revert import WITH_ITS_LINK, ChangeSelection, revert

_REVERTED = "执行之后已被撤销"
_REPLACED_AFTER = "执行的同时有了更新的决定"
_RENEW_EVERY = 20


def pending_decisions(services: Services, shards: Collection[int]) -> list[list[Decision]]:
    """Return the pending decisions about videos of ``shards``, a list a video, in the order of applying them.

    The video whose oldest decision is oldest comes first. Of one video the link is decided on first, then its lock,
    then what depends on the link.
    """
    decision = services.tables.decision
    query = (
        select(decision)
        .where(decision.c.state == DecisionState.PENDING, decision.c.shard.in_(shards))
        .order_by(decision.c.decision_id)
    )
    by_video: dict[int, list[Decision]] = {}
    with reading(services.engine) as connection:
        for row in connection.execute(query).mappings():
            by_video.setdefault(row["vod_id"], []).append(Decision.from_row(row))
    for of_video in by_video.values():
        of_video.sort(key=lambda decision: (decision.aspect, decision.decision_id))
    return list(by_video.values())


def defer_decisions(services: Services, shards: Collection[int], until: datetime) -> int:
    """Defer the visits of videos of ``shards`` with pending decisions (in a dry run); return how many decisions."""
    pending = pending_decisions(services, shards)
    run_statement(services.engine, _visit_later(services.tables, [of_video[0].vod_id for of_video in pending], until))
    return sum(map(len, pending))


def apply_decisions(
    services: Services, queue: TaskQueue, change_log: ChangeLog, shards: Collection[int], *, deadline: datetime
) -> list[Decision]:
    """Apply the pending decisions about videos of ``shards`` through the change log; return them as they are then.

    What they order (the sync of a new link, a sync, an intro) is queued for this run.

    Args:
        services: Database, source and settings.
        queue: The run's view of the tasks.
        change_log: The log to write through.
        shards: The run's shards.
        deadline: After this no source is asked any more.
    """
    applier = _DecisionApplier(services, queue, change_log, SubjectChecks(services, deadline))
    handled: list[Decision] = []
    for of_video in pending_decisions(services, shards):
        for decision in applier.apply(of_video):
            handled.append(decision)
            if len(handled) % _RENEW_EVERY == 0:
                queue.renew()
    return handled


def final_decisions(services: Services, handled: Iterable[Decision], tasks: Sequence[Task]) -> list[Decision]:
    """Return the decisions of a run as they are once its tasks are done.

    Args:
        services: Database.
        handled: What `apply_decisions` returned.
        tasks: The run's tasks. Decisions of earlier runs that queued one of them are returned, too.
    """
    by_id = {decision.decision_id: decision for decision in handled}
    table = services.tables.decision
    task_ids = [task.task_id for task in tasks if DECISION in task.payload]
    queued = [decision.decision_id for decision in by_id.values() if decision.status is DecisionStatus.QUEUED]
    if not (queued or task_ids):
        return list(by_id.values())
    query = select(table).where(table.c.decision_id.in_(queued) | table.c.task_id.in_(task_ids))
    with reading(services.engine) as connection:
        for row in connection.execute(query.order_by(table.c.decision_id)).mappings():
            by_id[row["decision_id"]] = Decision.from_row(row)
    return list(by_id.values())


@dataclass(slots=True)
class _DecisionApplier:
    """Applies the decisions of one run."""

    services: Services
    queue: TaskQueue
    change_log: ChangeLog
    checks: SubjectChecks

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
            refusal = refusal or self._write(decision, effect_of(decision, row, state, now))
            if refusal:
                return self._settle(decision, DecisionStatus.REFUSED, refusal)
        return self._complete(decision, row, self._revert_intros(decision, row))

    def _settled_since(self, decision: Decision) -> Decision | None:
        """Return a decision as it is now if it is settled since the run began: a newer one may have replaced it."""
        table = self.services.tables.decision
        query = select(table).where(table.c.decision_id == decision.decision_id)
        with reading(self.services.engine) as connection:
            current = Decision.from_row(connection.execute(query).mappings().one())
        return None if current.pending else current

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

    def _write(self, decision: Decision, effect: Effect) -> str | None:
        """Write what a decision changes; return why it could not be written, None if it was."""
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
        """Order what follows from a decision and settle it, at once: another run finds all of it done or nothing."""
        queued = decision.action in (DecisionAction.sync_now, DecisionAction.redo_intro)
        status = DecisionStatus.QUEUED if queued else DecisionStatus.APPLIED
        settled = replace(decision, status=status, reason=note)
        task = task_of(decision) if self.services.settings.works_on(row["type_id"]) else None
        locked = cms_lock_refusal(row, respect_vod_lock=self.services.settings.respect_vod_lock)
        if decision.linking and locked is not None:
            # The fields are automation's, whose write the site's lock would refuse: Douban need not be asked.
            task = None

        def complete(connection: Connection) -> None:
            if not self._still_pending(connection, decision):
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
        """Return the statement that ends a decision's being pending."""
        table = self.services.tables.decision
        queued = decision.status is DecisionStatus.QUEUED
        return (
            update(table)
            .where(table.c.decision_id == decision.decision_id, table.c.state == DecisionState.PENDING)
            .values(
                state=DecisionState(decision.status),
                state_reason=decision.reason[:500],
                pending_key=None,
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

    def _still_pending(self, connection: Connection, decision: Decision) -> bool:
        table = self.services.tables.decision
        query = select(table.c.state).where(table.c.decision_id == decision.decision_id).with_for_update()
        return connection.execute(query).scalar() == DecisionState.PENDING

    def _defer(self, decision: Decision, deferral: Deferral) -> Decision:
        """Defer a decision, and the video's visit with it: it gets no automatic task until then."""
        table = self.services.tables.decision
        defer = (
            update(table)
            .where(table.c.decision_id == decision.decision_id, table.c.state == DecisionState.PENDING)
            .values(run_after=deferral.until, state_reason=deferral.reason[:500])
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
