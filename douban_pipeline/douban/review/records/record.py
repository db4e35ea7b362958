"""Records reviewers' decisions. Later runs apply them; nothing is written to the CMS here."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select, update

from douban_pipeline.core.database import insert_missing, run_transaction
from douban_pipeline.core.errors import ProblemsError, SourceError
from douban_pipeline.douban.decisions.effects import REPLACED
from douban_pipeline.douban.decisions.refusals import conflicts_of, writes_locked_row
from douban_pipeline.douban.review.records.examine import (
    CONFIRM_ANYWAY,
    DecisionDraft,
    Examination,
    examine,
    given_sentence,
    known_sentence,
)
from douban_pipeline.douban.review.records.rules import MOST_NOTE, MOST_REVIEWER, bulk_unlock_refusal
from douban_pipeline.douban.review.records.snapshot import PendingDecisions, read_pending
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.errors import SubjectMismatch, SubjectMissing
from douban_pipeline.douban.store.decisions import NAMING, UNLOCKING, Aspect, Decision, DecisionStatus
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.writes.changes import PIPELINE

AT_ONCE = 50
"""Decisions that are recorded together: few, so that a launch that is killed while it waits for a source keeps the
decisions that it recorded before."""

MOST_LISTED = 50
"""Most decisions whose problems are listed if a launch cannot be recorded at all."""

UNCHECKED = "条目尚未核对，执行时先核对"
OVERRIDDEN = "影片已在 CMS 中锁定（vod_lock），仍将写入（override_cms_lock）"
_LARGEST = 2**63 - 1


class DecisionError(ProblemsError):
    """Nothing of the launch can be recorded: the reviewer or note is invalid, or it is empty. ``problems`` says why."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded launch: its decisions in the given order, and the batch by which all its writes can be reverted."""

    batch_id: str
    items: tuple[Decision, ...]
    reviewer: str = ""

    def of(self, *statuses: DecisionStatus) -> list[Decision]:
        """Return the decisions with any of ``statuses``."""
        return [item for item in self.items if item.status in statuses]


@dataclass(frozen=True, slots=True)
class Signature:
    """Who decided and why, the Dagster run or the service's name for it, and the batch."""

    reviewer: str
    note: str
    run_id: str
    batch_id: str


