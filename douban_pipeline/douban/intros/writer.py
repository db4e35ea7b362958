"""Writes intros for the tasks of one run: checks every rule once more, then writes through the change log.

Also reverts intros whose video got another subject since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.intros.attempts import IntroAttempts
from douban_pipeline.douban.intros.author import (
    Author,
    IntroDraft,
    intro_change,
    ledger_of,
    sheet_refusal,
)
from douban_pipeline.douban.intros.factguard import Violation, marks
from douban_pipeline.douban.intros.ledger import IntroLedger, Occasion, violation_texts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.store.states import ChangeState, TaskStatus
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import DECISION, INTERNAL_ERROR, NOTE, OVERRIDE_CMS_LOCK, REVIEWER, Task
from douban_pipeline.douban.store.videos import note_gone, state_rows
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import BY_CMS, WriteOutcome
from douban_pipeline.douban.writes.intro_changes import INTRO, strayed_intros
from douban_pipeline.douban.writes.refusals import Reason, Refusal, cms_lock_refusal, subject_refusal
from douban_pipeline.douban.writes.revert import WITH_ITS_LINK, ChangeSelection, revert

ARCHIVE_AGE = timedelta(days=30)
"""How long a task may use an answer that was paid for before its run died. A new task makes a new call."""

_MOST_NOTE = 200

"""Operator of reverts that follow from an id that was changed in the CMS itself."""

_CHUNK = 5
"""Number of writes that share the transactions around them; few, since each text takes seconds."""


@dataclass(frozen=True, slots=True)
class IntroResult:
    """The outcome for the intro of one video, for the run's report.

    Attributes:
        result: ``written``, ``refused`` (by the guard, twice) or ``skipped``.
        text: The text that was written or refused.
        violations: Its violations of the guard.
        reason: Why nothing was written.
        reviewer: Who requested it, "" if nobody did.
    """

    vod_id: int
    shard: int
    title: str
    result: str
    text: str = ""
    violations: tuple[Violation, ...] = ()
    reason: str = ""
    change_id: int | None = None
    reviewer: str = ""


@dataclass(frozen=True, slots=True)
class IntroTask:
    """A task with all data that it needs."""

    task: Task
    row: RowMapping
    douban_id: int
    reverted_values: Mapping[str, Sequence[Any]]

    def signature(self) -> dict[str, Any]:
        """Return the change's fields on its author: the pipeline, or a person, who overrides locks and reverts."""
        given: dict[str, Any] = {"task_id": self.task.task_id}
        if is_ordered(self.task):
            given |= {
                "operator": self.task.payload[REVIEWER],
                # Leaves room for the text about the model.
                "reason": self.task.payload.get(NOTE, "")[:_MOST_NOTE] or "重写简介",
                "automatic": False,
                "override_cms_lock": overrides_cms_lock(self.task),
                "decision_id": self.task.payload[DECISION],
            }
        return given


@dataclass(frozen=True, slots=True)
class _Nothing:
    """No intro can be written; the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Unasked:
    """Douban's answer is missing, so the model was not called."""

    error: SourceError


_Answer = IntroDraft | _Nothing | _Unasked


