"""Judging videos from archived answers, and storing every verdict with everything it was reached by.

Nothing here writes to the CMS: a CONFIRMED verdict waits for the writing step, the others go into our own state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.chain.attempts import Attempts
from douban_pipeline.douban.chain.match.descriptions import DescribedVideo, described_videos, earlier_evidence
from douban_pipeline.douban.chain.match.found_candidates import FoundCandidates
from douban_pipeline.douban.chain.match.guards import VerdictBreach, breaches, linked_titles
from douban_pipeline.douban.chain.match.judgement import Circumstances, judge_found
from douban_pipeline.douban.chain.match.rechecks import (
    CurrentLink,
    last_known_title,
    respect_choice,
    respect_current_id,
    search_refusal,
)
from douban_pipeline.douban.chain.match.search_progress import SearchProgress
from douban_pipeline.douban.chain.match.task_closure import close_match, close_recheck, skip_task
from douban_pipeline.douban.chain.match.verdict_rows import VerdictSummary, candidate_rows, summary_of, verdict_row
from douban_pipeline.douban.evidence.known_names import names_of_subjects
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.douban.sources.search_providers import named_in
from douban_pipeline.douban.store import brakes
from douban_pipeline.douban.store.decisions import CurrentChoice, current_choices
from douban_pipeline.douban.store.states import (
    BY_PEOPLE,
    IdSource,
    ReviewStatus,
    TaskStage,
    TaskStatus,
    TaskType,
    VerdictState,
)
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import INTERNAL_ERROR, RECHECK_REASON, Task
from douban_pipeline.douban.store.videos import state_rows
from douban_pipeline.douban.wording import RECHECK_REASONS, SOURCE_NAMES, word_for
from douban_pipeline.matching import Status, Verdict, Video

_LINK = ("vod_douban_id", "douban_review_status", "douban_id_source", "douban_id_locked")
_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a value that nobody thought of raises; an unreachable database stops the run."""
_LOG = logging.getLogger(__name__)
_LINK_CHANGED = "判定期间影片的关联已有变化"