def record(
    services: Services,
    decisions: Sequence[Decision],
    *,
    reviewer: str,
    note: str,
    run_id: str,
    dry_run: bool,
    batch_id: str = "",
    check_seconds: float | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Recording:
    """Record ``decisions`` for the next runs: valid ones, and refused ones with their reason.

    Recording the same decision twice is harmless, so a launch that was killed may be launched again. A newer decision
    replaces older ones that it contradicts. Subjects that people name are fetched and compared within
    ``check_seconds``; subjects that could not be fetched are recorded unchecked, and checked before they are applied.

    Args:
        services: Database, source and settings.
        decisions: The decisions as entered.
        reviewer: Who decided; logged with every write that follows.
        note: The reason, for the log.
        run_id: The Dagster run that records them, or the service's name for them.
        dry_run: Check everything, record nothing.
        batch_id: Name of the batch; drawn if empty.
        check_seconds: How long subjects are asked for; `Settings.run_seconds` by default.
        progress: Called with the number of decisions that are settled so far.

    Raises:
        DecisionError: The reviewer or note is invalid, or there are no decisions. Nothing is recorded; the error lists
            all problems.
    """
    decisions = [
        replace(each, where=each.where or f"decisions 第 {number} 条") for number, each in enumerate(decisions, start=1)
    ]
    signature = Signature(reviewer.strip(), note.strip(), run_id, batch_id or uuid.uuid4().hex[:16])
    examination = examine(services, decisions)
    forbidden = bulk_unlock_refusal(decisions, signature.reviewer, services.settings.bulk_unlockers)
    for draft in examination.drafts if forbidden else ():
        if draft.open and draft.decision.action in UNLOCKING:
            draft.add_problem(forbidden)
    seconds = services.settings.run_seconds if check_seconds is None else check_seconds
    recorder = _Recorder(services, signature, examination, dry_run, services.clock.now() + timedelta(seconds=seconds))
    problems = list(_launch_problems(signature, decisions))
    if problems:
        raise DecisionError([*problems, *recorder.sentences()])
    recorder.record(progress)
    return Recording(
        signature.batch_id, tuple(draft.decision for draft in recorder.examination.drafts), signature.reviewer
    )


def _launch_problems(signature: Signature, decisions: Sequence[Decision]) -> Iterator[str]:
    reviewer, note = signature.reviewer, signature.note
    if not reviewer:
        yield "reviewer: 请填写审核员的名字"
    elif reviewer.casefold() == PIPELINE:
        yield f"reviewer: {PIPELINE} 代表自动写入，请填写审核员的名字"
    elif len(reviewer) > MOST_REVIEWER:
        yield f"reviewer: 最多 {MOST_REVIEWER} 字，现为 {len(reviewer)} 字"
    if len(note) > MOST_NOTE:
        yield f"note: 最多 {MOST_NOTE} 字，现为 {len(note)} 字"
    if not decisions:
        yield "decisions: 至少填写一条决定"


class _Recorder:
    """Settles the decisions of one launch."""

    def __init__(
        self, services: Services, signature: Signature, examination: Examination, dry_run: bool, until: datetime
    ) -> None:
        self.services = services
        self.signature = signature
        self.examination = examination
        self.dry_run = dry_run
        self.until = until
        self.first: dict[str, DecisionDraft] = {}

    def sentences(self) -> list[str]:
        """Return the problems of the decisions that can be found without a call to a source."""
        wrong = [draft for draft in self.examination.drafts if draft.problems]
        for draft in wrong:
            draft.refuse()
        more = [f"…… 另有 {len(wrong) - MOST_LISTED} 条有误"] if len(wrong) > MOST_LISTED else []
        return [draft.decision.sentence for draft in wrong[:MOST_LISTED]] + more

    def record(self, progress: Callable[[int], None]) -> None:
        """Settle all decisions, chunk by chunk."""
        done = 0
        for drafts in self.examination.in_order():
            for start in range(0, len(drafts), AT_ONCE):
                chunk = drafts[start : start + AT_ONCE]
                for draft in chunk:
                    progress(done)
                    self._check(draft)
                    done += 1
                self._settle(chunk)
        progress(done)

    def _check(self, draft: DecisionDraft) -> None:
        """Make the remaining checks of an open decision; refuse it if there are problems."""
        if draft.open and draft.decision.aspect is not Aspect.LINK:
            draft.add_problem(self.examination.apply_refusal(draft))
        if draft.open and draft.decision.action in NAMING:
            self._check_subject(draft)
        conflicts = "；".join(draft.conflicts)
        if draft.open and conflicts and not draft.decision.accept_conflicts:
            draft.problems.append(f"{conflicts}；{CONFIRM_ANYWAY}")
        if draft.problems:
            draft.refuse()
        elif draft.open:
            accepted = f"已接受：{conflicts}" if conflicts else ""
            row = self.examination.snapshot.rows[draft.vod_id]
            locked = writes_locked_row(draft.decision, row, self.services.settings)
            reasons = [accepted, OVERRIDDEN if locked else "", draft.unchecked]
            draft.decision = replace(draft.decision, reason="；".join(filter(None, reasons)))

    def _check_subject(self, draft: DecisionDraft) -> None:
        douban_id = draft.decision.douban_id
        if self.services.clock.now() >= self.until:
            draft.unchecked = f"{UNCHECKED}：本次核对的时间已用完"
            return
        try:
            conflicts = conflicts_of(self.services, self.examination.snapshot.rows[draft.vod_id], douban_id)
        except SubjectMissing:
            draft.problems.append(f"豆瓣没有条目 {douban_id}，请核对 douban_id")
        except SubjectMismatch as error:
            other = f"核对条目 {douban_id} 时得到另一个条目（{error}）"
            draft.problems.append(f"{other}，它可能已并入别的条目，请改用新的 ID")
        except SourceError as error:
            draft.unchecked = f"{UNCHECKED}：{error}"
        else:
            draft.decision = replace(draft.decision, checked_at=self.services.clock.now())
            # The conflicts of the comparison come first: they are about this video.
            draft.conflicts[:0] = [f"条目 {douban_id} {conflicts}"] if conflicts else []

    def _settle(self, drafts: Sequence[DecisionDraft]) -> None:
        """Record the open decisions of a chunk, and refused ones with their reason; duplicates are recorded once."""
        again = []
        for draft in drafts:
            if draft.open and self.first.setdefault(draft.decision.identity, draft) is not draft:
                again.append(draft)
        once = [
            draft for draft in drafts if draft.refused or (draft.open and self.first[draft.decision.identity] is draft)
        ]
        if self.dry_run:
            for draft in once:
                if draft.open:
                    draft.settle(DecisionStatus.CHECKED, draft.decision.reason)
        elif once:
            store(self.services, self.signature, once)
        for draft in again:
            first = self.first[draft.decision.identity]
            if first.refused:
                draft.refuse(first.decision.reason)
            else:
                draft.settle(DecisionStatus.KNOWN, f"与 {first.decision.where} 相同")


_Settled = list[tuple[DecisionDraft, DecisionStatus, str]]


def store(services: Services, signature: Signature, drafts: Sequence[DecisionDraft]) -> None:
    """Store the ``drafts`` that are open or refused, and settle the open ones: all in one transaction.

    Decisions that others recorded since the examination are considered: an equal decision is known, a contradicted one
    is replaced, and a subject that was given to another video since is refused.
    """
    settled = run_transaction(services.engine, lambda connection: _store(services, connection, signature, drafts))
    for draft, status, reason in settled:
        if status is DecisionStatus.REFUSED:
            draft.refuse(reason)
        else:
            draft.settle(status, reason)


def _store(
    services: Services, connection: Connection, signature: Signature, drafts: Sequence[DecisionDraft]
) -> _Settled:
    now = services.clock.now()
    table, video = services.tables.decision, services.tables.video
    _wait_for_turn(services.tables, connection)
    coming = [draft for draft in drafts if draft.open]
    subjects = {draft.decision.douban_id for draft in coming if draft.linking}
    pending = read_pending(services.tables, connection, {draft.vod_id for draft in coming}, subjects)
    settled = [(draft, *_final_status(draft.decision, pending)) for draft in coming]
    recorded = [draft for draft, status, _ in settled if status is DecisionStatus.RECORDED]
    replaced = sorted({key for draft in recorded for key in pending.replaced_by(draft.decision)})
    if replaced:
        connection.execute(
            update(table)
            .where(table.c.decision_id.in_(replaced), table.c.state == DecisionState.PENDING)
            .values(state=DecisionState.REFUSED, state_reason=REPLACED, pending_key=None, settled_at=now)
        )
    new = [
        {
            **_values(draft, signature),
            "state": DecisionState.PENDING,
            "pending_key": draft.decision.identity,
            "created_at": now,
        }
        for draft in recorded
    ]
    refused = [(draft, draft.decision.reason) for draft in drafts if draft.refused]
    refused += [(draft, reason) for draft, status, reason in settled if status is DecisionStatus.REFUSED]
    new += [
        {
            **_values(draft, signature),
            "state": DecisionState.REFUSED,
            "state_reason": reason[:500],
            "pending_key": None,
            "created_at": now,
            "settled_at": now,
        }
        for draft, reason in refused
    ]
    if new:
        insert_missing(connection, table, new, key="pending_key")
    if recorded:
        # Due at once, so that the sensor launches the run that applies it. The current time is read here because the
        # statements above may wait for locks, and a visit that ended while they waited must not be later than this.
        due = update(video).where(video.c.vod_id.in_([draft.vod_id for draft in recorded]))
        connection.execute(due.values(douban_next_sync_at=services.clock.now()))
    return settled


def _wait_for_turn(tables: OwnTables, connection: Connection) -> None:
    """Let one launch at a time store a chunk: two that read and then write would not see each other's decisions.

    The lock is on the row of the first video. It is held until the chunk is stored.
    """
    video = tables.video
    connection.execute(select(video.c.vod_id).order_by(video.c.vod_id).limit(1).with_for_update())


def _final_status(decision: Decision, pending: PendingDecisions) -> tuple[DecisionStatus, str]:
    """Return the final status of an open decision, given the decisions pending now, and the reason."""
    same = pending.same(decision)
    if same is not None:
        return DecisionStatus.KNOWN, known_sentence(same)
    others = pending.given_to_others(decision) if decision.linking else []
    if others and not decision.accept_conflicts:
        return DecisionStatus.REFUSED, f"{given_sentence(decision.douban_id, others, {})}；{CONFIRM_ANYWAY}"
    return DecisionStatus.RECORDED, decision.reason


def _values(draft: DecisionDraft, signature: Signature) -> dict[str, Any]:
    decision = draft.decision
    return {
        "vod_id": _fitting(decision.vod_id),
        "shard": shard_of(decision.vod_id),
        "action": decision.action,
        "douban_id": _fitting(decision.douban_id),
        "lock": decision.lock,
        "days": decision.days if abs(decision.days) < 2**31 else 0,
        "accept_conflicts": decision.accept_conflicts,
        "imported": decision.imported,
        "override_cms_lock": decision.override_cms_lock,
        "verdict_id": None if draft.verdict_id is None else _fitting(draft.verdict_id),
        "fingerprint": decision.stored_fingerprint,
        "checked_at": decision.checked_at,
        "reviewer": signature.reviewer,
        "note": (decision.note.strip() or signature.note)[:MOST_NOTE],
        "state_reason": "",
        "run_id": signature.run_id,
        "batch_id": signature.batch_id,
        "settled_at": None,
    }


def _fitting(number: int) -> int:
    """Return a number of a refused decision, or 0 if the column cannot hold it."""
    return number if abs(number) <= _LARGEST else 0
