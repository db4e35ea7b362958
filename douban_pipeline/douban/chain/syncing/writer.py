"""Writing ids and fields to the CMS: the last look at every rule, then the change log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.linking.facts import subject_facts, video_facts
from douban_pipeline.douban.chain.linking.guards import broken_rules, profile_of, words
from douban_pipeline.douban.chain.syncing.fields import plan_fields
from douban_pipeline.douban.chain.syncing.work import Synced, Wanted, Work
from douban_pipeline.douban.chain.tiers import next_visit_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import SubjectAnswer, SubjectRecord, parse_subject
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.decisions import PERSON, chosen_subjects
from douban_pipeline.douban.store.states import (
    ChangeState,
    ReviewStatus,
    TaskStatus,
    TaskType,
    VerdictState,
)
from douban_pipeline.douban.store.tasks import Task, TaskQueue
from douban_pipeline.douban.store.videos import GONE, note_gone, refuse_pending, state_rows
from douban_pipeline.douban.writes.change_log import Change, ChangeLog
from douban_pipeline.matching import compare

AUTO = "auto"
"""Source of an id that a confirmed verdict wrote."""

DRY_RUN_VISIT = timedelta(days=1)
"""When a video is looked at again after a dry run: soon after the site owner goes live."""

REVIEW_VISIT = timedelta(minutes=1)
"""When candidates are looked for, for a person to choose from, after an id that stands turned out doubtful."""

REFUSED_VISIT = timedelta(hours=1)
"""When a video is looked at again after its write was refused."""

_WHY_SYNCED = "按豆瓣条目更新字段"
_WHY_ORDERED = "审核员要求立即同步，按豆瓣条目更新字段"

_CHUNK = 25
"""Writes that share the transactions around them."""


@dataclass(slots=True)
class Writer:
    """Writes for the tasks of one run."""

    services: Services
    queue: TaskQueue
    change_log: ChangeLog
    attempts: Attempts

    def sync(self, tasks: Sequence[Task]) -> Iterator[Synced]:
        """Yield what became of each task; those whose source fails go back into the queue."""
        by_task: dict[int, Work] = {}
        for item in self._prepare(tasks):
            if isinstance(item, Synced):
                yield item
            elif item is not None:
                by_task[item.task.task_id] = item
        workers = self.services.settings.douban_concurrency
        ready = [work.task for work in by_task.values()]
        wanted: list[Wanted] = []
        for task, answer in self.attempts.run(ready, self._answer_for(by_task), workers=workers):
            result = self._plan(by_task[task.task_id], answer)
            if isinstance(result, Wanted):
                wanted.append(result)
            elif result is not None:
                yield result
            if len(wanted) >= _CHUNK:
                yield from self._write(wanted)
                wanted = []
        yield from self._write(wanted)

    def _prepare(self, tasks: Sequence[Task]) -> Iterator[Work | Synced | None]:
        """Yield what is to be asked for, or what became of a task that needs no answer; None if its lease was lost."""
        vod_ids = [task.vod_id for task in tasks]
        services = self.services
        with reading(services.engine) as connection:
            rows = services.cms.rows(connection, vod_ids)
            states = state_rows(connection, services.tables, vod_ids)
            undone = self.change_log.undone_values(connection, vod_ids)
            wanted = [task.payload["verdict_id"] for task in tasks if "verdict_id" in task.payload]
            table = services.tables.verdict
            found = connection.execute(select(table).where(table.c.verdict_id.in_(wanted))).mappings()
            verdicts = {verdict["verdict_id"]: verdict for verdict in found}
            braked = brakes.active(connection, services.tables)
            chosen = chosen_subjects(connection, services.tables, vod_ids)
        taken: set[int] = set()
        for task in tasks:
            row, state = rows.get(task.vod_id), states.get(task.vod_id)
            if row is None or state is None:
                yield self._skip(task, GONE, gone=row is None)
                continue
            verdict = verdicts.get(task.payload.get("verdict_id", 0))
            choice = chosen.get(task.vod_id)
            work = Work(task, row, state, undone.get(task.vod_id, {}), verdict, braked, choice)
            if task.task_type is TaskType.MATCH_DOUBAN_ID:
                reason = self._why_not_link(work)
                if reason:
                    yield self._refuse(work, reason)
                    continue
            elif state["douban_review_status"] != ReviewStatus.CONFIRMED or not state["vod_douban_id"]:
                yield self._skip(task, "影片不再是已确认状态")
                continue
            elif row["vod_douban_id"] != state["vod_douban_id"] and not state["douban_id_locked"]:
                # Changed in the CMS, and not taken in yet: the subject we know of may be another work.
                yield self._refuse(work, f"CMS 中的豆瓣 ID 已变为 {row['vod_douban_id']}")
                continue
            elif choice not in (None, state["vod_douban_id"]) and not state["douban_id_locked"]:
                yield self._to_review(work, f"审核员选定的是 {choice}，现关联的却是 {state['vod_douban_id']}")
                continue
            elif self._came_back(work):
                yield self._to_review(work, f"关联 {state['vod_douban_id']} 曾被人工撤销，却又出现在 CMS 中")
                continue
            if task.vod_id in taken:
                # A link that waits and a sync, where somebody else wrote the id in between.
                yield self._refuse(work, "本批中已有该影片的另一任务")
                continue
            taken.add(task.vod_id)
            yield work

    def _came_back(self, work: Work) -> bool:
        """Return whether the id that stands is one that people took back, and none of them put there again."""
        by_person = work.state["douban_id_locked"] or work.state["douban_id_source"] == PERSON
        return not by_person and work.state["vod_douban_id"] in work.undone.get("vod_douban_id", ())

    def _why_not_link(self, work: Work) -> str:
        """Return why a verdict must not be written, empty if it may. The guards' own predicate decides."""
        verdict = work.verdict
        if verdict is None or verdict["state"] != VerdictState.PENDING or verdict["verdict"] != ReviewStatus.CONFIRMED:
            return "没有待写入的确认判定"
        codes = broken_rules(verdict, work.state, profile_of(self.services.settings), work.braked, work.chosen)
        if codes:
            return words(codes)
        if verdict["douban_id"] in work.undone.get("vod_douban_id", ()):
            return f"关联 {verdict['douban_id']} 曾被人工撤销"
        standing = work.row["vod_douban_id"]
        if standing not in (0, verdict["douban_id"]):
            return f"CMS 中已有豆瓣 ID {standing}"
        return ""

    def _answer_for(self, by_task: Mapping[int, Work]) -> Any:
        douban = self.services.douban
        age = self.services.settings.subject_cache_age

        def call(task: Task) -> SubjectAnswer | SubjectMissing | tuple[SubjectRecord, int]:
            work = by_task[task.task_id]
            if work.verdict is not None:
                return self._judged_answer(work.verdict)
            try:
                return douban.subject(work.state["vod_douban_id"], max_age=None if work.ordered else age)
            except SubjectMissing as error:
                return error

        return call

    def _judged_answer(self, verdict: RowMapping) -> tuple[SubjectRecord, int]:
        """Return the very answer that the verdict was reached by."""
        candidate = self.services.tables.candidate
        query = select(candidate.c.snapshot_id).where(
            candidate.c.verdict_id == verdict["verdict_id"], candidate.c.douban_id == verdict["douban_id"]
        )
        with reading(self.services.engine) as connection:
            snapshot_id = connection.execute(query).scalar_one()
        return parse_subject(self.services.archive.get(snapshot_id).body, verdict["douban_id"]), snapshot_id

    def _plan(
        self, work: Work, answer: SubjectAnswer | SubjectMissing | tuple[SubjectRecord, int]
    ) -> Wanted | Synced | None:
        """Return the write a task wants, or what became of it if it wants none; None where its lease was lost."""
        if isinstance(answer, SubjectMissing):
            return self._to_review(work, f"豆瓣条目 {work.state['vod_douban_id']} 已不存在")
        record, snapshot_id = answer if isinstance(answer, tuple) else (answer.record, answer.snapshot_id)
        if work.verdict is None:
            doubt = self._why_not_this_subject(work, record)
            if doubt:
                return self._to_review(work, doubt)
        plan = plan_fields(
            work.row,
            record,
            cms=self.services.cms,
            vocabulary=self.services.vocabulary(work.row["type_id"]),
            policies=self.services.settings.policies,
            undone=work.undone,
            intro_locked=work.state["intro_locked"],
        )
        old, new = plan.old, plan.new
        linked = work.verdict is not None and work.row["vod_douban_id"] != record.douban_id
        if linked:
            old, new = {"vod_douban_id": work.row["vod_douban_id"], **old}, {"vod_douban_id": record.douban_id, **new}
        if self.services.settings.dry_run:
            return self._planned(work, record.douban_id, tuple(new), linked)
        verdict = work.verdict
        change = Change(
            vod_id=work.task.vod_id,
            action="link" if linked else "sync",
            old=old,
            new=new,
            # What is told of one subject is not written for another that a person chose meanwhile.
            given={"vod_douban_id": work.row["vod_douban_id"]},
            state=self._state_after(work, record.douban_id, linked),
            reason=verdict["explanation"] if verdict is not None else _WHY_ORDERED if work.ordered else _WHY_SYNCED,
            score=verdict["score"] if verdict is not None else None,
            task_id=work.task.task_id,
            verdict_id=verdict["verdict_id"] if verdict is not None else None,
            decision_id=work.decision_id,
            snapshot_id=snapshot_id,
        )
        return Wanted(work, record.douban_id, change, linked)

    def _why_not_this_subject(self, work: Work, record: SubjectRecord) -> str:
        """Return why the id that stands cannot be this video's; a person's choice is not questioned.

        Public converters write one constant id into every record, so an id that came with the row is checked.
        """
        if work.state["douban_id_locked"] or work.state["douban_id_source"] == PERSON:
            return ""
        video = video_facts(work.row, self.services.cms, self.services.categories)
        profile = profile_of(self.services.settings)
        comparison = compare(video, subject_facts(record), profile.weights, profile.thresholds)
        if not comparison.rejects:
            return ""
        why = "；".join(finding.text for finding in comparison.findings if finding.code in comparison.rejects)
        return f"已有豆瓣 ID {record.douban_id}（{record.title}）与影片不符：{why}"

    def _write(self, wanted: Sequence[Wanted]) -> Iterator[Synced]:
        """Write what is wanted through the change log; where nothing differs, only our state moves on.

        A task whose lease was lost is left to the run that has it now.
        """
        with reading(self.services.engine) as connection:
            ours = self.queue.held(connection, [item.work.task.task_id for item in wanted])
        self.attempts.lost += len(wanted) - len(ours)
        wanted = [item for item in wanted if item.work.task.task_id in ours]
        differing = [item for item in wanted if item.change.new]
        outcomes = self.change_log.write([item.change for item in differing])
        applied = [item for item in wanted if not item.change.new]
        changes: dict[int, int] = {}
        for item, outcome in zip(differing, outcomes, strict=True):
            changes[item.work.task.task_id] = outcome.change_id
            if outcome.state is ChangeState.APPLIED:
                applied.append(item)
            elif (refused := self._refuse(item.work, outcome.reason, outcome.change_id)) is not None:
                yield refused

        def finish(connection: Connection) -> None:
            for item in applied:
                if not item.change.new:
                    self._note(connection, item.work, item.change.state)
                if item.work.verdict is not None:
                    self._mark_verdict(connection, item.work.verdict, VerdictState.APPLIED, "")
                # Where the lease was lost just now, the write stands in the log all the same.
                self.queue.finish(connection, item.work.task.task_id, TaskStatus.SUCCESS)

        run_transaction(self.services.engine, finish)
        for item in applied:
            columns = tuple(item.change.new)
            result = "written" if columns else "unchanged"
            change_id = changes.get(item.work.task.task_id)
            yield self._result(item.work, item.douban_id, result, columns, item.linked, "", change_id)

    def _state_after(self, work: Work, douban_id: int, linked: bool) -> dict[str, Any]:
        now = self.services.clock.now()
        state: dict[str, Any] = {
            "douban_last_sync_at": now,
            "douban_next_sync_at": next_visit_of(work.row, now),
            "douban_sync_fail_count": 0,
            "douban_last_fail_reason": "",
            "douban_review_reason": "",
        }
        if work.verdict is not None:
            state |= {
                "vod_douban_id": douban_id,
                "douban_review_status": ReviewStatus.CONFIRMED,
                "douban_id_confidence": work.verdict["score"],
            }
        if linked:
            # An id that stood already stays whose it was: there is no write of ours that put it there.
            state["douban_id_source"] = AUTO
        return state

    def _planned(self, work: Work, douban_id: int, columns: tuple[str, ...], linked: bool) -> Synced | None:
        reason = "演练模式：未写入"
        if work.ordered:
            # A decision waits until the site goes live, it is not refused for want of that.
            until = self.services.clock.now() + DRY_RUN_VISIT
            ours = run_transaction(
                self.services.engine,
                lambda connection: self.queue.requeue(connection, work.task.task_id, until, reason, failed=False),
            )
            self.attempts.lost += not ours
        else:
            ours = self._close(work, TaskStatus.SKIP, VerdictState.DRY_RUN, reason, DRY_RUN_VISIT)
        return self._result(work, douban_id, "planned", columns, linked, reason) if ours else None

    def _refuse(self, work: Work, reason: str, change_id: int | None = None) -> Synced | None:
        # A row that the site locked stays so: no use asking every hour.
        now = self.services.clock.now()
        visit_in = next_visit_of(work.row, now) - now if work.row["vod_lock"] else REFUSED_VISIT
        if not self._close(work, TaskStatus.SKIP, VerdictState.REFUSED, reason, visit_in):
            return None
        douban_id = work.verdict["douban_id"] if work.verdict is not None else work.state["vod_douban_id"]
        return self._result(work, douban_id, "refused", reason=reason, change_id=change_id)

    def _to_review(self, work: Work, reason: str) -> Synced | None:
        """Ask a person about an id that stands, and have candidates looked for meanwhile."""
        state = {"douban_review_status": ReviewStatus.REVIEW, "douban_review_reason": reason[:500]}
        # Who ordered the sync is told that there was none.
        status = TaskStatus.SKIP if work.ordered else TaskStatus.SUCCESS
        if not self._close(work, status, VerdictState.REFUSED, reason, REVIEW_VISIT, state):
            return None
        return self._result(work, work.state["vod_douban_id"], "review", reason=reason)

    def _skip(self, task: Task, reason: str, *, gone: bool = False) -> Synced | None:
        def skip(connection: Connection) -> bool:
            if not self.queue.finish(connection, task.task_id, TaskStatus.SKIP, reason):
                return False
            if gone:
                note_gone(connection, self.services.tables, task.vod_id)
            if task.task_type is TaskType.MATCH_DOUBAN_ID:
                refuse_pending(connection, self.services.tables, task.vod_id, reason)
            return True

        if not run_transaction(self.services.engine, skip):
            self.attempts.lost += 1
            return None
        return Synced(task.vod_id, task.shard, "", 0, "skipped", reason=reason)

    def _close(
        self,
        work: Work,
        status: TaskStatus,
        verdict_state: VerdictState,
        reason: str,
        visit_in: timedelta,
        state: Mapping[str, Any] | None = None,
    ) -> bool:
        """Close a task that wrote nothing, and look again after ``visit_in``; return whether it was still ours.

        Nothing changes where the lease was lost.
        """
        now = self.services.clock.now()

        def close(connection: Connection) -> bool:
            if not self.queue.finish(connection, work.task.task_id, status, reason):
                return False
            if work.verdict is not None and work.verdict["state"] == VerdictState.PENDING:
                self._mark_verdict(connection, work.verdict, verdict_state, reason)
            if work.state["douban_next_sync_at"] is not None:
                values = {"douban_last_sync_at": now, "douban_next_sync_at": now + visit_in, **(state or {})}
                self._note(connection, work, values)
            return True

        ours = run_transaction(self.services.engine, close)
        self.attempts.lost += not ours
        return ours

    def _note(self, connection: Connection, work: Work, values: Mapping[str, Any]) -> None:
        """Change our state, unless the link was decided on since it was looked at."""
        video = self.services.tables.video
        as_seen = [video.c[name] == work.state[name] for name in ("vod_douban_id", "douban_review_status")]
        connection.execute(update(video).where(video.c.vod_id == work.task.vod_id, *as_seen).values(**values))

    def _mark_verdict(self, connection: Any, verdict: RowMapping, state: VerdictState, reason: str) -> None:
        table = self.services.tables.verdict
        connection.execute(
            update(table)
            .where(table.c.verdict_id == verdict["verdict_id"])
            .values(state=state, state_reason=reason[:500])
        )

    def _result(
        self,
        work: Work,
        douban_id: int,
        result: str,
        columns: tuple[str, ...] = (),
        linked: bool = False,
        reason: str = "",
        change_id: int | None = None,
    ) -> Synced:
        title = readable(work.row["vod_name"])
        return Synced(work.task.vod_id, work.task.shard, title, douban_id, result, columns, linked, reason, change_id)