class VerdictWriter:
    """Judges the videos of one run's tasks and stores the verdicts.

    Args:
        services: Database, archive and settings.
        queue: The run's view of the tasks.
        run_id: The Dagster run, stored with every verdict.
        warn: Called with what goes wrong and does not keep it from judging.
    """

    def __init__(
        self, services: Services, queue: TaskQueue, run_id: str, *, warn: Callable[[str], None] = _LOG.warning
    ) -> None:
        self.services = services
        self.queue = queue
        self.run_id = run_id
        self.warn = warn
        self.profile = profile_of(services.settings)
        self.attempts = Attempts(services, queue, services.clock.now())
        # Built once: putting a statement together costs more than sending it.
        verdict = services.tables.verdict
        self._supersede = (
            update(verdict)
            .where(verdict.c.vod_id == bindparam("of_vod_id"), verdict.c.state == VerdictState.PENDING)
            .values(state=VerdictState.SUPERSEDED, state_reason="有新的判定")
        )
        self._keep = insert(verdict)

    def judge(self, tasks: Sequence[Task]) -> list[VerdictSummary]:
        """Judge ``tasks`` from the archive and store the verdicts; one transaction a video."""
        vod_ids = [task.vod_id for task in tasks]
        services = self.services
        finds = {task.task_id: FoundCandidates.from_payload(task.payload) for task in tasks}
        with reading(services.engine) as connection:
            rows = services.cms.rows(connection, vod_ids)
            states = state_rows(connection, services.tables, vod_ids)
            undone = services.change_log(self.run_id).undone_values(connection, vod_ids)
            choices = current_choices(connection, services.tables, vod_ids)
            braked = brakes.active(connection, services.tables)
            opened = brakes.opened(connection, services.tables)
            fetched = [each for found in finds.values() for each in found.subjects]
            linked = linked_titles(services, connection, {each.douban_id for each in fetched})
            bodies = services.archive.bodies(connection, {each.snapshot_id for each in fetched})
            linked_before = [task.vod_id for task in tasks if task.task_type is TaskType.RECHECK]
            earlier = earlier_evidence(services, connection, linked_before)
        described = described_videos(services, rows, warn=self.warn, earlier=earlier)
        videos = {vod_id: each.video for vod_id, each in described.items()}
        candidates = {task.vod_id: {each.douban_id for each in finds[task.task_id].subjects} for task in tasks}
        with reading(services.engine) as connection:
            names = names_of_subjects(connection, services.tables, videos, candidates)
        judged: list[VerdictSummary] = []
        for task in tasks:
            row, state = rows.get(task.vod_id), states.get(task.vod_id)
            refusal = search_refusal(task.task_type, row, state)
            if refusal is not None:
                skip_task(services, self.queue, task, row, refusal)
                continue
            assert row is not None
            assert state is not None
            circumstances = Circumstances(
                reverted=frozenset(undone.get(task.vod_id, {}).get("vod_douban_id", ())),
                linked={
                    douban_id: [title for vod_id, title in others if vod_id != task.vod_id]
                    for douban_id, others in linked.items()
                },
                chosen=choices[task.vod_id].douban_id if task.vod_id in choices else None,
                # A link that is there is no new one, which a brake would leave to people.
                braked=frozenset() if task.task_type is TaskType.RECHECK else braked,
                opened=opened,
                names=names.get(task.vod_id, ()),
            )
            current = None
            if task.task_type is TaskType.RECHECK:
                current = self._current_link(task, state, choices.get(task.vod_id), finds[task.task_id])
            video = described[task.vod_id]
            try:
                item = self._judge_one(task, row, state, video, finds[task.task_id], bodies, circumstances, current)
            except _ODD as error:
                # One odd row must not stop the others: the log has the traceback, and the video shows the error.
                _LOG.exception("video %s", task.vod_id)
                self.attempts.fail(task, f"{INTERNAL_ERROR} {type(error).__name__}: {error}")
                continue
            judged += [item] if item is not None else []
        return judged

    def _judge_one(
        self,
        task: Task,
        row: RowMapping,
        state: RowMapping,
        described: DescribedVideo,
        found: FoundCandidates,
        bodies: Mapping[int, bytes],
        circumstances: Circumstances,
        current: CurrentLink | None,
    ) -> VerdictSummary | None:
        """Judge a video and store its verdict; None where its link was decided on since it was read.

        With ``current`` the link that is there is judged again; then nothing follows but a person's look.
        """
        video, added = described.video, described.added
        try:
            records = {
                each.douban_id: parse_subject(bodies[each.snapshot_id], each.douban_id) for each in found.subjects
            }
        except KeyError as error:
            return self._search_again(task, video, f"存档的应答 {error} 已不在，重新搜索")
        except SourceError as error:
            # As the parser of an earlier release read it: one such answer must not stop the others.
            return self._search_again(task, video, f"存档的应答无法解析（{error}），重新搜索")
        verdict = judge_found(video, found, records, self.profile, circumstances, added)
        if current is not None:
            status, explanation = current.recheck(verdict)
            if not (found.complete and found.source_healthy) and status != ReviewStatus.CONFIRMED:
                return self._search_again(task, video, "候选不完整，稍后再复查")
            if added is not None and added.expired and status != ReviewStatus.CONFIRMED:
                return self._search_again(task, video, "当时参考的 TMDB 资料已到期，现在又读不到 TMDB，稍后再复查")
        else:
            status, explanation = respect_current_id(verdict, row["vod_douban_id"])
            status, explanation = respect_choice(status, explanation, circumstances.chosen, row["vod_douban_id"])
        if status == Status.UNDECIDED:
            return self._search_again(task, video, explanation)
        explanation = described.noted(explanation)
        doubted = self._doubted(video, found) if verdict.status is Status.NOT_FOUND else ""
        if doubted:
            return self._search_again(task, video, f"{word_for(SOURCE_NAMES, doubted)}的空结果暂不可信，稍后重新搜索")

        def store(connection: Connection) -> bool:
            if self._link_changed(connection, task, state):
                return False
            now, run_id = self.services.clock.now(), self.run_id
            names = circumstances.names
            stored = verdict_row(
                task, row, found, described, verdict, status, explanation, names=names, run_id=run_id, now=now
            )
            verdict_id = self._store(connection, task, found, described, verdict, stored)
            if current is not None:
                close_recheck(self.services, self.queue, connection, task, row, state, status, explanation)
            elif status == ReviewStatus.CONFIRMED:
                self.queue.advance(connection, task, TaskStage.SYNC, {**task.payload, "verdict_id": verdict_id})
            else:
                close_match(self.services, self.queue, connection, task, row, status, explanation)
            return True

        if not run_transaction(self.services.engine, store):
            return None
        return summary_of(task, described, verdict, status, explanation)

    def _doubted(self, video: Video, found: FoundCandidates) -> str:
        """Return a source that named nothing like ``video`` while it was in doubt to find anything; "" for none.

        What named something like it is believed, as in the search itself, which would be given the same answer again.
        """
        snapshot, gate = self.services.tables.snapshot, self.services.gate
        columns = (snapshot.c.snapshot_id, snapshot.c.source, snapshot.c.seen_at)
        query = select(*columns).where(snapshot.c.snapshot_id.in_(found.snapshots))
        with reading(self.services.engine) as connection:
            answers = connection.execute(query).all()
            doubted = {row.snapshot_id: row.source for row in answers if gate.doubts(row.source, row.seen_at)}
            bodies = self.services.archive.bodies(connection, doubted)
        resembles = SearchProgress(video, self.profile.thresholds).resembles
        for snapshot_id, source in doubted.items():
            if not any(map(resembles, named_in(source, bodies.get(snapshot_id, b"")))):
                return source
        return ""

    def _link_changed(self, connection: Connection, task: Task, seen: RowMapping) -> bool:
        """Return whether the link is another than the one ``seen``, or the task no longer ours; then close the task.

        Our state row is locked, so that it stays as it is until the verdict is stored.
        """
        now = state_rows(connection, self.services.tables, [task.vod_id], lock=True).get(task.vod_id)
        held = self.queue.holds(connection, task.task_id)
        if held and now is not None and all(now[name] == seen[name] for name in _LINK):
            return False
        if held:
            self.queue.finish(connection, task.task_id, TaskStatus.SKIP, _LINK_CHANGED)
        return True

    def _search_again(self, task: Task, video: Video, why: str) -> VerdictSummary | None:
        """Return a task without a verdict to the search; None where its lease was lost."""
        again = self.services.clock.now() + self.services.settings.back_off.wait(1, task.vod_id)
        ours = run_transaction(
            self.services.engine,
            lambda connection: self.queue.requeue(
                connection, task.task_id, again, why, failed=False, stage=TaskStage.SEARCH
            ),
        )
        if not ours:
            return None
        return VerdictSummary(task.vod_id, task.shard, video.title, Status.UNDECIDED, 0, None, None, why)

    def _store(
        self,
        connection: Connection,
        task: Task,
        found: FoundCandidates,
        described: DescribedVideo,
        verdict: Verdict,
        row: dict[str, Any],
    ) -> int:
        """Store a verdict's row with its candidates, in place of one that waits to be written; return its id."""
        connection.execute(self._supersede, {"of_vod_id": task.vod_id})
        key = connection.execute(self._keep, row).inserted_primary_key
        assert key is not None
        verdict_id = int(key[0])
        rows = candidate_rows(verdict_id, task.vod_id, found, described, verdict, row["created_at"])
        if rows:
            connection.execute(insert(self.services.tables.candidate), rows)
        return verdict_id

    def _current_link(
        self, task: Task, state: RowMapping, choice: CurrentChoice | None, found: FoundCandidates
    ) -> CurrentLink:
        reason = task.payload.get(RECHECK_REASON)
        douban_id = state["vod_douban_id"]
        here = choice is not None and choice.douban_id == douban_id
        gone = douban_id not in {each.douban_id for each in found.subjects}
        return CurrentLink(
            douban_id,
            locked=state["douban_id_locked"],
            chosen=here or state["douban_id_source"] in BY_PEOPLE,
            accepted=choice is not None and here and choice.accepted,
            title=last_known_title(self.services, douban_id) if gone else "",
            unproven=reason is not None and state["douban_id_source"] == IdSource.CMS,
            why=word_for(RECHECK_REASONS, reason) if reason else "",
        )

    def quarantine(self) -> list[VerdictBreach]:
        """Refuse pending verdicts of earlier runs that break a rule by now; return the breaches.

        A run whose guard failed leaves its verdict behind. The failure was shown once; here the verdict is refused
        and its task closed, so that one bad row does not stop all later runs.
        """
        with reading(self.services.engine) as connection:
            found = [breach for breach in breaches(self.services, connection) if breach.run_id != self.run_id]
        for breach in found:
            run_transaction(self.services.engine, partial(self._withdraw, breach=breach))
        return found

    def _withdraw(self, connection: Connection, breach: VerdictBreach) -> None:
        verdict = self.services.tables.verdict
        connection.execute(
            update(verdict)
            .where(verdict.c.verdict_id == breach.verdict_id)
            .values(state=VerdictState.REFUSED, state_reason=breach.what[:500])
        )
        self.queue.cancel(connection, breach.task_id, breach.what)