@dataclass(slots=True)
class IntroWriter:
    """Writes intros for the tasks of one run."""

    services: Services
    queue: TaskQueue
    change_log: ChangeLog
    attempts: IntroAttempts
    ledger: IntroLedger = field(init=False)
    author: Author = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the ledger and the author."""
        self.ledger = ledger_of(self.services, self.queue)
        self.author = Author(self.services, self.ledger)

    def write(self, tasks: Sequence[Task]) -> Iterator[IntroResult]:
        """Yield the outcome of each task; tasks whose source fails are requeued and yield none."""
        by_task: dict[int, IntroTask] = {}
        for item in self._prepare(tasks):
            if isinstance(item, IntroResult):
                yield item
            else:
                by_task[item.task.task_id] = item
        workers = self.services.settings.llm_concurrency
        ready = [work.task for work in by_task.values()]
        wanted: list[tuple[IntroTask, IntroDraft]] = []
        for task, answer in self.attempts.run(ready, self._answer_for(by_task), workers=workers):
            work = by_task[task.task_id]
            match answer:
                case _Unasked(error):
                    # A failure of Douban: the facts of other videos may still be in the archive.
                    self.attempts.requeue(task, error)
                case _Nothing(reason):
                    yield from self._skip(task, work.row, reason, defer=True)
                case IntroDraft(violations=()):
                    wanted.append((work, answer))
                case IntroDraft():
                    yield from self._refuse(work, answer)
            if len(wanted) >= _CHUNK:
                yield from self._write(wanted)
                wanted = []
        yield from self._write(wanted)

    def _prepare(self, tasks: Sequence[Task]) -> Iterator[IntroTask | IntroResult]:
        vod_ids = [task.vod_id for task in tasks]
        services = self.services
        with reading(services.engine) as connection:
            rows = services.cms.rows(connection, vod_ids)
            states = state_rows(connection, services.tables, vod_ids)
            undone = self.change_log.undone_values(connection, vod_ids)
            done = self._done(connection, tasks)
        for task in tasks:
            row, state = rows.get(task.vod_id), states.get(task.vod_id)
            if task.task_id in done:
                yield from self._close_written(task, row)
                continue
            refusal = subject_refusal(row, state)
            if refusal is not None:
                yield from self._skip(task, row, refusal.sentence)
                continue
            assert row is not None
            assert state is not None
            locked = cms_lock_refusal(row, respect_vod_lock=services.settings.respect_vod_lock)
            if state["intro_locked"] and not is_ordered(task):
                yield from self._skip(task, row, Refusal.of(Reason.INTRO_LOCKED).sentence)
            elif locked is not None and not overrides_cms_lock(task):
                yield from self._skip(task, row, locked.sentence, defer=True)
            else:
                yield IntroTask(task, row, state["vod_douban_id"], undone.get(task.vod_id, {}))

    def _done(self, connection: Connection, tasks: Sequence[Task]) -> set[int]:
        """Return the tasks whose intro was written by a run that died before it closed them.

        This includes intros that were reverted since: they must not be written again.
        """
        log = self.services.tables.log
        # The log has an index on videos, but none on tasks.
        query = select(log.c.task_id).where(
            log.c.vod_id.in_([task.vod_id for task in tasks]),
            log.c.task_id.in_([task.task_id for task in tasks]),
            log.c.action == INTRO,
            log.c.state.in_((ChangeState.APPLIED, ChangeState.REVERTED)),
        )
        return set(connection.execute(query).scalars()) if tasks else set()

    def _close_written(self, task: Task, row: RowMapping | None) -> Iterator[IntroResult]:
        """Close a task whose intro was written by a run that died right after."""
        if self._close(task, TaskStatus.SUCCESS, ""):
            yield _result(task, row, "skipped", "", reason="已由中断的运行写入")

    def _answer_for(self, by_task: Mapping[int, IntroTask]) -> Callable[[Task], _Answer]:
        def call(task: Task) -> _Answer:
            work = by_task[task.task_id]
            try:
                sheet = self.author.facts(work.row, work.douban_id)
            except SubjectMissing:
                return _Nothing(f"豆瓣条目 {work.douban_id} 已不存在")
            except SourceError as error:
                return _Unasked(error)
            refusal = sheet_refusal(sheet, self.services.settings)
            if refusal:
                return _Nothing(refusal)
            occasion = Occasion(task.vod_id, work.douban_id, self.change_log.run_id, task.task_id)
            # An answer that our own code failed on is not read again.
            ours = task.last_error.startswith(INTERNAL_ERROR)
            return self.author.write(occasion, sheet, max_age=None if ours else ARCHIVE_AGE)

        return call

    def _write(self, wanted: Sequence[tuple[IntroTask, IntroDraft]]) -> Iterator[IntroResult]:
        """Write the drafts that passed the guard, if the video is still as it was when the model was called.

        A task whose lease was lost is left to the run that has it now, which finds the answer in the archive.
        """
        if not wanted:
            return
        vod_ids = [work.task.vod_id for work, _ in wanted]
        with reading(self.services.engine) as connection:
            rows = self.services.cms.rows(connection, vod_ids)
            states = state_rows(connection, self.services.tables, vod_ids)
            ours = self.queue.held(connection, [work.task.task_id for work, _ in wanted])
        self.attempts.lost += len(wanted) - len(ours)
        wanted = [(work, draft) for work, draft in wanted if work.task.task_id in ours]
        ready: list[tuple[IntroTask, IntroDraft]] = []
        changes = []
        now = self.services.clock.now()
        for work, draft in wanted:
            vod_id = work.task.vod_id
            change = intro_change(work.row, draft, self.services.cms, now, **work.signature())
            refusal = subject_refusal(rows.get(vod_id), states.get(vod_id), douban_id=work.douban_id)
            reason = refusal.sentence if refusal is not None else ""
            reverted = work.reverted_values.get("vod_content", ())
            if not reason and change.automatic and change.new["vod_content"] in reverted:
                reason = "同样的简介曾被人工撤销"
            if reason:
                self.ledger.refuse(draft.intro_id, reason, task_id=work.task.task_id)
                yield from self._skip(work.task, work.row, reason, defer=True, text=draft.text)
                continue
            ready.append((work, draft))
            changes.append(change)
        self.ledger.keep_marks({draft.intro_id: marks(draft.text, draft.sheet) for _, draft in ready})
        outcomes = self.change_log.write(changes)
        yield from self._settle(ready, outcomes)

    def _settle(
        self, written: Sequence[tuple[IntroTask, IntroDraft]], outcomes: Sequence[WriteOutcome]
    ) -> Iterator[IntroResult]:
        """Close the tasks whose intro was written; skip the others with the reason of the refused write."""
        applied = [outcome.state is ChangeState.APPLIED for outcome in outcomes]

        def finish(connection: Connection) -> None:
            for (work, _), was_applied in zip(written, applied, strict=True):
                if was_applied:
                    self.queue.finish(connection, work.task.task_id, TaskStatus.SUCCESS)

        run_transaction(self.services.engine, finish)
        for (work, draft), was_applied, outcome in zip(written, applied, outcomes, strict=True):
            if not was_applied:
                yield from self._skip(work.task, work.row, outcome.reason, defer=True, text=draft.text)
                continue
            yield _result(work.task, work.row, "written", draft.text, change_id=outcome.change_id)

    def _refuse(self, work: IntroTask, draft: IntroDraft) -> Iterator[IntroResult]:
        """Count a text that the guard refused twice; the video is due again after the interval."""
        reason = violation_texts(draft.violations)
        failures = self.services.tables.video.c.intro_ai_fail_count + 1
        if self._close(work.task, TaskStatus.FAIL, reason, defer=True, intro_ai_fail_count=failures):
            yield _result(work.task, work.row, "refused", draft.text, violations=draft.violations, reason=reason)

    def _skip(
        self, task: Task, row: RowMapping | None, reason: str, *, defer: bool = False, text: str = ""
    ) -> Iterator[IntroResult]:
        """Close a task without an intro; with ``defer`` the video is due again after the interval."""
        if self._close(task, TaskStatus.SKIP, reason, defer=defer, gone=row is None):
            yield _result(task, row, "skipped", text, reason=reason)

    def _close(
        self, task: Task, status: TaskStatus, reason: str, *, defer: bool = False, gone: bool = False, **state: Any
    ) -> bool:
        """Close a task and store ``state`` of its video, if the task is still ours; return whether it was."""
        video = self.services.tables.video
        if defer:
            state |= {"intro_ai_last_fail_at": self.services.clock.now(), "intro_ai_last_fail_reason": reason[:500]}

        def close(connection: Connection) -> bool:
            if not self.queue.finish(connection, task.task_id, status, reason):
                return False
            if gone:
                note_gone(connection, self.services.tables, task.vod_id)
            if state:
                connection.execute(update(video).where(video.c.vod_id == task.vod_id).values(**state))
            return True

        ours = run_transaction(self.services.engine, close)
        self.attempts.lost += not ours
        return ours


def is_ordered(task: Task) -> bool:
    """Return whether a person's decision queued a task."""
    return DECISION in task.payload


