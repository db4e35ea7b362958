"""Writes ids and fields to the CMS: every rule is checked again, then the change log writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, select

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.match.found_candidates import FoundCandidates
from douban_pipeline.douban.chain.match.guards import broken_rules, linked_titles, sentences_of
from douban_pipeline.douban.chain.sync.fields import plan_fields
from douban_pipeline.douban.chain.sync.link_doubts import choice_doubt, missing_doubt, subject_doubt
from douban_pipeline.douban.chain.sync.sync_items import PlannedWrite, SyncItem, SyncResult, sync_result
from douban_pipeline.douban.chain.sync.task_closure import SyncClosing
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.pace import SUBJECT_CACHE_AGE
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.setting_values import WEB_SEARCHES
from douban_pipeline.douban.sources.douban_php import SubjectAnswer, SubjectRecord, parse_subject
from douban_pipeline.douban.sources.errors import SubjectMissing
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.decisions import current_choices
from douban_pipeline.douban.store.states import (
    ChangeState,
    IdSource,
    ReviewStatus,
    TaskType,
    VerdictState,
)
from douban_pipeline.douban.store.subjects import note_titles
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import DECISION, Task
from douban_pipeline.douban.store.videos import LOCKED_VISIT, left_to_the_site, state_rows
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import SYNC, Change
from douban_pipeline.douban.writes.refusals import SENTENCES, Reason, new_link_refusal, subject_refusal
from douban_pipeline.matching.acceptance import linked_elsewhere
from douban_pipeline.matching.codes import SENTENCES as CODE_SENTENCES
from douban_pipeline.matching.codes import Code

_WHY_SYNCED = "按豆瓣条目更新字段"
_WHY_ORDERED = "审核员要求立即同步，按豆瓣条目更新字段"

_CHUNK = 25
"""Writes that share the transactions around them."""

_ANSWER_GONE = "判定所依据的存档应答已不在或无法解析，将重新匹配"


class _AnswerGone:
    """The archived answer that a verdict was reached by is gone, or cannot be read any more."""


_Answer = SubjectAnswer | SubjectMissing | _AnswerGone | tuple[SubjectRecord, int]


def judged_answer(services: Services, verdict: Mapping[Any, Any]) -> tuple[SubjectRecord, int]:
    """Return the archived answer that a verdict was reached by, and its snapshot.

    Raises:
        KeyError: It is gone.
        SourceError: It cannot be read any more.
    """
    candidate = services.tables.candidate
    query = select(candidate.c.snapshot_id).where(
        candidate.c.verdict_id == verdict["verdict_id"], candidate.c.douban_id == verdict["douban_id"]
    )
    with reading(services.engine) as connection:
        snapshot_id = connection.execute(query).scalar_one()
    return parse_subject(services.archive.get(snapshot_id).body, verdict["douban_id"]), snapshot_id


@dataclass(slots=True)
class FieldWriter:
    """Writes the ids and fields of one run's tasks.

    Attributes:
        services: Database, sources and settings.
        queue: The run's view of the tasks.
        change_log: The log to write through.
        attempts: The run's calls to the source.
    """

    services: Services
    queue: TaskQueue
    change_log: ChangeLog
    attempts: Attempts
    closing: SyncClosing = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the closing of tasks."""
        self.closing = SyncClosing(self.services, self.queue, self.attempts)

    def sync(self, tasks: Sequence[Task]) -> Iterator[SyncResult]:
        """Yield the result of each task; those whose source fails go back into the queue and yield none."""
        by_task: dict[int, SyncItem] = {}
        for item in self._prepare(tasks):
            if isinstance(item, SyncResult):
                yield item
            elif item is not None:
                by_task[item.task.task_id] = item
        workers = min(self.services.settings.douban_at_once + 2, self.services.settings.videos_in_work)
        ready = [item.task for item in by_task.values()]
        planned: list[PlannedWrite] = []
        for task, answer in self.attempts.run(ready, self._answer_for(by_task), workers=workers):
            result = self._plan(by_task[task.task_id], answer)
            if isinstance(result, PlannedWrite):
                planned.append(result)
            elif result is not None:
                yield result
            if len(planned) >= _CHUNK:
                yield from self._write(planned)
                planned = []
        yield from self._write(planned)

    def _prepare(self, tasks: Sequence[Task]) -> Iterator[SyncItem | SyncResult | None]:
        """Yield what needs the source's answer, or the result of a task that needs none; None if its lease was lost."""
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
            choices = current_choices(connection, services.tables, vod_ids)
        prepared: set[int] = set()
        for task in tasks:
            row, state = rows.get(task.vod_id), states.get(task.vod_id)
            refusal = subject_refusal(row, state)
            if row is None or state is None:
                assert refusal is not None
                yield self.closing.skip(task, refusal.sentence, gone=row is None)
                continue
            if refusal is not None and refusal.reason is Reason.RECYCLED:
                yield self.closing.skip(task, refusal.sentence, recycled=True)
                continue
            verdict = verdicts.get(task.payload.get("verdict_id", 0))
            choice = choices.get(task.vod_id)
            chosen = choice.douban_id if choice else None
            accepted = choice is not None and choice.accepted and chosen == state["vod_douban_id"]
            item = SyncItem(task, row, state, undone.get(task.vod_id, {}), verdict, braked, chosen, accepted)
            if task.task_type is TaskType.MATCH_DOUBAN_ID:
                reason = self._link_refusal(item)
                if reason is not None:
                    yield self.closing.refuse(item, reason)
                    continue
            elif refusal is not None and refusal.reason is Reason.NOT_CONFIRMED:
                yield self.closing.skip(task, refusal.sentence)
                continue
            elif refusal is not None:
                yield self.closing.refuse(item, refusal.sentence)
                continue
            elif self._left_to_the_site(item):
                yield self.closing.leave(item, SENTENCES[Reason.LOCKED_IN_CMS], LOCKED_VISIT)
                continue
            elif (doubt := choice_doubt(item)) is not None:
                yield self.closing.to_review(item, doubt)
                continue
            elif state["douban_id_locked"] and item.decision_id is None and not self.services.settings.sync_locked_ids:
                yield self.closing.leave_locked(item)
                continue
            if task.vod_id in prepared:
                # A link that waits and a sync, where somebody else wrote the id in between.
                yield self.closing.refuse(item, "本批中已有该影片的另一任务")
                continue
            prepared.add(task.vod_id)
            yield item

    def _left_to_the_site(self, item: SyncItem) -> bool:
        """Return whether the site locked a video's row after it became due; then no request is made."""
        respects = self.services.settings.respect_vod_lock and item.decision_id is None
        return respects and left_to_the_site(item.row, item.state)

    def _link_refusal(self, item: SyncItem) -> str | None:
        """Return why a verdict must not be written, None if it may; uses the guards' own predicate."""
        verdict = item.verdict
        if verdict is None or verdict["state"] != VerdictState.PENDING or verdict["verdict"] != ReviewStatus.CONFIRMED:
            return "没有待写入的确认判定"
        codes = broken_rules(verdict, item.state, profile_of(self.services.settings), item.braked, item.chosen)
        if codes:
            return sentences_of(codes)
        refusal = new_link_refusal(
            verdict["douban_id"],
            current=item.row["vod_douban_id"],
            reverted=item.undone.get("vod_douban_id", ()),
        )
        return refusal.sentence if refusal is not None else None

    def _answer_for(self, by_task: Mapping[int, SyncItem]) -> Any:
        douban = self.services.douban
        age = SUBJECT_CACHE_AGE

        def call(task: Task) -> _Answer:
            item = by_task[task.task_id]
            if item.verdict is not None:
                try:
                    return judged_answer(self.services, item.verdict)
                except (KeyError, SourceError):
                    # It would be no better at the next try, and a wall that was archived is no wall now.
                    return _AnswerGone()
            try:
                douban_id, fresh = item.state["vod_douban_id"], None if item.ordered else age
                return douban.subject(douban_id, max_age=fresh, urgent=DECISION in task.payload)
            except SubjectMissing as error:
                return error

        return call

    def _plan(self, item: SyncItem, answer: _Answer) -> PlannedWrite | SyncResult | None:
        """Return the write planned for a task, or its result if there is none; None if its lease was lost."""
        if isinstance(answer, _AnswerGone):
            return self.closing.refuse(item, _ANSWER_GONE)
        if isinstance(answer, SubjectMissing):
            return self.closing.to_review(item, missing_doubt(item))
        record, snapshot_id = answer if isinstance(answer, tuple) else (answer.record, answer.snapshot_id)
        if item.verdict is None:
            refusal = subject_doubt(self.services, item, record)
            if refusal is not None:
                return self.closing.to_review(item, refusal)
        plan = plan_fields(
            item.row,
            record,
            cms=self.services.cms,
            vocabulary=self.services.vocabulary(item.row["type_id"]),
            policies=self.services.settings.policies,
            undone=item.undone,
            intro_locked=item.state["intro_locked"],
        )
        old, new = plan.old, plan.new
        linked = item.verdict is not None and item.row["vod_douban_id"] != record.douban_id
        if linked:
            old, new = {"vod_douban_id": item.row["vod_douban_id"], **old}, {"vod_douban_id": record.douban_id, **new}
        if self.services.settings.dry_run:
            return self.closing.plan_only(item, record.douban_id, tuple(new), linked)
        verdict = item.verdict
        change = Change(
            vod_id=item.task.vod_id,
            action="link" if linked else SYNC,
            old=old,
            new=new,
            # Fields of one subject are not written to a video that a person linked to another in between.
            given={"vod_douban_id": item.row["vod_douban_id"]},
            state=self._state_after(item, record.douban_id, linked),
            reason=verdict["explanation"] if verdict is not None else _WHY_ORDERED if item.ordered else _WHY_SYNCED,
            score=verdict["score"] if verdict is not None else None,
            task_id=item.task.task_id,
            verdict_id=verdict["verdict_id"] if verdict is not None else None,
            decision_id=item.decision_id,
            override_cms_lock=item.override_cms_lock,
            snapshot_id=snapshot_id,
        )
        return PlannedWrite(item, record.douban_id, record.title, change, linked)

    def _write(self, planned: Sequence[PlannedWrite]) -> Iterator[SyncResult]:
        """Write the planned change through the change log; if nothing differs, only our state is updated.

        A task whose lease was lost is left to the run that has it now.
        """
        with reading(self.services.engine) as connection:
            elsewhere = self._linked_elsewhere(connection, planned)
            ours = self.queue.held(connection, [write.item.task.task_id for write in planned])
        self.attempts.lost += len(planned) - len(ours)
        planned = [write for write in planned if write.item.task.task_id in ours]
        for write in planned:
            if write.item.task.task_id in elsewhere:
                result = self.closing.refuse(write.item, CODE_SENTENCES[Code.LINKED_ELSEWHERE])
                yield from [result] if result is not None else []
        planned = [write for write in planned if write.item.task.task_id not in elsewhere]
        titles = {write.douban_id: write.title for write in planned}
        note_titles(self.services.engine, self.services.tables, titles, self.services.clock.now())
        differing = [write for write in planned if write.change.new]
        outcomes = self.change_log.write([write.change for write in differing])
        applied = [write for write in planned if not write.change.new]
        changes: dict[int, int] = {}
        for write, outcome in zip(differing, outcomes, strict=True):
            changes[write.item.task.task_id] = outcome.change_id
            if outcome.state is ChangeState.APPLIED:
                applied.append(write)
            elif (refused := self.closing.refuse(write.item, outcome.reason, outcome.change_id)) is not None:
                yield refused
        run_transaction(self.services.engine, partial(self.closing.finish, applied=applied))
        for write in applied:
            columns = tuple(write.change.new)
            outcome_word = "written" if columns else "unchanged"
            change_id = changes.get(write.item.task.task_id)
            yield sync_result(write.item, write.douban_id, outcome_word, columns, write.linked, "", change_id)

    def _linked_elsewhere(self, connection: Connection, planned: Sequence[PlannedWrite]) -> set[int]:
        """Return the tasks whose subject was linked to a video with another number since it was judged.

        The verdict knew only the links of that time: two videos that are judged together know nothing of each other.
        """
        links = [write for write in planned if write.item.verdict is not None]
        linked = linked_titles(self.services, connection, {write.douban_id for write in links})
        found: set[int] = set()
        for write in links:
            vod_id, title = write.item.task.vod_id, readable(write.item.row["vod_name"])
            videos = linked.setdefault(write.douban_id, [])
            if linked_elsewhere(title, (other for other_id, other in videos if other_id != vod_id)):
                found.add(write.item.task.task_id)
            else:
                videos.append((vod_id, title))
        return found

    def _state_after(self, item: SyncItem, douban_id: int, linked: bool) -> dict[str, Any]:
        now = self.services.clock.now()
        # What intake noted of a locked id that was changed in the CMS holds until the id is back.
        changed = item.state["douban_id_locked"] and item.row["vod_douban_id"] != item.state["vod_douban_id"]
        state: dict[str, Any] = {
            "douban_last_sync_at": now,
            "douban_next_sync_at": self.services.settings.tiers.next_visit_of(item.row, now),
            "douban_sync_fail_count": 0,
            "douban_last_fail_reason": "",
            "douban_review_reason": item.state["douban_review_reason"] if changed else "",
        }
        if item.verdict is not None:
            state |= {
                "vod_douban_id": douban_id,
                "douban_review_status": ReviewStatus.CONFIRMED,
                "douban_id_confidence": item.verdict["score"],
            }
        if linked:
            # An id that was there already keeps its source: no write of ours put it there.
            state["douban_id_source"] = _source_of(item, douban_id)
        return state


def _source_of(item: SyncItem, douban_id: int) -> IdSource:
    """Return where a new link comes from: from a web search, or from Douban's own index of titles."""
    found = FoundCandidates.from_payload(item.task.payload).found_by(douban_id)
    return IdSource.AI_SEARCH if found in WEB_SEARCHES else IdSource.AUTO
