"""Batches of choices of the served sheet: recorded when they are sent, applied and reported to Dagster in a thread.

They are recorded and applied by the very functions that the jobs use, with the same refusals, leases and log. The name
of a batch is made of the page's name for it, so that one that is sent again, because its answer was lost, is recorded
once. A service that is killed loses none: what is recorded and not applied is applied by the decisions lane of Dagster,
and what was not reported to Dagster is kept in a table until the service runs again.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import RowMapping, delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import insert_missing, reading, run_statement, run_transaction
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.douban.chain.session import open_session
from douban_pipeline.douban.decisions.application import apply_decisions
from douban_pipeline.douban.decisions.leases import due_decision
from douban_pipeline.douban.decisions.withdrawal import RevertedSelection, revert_and_withdraw
from douban_pipeline.douban.review.records.record import record
from douban_pipeline.douban.review.served.dagster_api import BatchReport, DagsterApi, DagsterUnavailable
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import SERVED_RUN, Decision
from douban_pipeline.douban.store.states import ChangeState, DecisionAction, DecisionState
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.wording import ACTIONS
from douban_pipeline.douban.writes.revert import ChangeSelection

CHECK_SECONDS = 10.0
"""How long a page waits for subjects that a person named; what was not asked by then is asked before it is applied."""

APPLYING_TIME = timedelta(seconds=20)
"""How long a batch begins to apply further decisions before the next batch has its turn."""

KEPT = timedelta(days=7)
"""How long it is tried to report a batch to Dagster."""

_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_MOST_LISTED = 30
_LOG = logging.getLogger(__name__)


def batch_of(request: str) -> str:
    """Return the name of the batch that a page sends as ``request``."""
    return hashlib.sha256(request.encode()).hexdigest()[:16]


def run_of(batch_id: str) -> str:
    """Return the name under which a batch is in the log and in the table of decisions, in place of a run's id."""
    return f"{SERVED_RUN}{batch_id}"