def overrides_cms_lock(task: Task) -> bool:
    """Return whether the person who requested a task overrides a lock of the row by the site."""
    return bool(task.payload.get(OVERRIDE_CMS_LOCK))


def _result(task: Task, row: RowMapping | None, result: str, text: str, **more: Any) -> IntroResult:
    title = readable(row["vod_name"]) if row is not None else ""
    return IntroResult(task.vod_id, task.shard, title, result, text, reviewer=task.payload.get(REVIEWER, ""), **more)


def revert_strayed_intros(services: Services, change_log: ChangeLog, shards: Collection[int]) -> int:
    """Revert the intros of ``shards`` whose video has another subject than the one they describe; return how many.

    Reverting a link through the change log reverts its intro too (`writes.revert`). The remaining cases are an id that
    somebody changed in the CMS itself, and an intro that was written while another run changed the link. Rows that the
    site locked are not changed, nor are texts that somebody rewrote.
    """
    with reading(services.engine) as connection:
        strayed = strayed_intros(connection, services.tables, shards)
        rows = services.cms.rows(connection, sorted({intro.vod_id for intro in strayed}))
    respected = services.settings.respect_vod_lock
    unlocked = {vod_id for vod_id, row in rows.items() if not (respected and row["vod_lock"])}
    wanted = tuple(intro.change_id for intro in strayed if intro.vod_id in unlocked)
    if not wanted:
        return 0
    results = revert(change_log, ChangeSelection(wanted), operator=BY_CMS, reason=WITH_ITS_LINK, dry_run=False)
    return sum("vod_content" in result.restored for result in results)