class Batches:
    """The batches of one service. Safe to share between threads.

    Args:
        services: Database, sources, settings and time.
        dagster: Where they are reported.
    """

    def __init__(self, services: Services, dagster: DagsterApi) -> None:
        self._services = services
        self._dagster = dagster
        self._lock = threading.Lock()
        self._turns: dict[str, tuple[threading.Lock, int]] = {}
        """For each batch that threads want to record: whose turn it is, and the number of threads."""
        self._woken = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def record(self, request: str, reviewer: str, note: str, rows: Sequence[Mapping[str, Any]]) -> str:
        """Record decisions, once per ``request``; return the name of their run. They are applied soon after.

        Raises:
            DecisionError: The reviewer or the note is invalid; nothing is recorded.
            DatabaseError: The database does not answer, or is not set up.
        """
        services, batch_id = self._services, batch_of(request)
        run_id = run_of(batch_id)
        decisions = [Decision(**{**row, "action": DecisionAction(row["action"])}) for row in rows]
        services.ready()
        with self._turn(batch_id):
            known = {(row["vod_id"], row["action"]) for row in self._decisions(batch_id)}
            left = [each for each in decisions if (each.vod_id, each.action) not in known]
            if left:
                record(
                    services,
                    left,
                    reviewer=reviewer,
                    note=note,
                    run_id=run_id,
                    dry_run=False,
                    batch_id=batch_id,
                    check_seconds=CHECK_SECONDS,
                )
            # After it, or the thread would take it for one of which nothing was recorded. If the service is killed in
            # between, the decisions lane applies the batch, and its own run is what Dagster shows.
            self._note(batch_id, reviewer)
        self.wake()
        return run_id

    def undo(
        self, request: str, reviewer: str, decision_ids: Sequence[int], *, override_cms_lock: bool
    ) -> RevertedSelection:
        """Revert what decisions wrote, and withdraw those that still wait; return both.

        Raises:
            DatabaseError: The database does not answer, or is not set up.
        """
        services, batch_id = self._services, batch_of(request)
        services.ready()
        with self._turn(batch_id):
            reverted = revert_and_withdraw(
                services,
                services.change_log(run_of(batch_id)),
                ChangeSelection(decision_ids=tuple(decision_ids)),
                operator=reviewer,
                reason="在审核单上撤销",
                dry_run=False,
                override_cms_lock=override_cms_lock,
            )
            self._note(batch_id, reviewer)
        self.wake()
        return reverted

    # --- the thread

    def wake(self) -> None:
        """Have the thread look for batches; it is started by the first call."""
        with self._lock:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._run, name="review-batches", daemon=True)
                self._thread.start()
        self._woken.set()

    def close(self) -> None:
        """End the thread after the batch that it is at."""
        with self._lock:
            self._stopped, thread = True, self._thread
        self._woken.set()
        if thread is not None:
            thread.join(APPLYING_TIME.total_seconds())

    def _run(self) -> None:
        pause: float | None = None
        tries = 0
        while True:
            self._woken.wait(pause)
            self._woken.clear()
            if self._stopped:
                return
            try:
                pause, tries = self.apply_and_report(), 0
            except Exception as error:  # noqa: BLE001 (a thread that ends would be noticed by nobody)
                # Whatever it is, the thread goes on: the decisions lane of Dagster applies what it cannot.
                tries += 1
                pause = min(_LONGEST_PAUSE, _PAUSE * 2**tries)
                trace = None if isinstance(error, DatabaseError | SQLAlchemyError) else error
                _LOG.warning("recorded decisions wait, again in %.0f s: %s", pause, error, exc_info=trace)

    def apply_and_report(self) -> float | None:
        """Apply what waits, and report it to Dagster.

        Returns:
            After how many seconds to look again; None if nothing is left to do.

        Raises:
            DatabaseError: The database does not answer, or is not set up.
            SQLAlchemyError: The same in the middle of a statement.
        """
        services = self._services
        outbox = services.tables.outbox
        with reading(services.engine) as connection:
            batches = connection.execute(select(outbox).order_by(outbox.c.created_at)).mappings().all()
        if services.settings.dry_run:
            return None  # recorded decisions wait, and are reported when they are applied
        unfinished = [batch for batch in batches if not self._apply(batch)]
        if unfinished:
            return 0.0
        for batch in batches:
            try:
                self._report(batch)
            except DagsterUnavailable as error:
                _LOG.warning("the batch %s was not reported to Dagster: %s", batch["batch_id"], error)
                return _LONGEST_PAUSE
        return None

    def _apply(self, batch: RowMapping) -> bool:
        """Apply what is ready of a batch; return whether nothing ready is left of it."""
        services = self._services
        videos = self._ready(batch["batch_id"])
        if not videos:
            return True
        session = open_session(
            services, run_of(batch["batch_id"]), sorted({shard_of(vod_id) for vod_id in videos}), _LOG
        )
        handled = apply_decisions(
            services,
            session.queue,
            session.change_log,
            session.shards,
            deadline=session.started + APPLYING_TIME,
            lane=True,
            videos=videos,
        )
        # What another run holds at the moment is that run's.
        return not handled or not self._ready(batch["batch_id"])

    def _ready(self, batch_id: str) -> list[int]:
        """Return the videos of a batch whose decisions wait for nothing but to be applied."""
        tables = self._services.tables
        query = select(tables.decision.c.vod_id).where(
            tables.decision.c.batch_id == batch_id, due_decision(tables, self._services.clock.now())
        )
        with reading(self._services.engine) as connection:
            return sorted(set(connection.execute(query).scalars()))

    # --- reports to Dagster

    def _note(self, batch_id: str, reviewer: str) -> None:
        """Note that a batch is to be applied and reported."""
        row = {"batch_id": batch_id, "reviewer": reviewer[:64], "created_at": self._services.clock.now()}
        outbox = self._services.tables.outbox
        run_transaction(self._services.engine, lambda c: insert_missing(c, outbox, [row], key="batch_id"))

    def _report(self, batch: RowMapping) -> None:
        """Report a batch to Dagster if it recorded or reverted anything, and delete it from the outbox."""
        services = self._services
        decisions, reverted = self._decisions(batch["batch_id"]), self._reverted(run_of(batch["batch_id"]))
        too_old = services.clock.now() - batch["created_at"] > KEPT
        if too_old:
            _LOG.warning("the batch %s is reported to Dagster no more: it is a week old", batch["batch_id"])
        elif decisions or reverted:
            self._dagster.report(_report_of(batch, decisions, reverted))
        outbox = services.tables.outbox
        run_statement(services.engine, delete(outbox).where(outbox.c.batch_id == batch["batch_id"]))

    def _decisions(self, batch_id: str) -> list[RowMapping]:
        decision = self._services.tables.decision
        query = select(decision).where(decision.c.batch_id == batch_id).order_by(decision.c.decision_id)
        with reading(self._services.engine) as connection:
            return list(connection.execute(query).mappings())

    def _reverted(self, run_id: str) -> int:
        """Return how many changes a batch reverted."""
        log = self._services.tables.log
        query = select(func.count()).where(
            log.c.run_id == run_id, log.c.reverts_change_id.is_not(None), log.c.state == ChangeState.APPLIED
        )
        with reading(self._services.engine) as connection:
            return int(connection.execute(query).scalar_one())

    @contextmanager
    def _turn(self, batch_id: str) -> Iterator[None]:
        """Let one thread at a time record a batch: the others then find it recorded."""
        with self._lock:
            turn, threads = self._turns.get(batch_id, (threading.Lock(), 0))
            self._turns[batch_id] = turn, threads + 1
        try:
            with turn:
                yield
        finally:
            with self._lock:
                turn, threads = self._turns.pop(batch_id)
                if threads > 1:
                    self._turns[batch_id] = turn, threads - 1


def _report_of(batch: RowMapping, decisions: Sequence[RowMapping], reverted: int) -> BatchReport:
    """Return the report of a batch."""
    states = Counter(row["state"] for row in decisions)
    refused = [row for row in decisions if row["state"] == DecisionState.REFUSED]
    sentences = [f"影片 {row['vod_id']}，{ACTIONS[row['action']]}：{row['state_reason']}" for row in refused]
    if len(sentences) > _MOST_LISTED:
        sentences = [*sentences[:_MOST_LISTED], f"…… 其余 {len(sentences) - _MOST_LISTED} 条见 tasks_and_log"]
    counts = {
        "decisions_recorded": len(decisions) - len(refused),
        "decisions_applied": states[DecisionState.APPLIED],
        "decisions_queued": states[DecisionState.QUEUED],
        "decisions_waiting": states[DecisionState.PENDING],
        "decisions_refused": len(refused),
        "decisions_reverted": states[DecisionState.REVERTED],
        "changes_reverted": reverted,
    }
    done = f"决定了 {len(decisions)} 条" if decisions else "撤销了选择"
    return BatchReport(
        f"{batch['reviewer']} 在审核单上{done}",
        {
            "batch": batch["batch_id"],
            "run": run_of(batch["batch_id"]),
            "reviewer": batch["reviewer"],
            "decided_at": batch["created_at"].isoformat(),
            **{name: count for name, count in counts.items() if count},
            **({"refused_decisions": "\n".join(sentences)} if sentences else {}),
        },
    )
