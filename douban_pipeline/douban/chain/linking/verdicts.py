"""Judging videos from archived answers, and storing every verdict with everything it was reached by.

Nothing here writes to the CMS: a CONFIRMED verdict waits for the writing step, the others go into our own state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.douban.chain.linking.candidates import Circumstances, FoundCandidates, judge_found
from douban_pipeline.douban.chain.linking.described import DescribedVideo, described_videos, earlier_evidence
from douban_pipeline.douban.chain.linking.guards import VerdictBreach, breaches
from douban_pipeline.douban.chain.linking.rechecks import (
    CurrentLink,
    last_known_title,
    reasons_of,
    respect_choice,
    respect_current_id,
    search_refusal,
)
from douban_pipeline.douban.evidence.adding import respect_site, stored_facts
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import parse_subject
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
from douban_pipeline.douban.store.tasks import RECHECK_REASON, Task, TaskQueue
from douban_pipeline.douban.store.videos import LOCKED_VISIT, fingerprint, note_gone, state_rows
from douban_pipeline.douban.wording import RECHECK_REASONS, SOURCE_NAMES, word_for
from douban_pipeline.douban.writes.refusals import Reason, Refusal
from douban_pipeline.matching import RULE_VERSION, Status, Verdict, Video

_KEPT_CANDIDATES = 10
_MOST_LINKED = 500
_LINK = ("vod_douban_id", "douban_review_status", "douban_id_source", "douban_id_locked")
_LOG = logging.getLogger(__name__)
_LINK_CHANGED = "判定期间影片的关联已有变化"


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """A stored verdict, as the run's report shows it; subject, score and points are the best candidate's."""

    vod_id: int
    shard: int
    title: str
    status: str
    douban_id: int
    score: float | None
    lead: float | None
    explanation: str
    points: str = ""
    candidates: int = 0
    recheck: bool = False
    with_evidence: bool = False


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
            fetched = [each for found in finds.values() for each in found.subjects]
            linked = self._linked(connection, {each.douban_id for each in fetched})
            bodies = services.archive.bodies(connection, {each.snapshot_id for each in fetched})
            linked_before = [task.vod_id for task in tasks if task.task_type is TaskType.RECHECK]
            earlier = earlier_evidence(services, connection, linked_before)
        described = described_videos(services, rows, warn=self.warn, earlier=earlier)
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
            )
            current = None
            if task.task_type is TaskType.RECHECK:
                current = self._current_link(task, state, choices.get(task.vod_id), finds[task.task_id])
            video = described[task.vod_id]
            item = self._judge_one(task, row, state, video, finds[task.task_id], bodies, circumstances, current)
            judged += [item] if item is not None else []
        return judged

    def _linked(self, connection: Connection, douban_ids: Collection[int]) -> dict[int, list[tuple[int, str]]]:
        """Return the ids and titles of the videos that are linked to these subjects, by subject."""
        states = self.services.tables.video
        linked_to = states.c.vod_douban_id.in_(douban_ids)
        # Some converters write one id into every record: a few of these are as good as all.
        query = select(states.c.vod_id, states.c.vod_douban_id).where(linked_to).limit(_MOST_LINKED)
        found = [(row.vod_id, row.vod_douban_id) for row in connection.execute(query)]
        titles = self.services.cms.rows(connection, [vod_id for vod_id, _ in found])
        linked: dict[int, list[tuple[int, str]]] = {}
        for vod_id, douban_id in found:
            if vod_id in titles:
                linked.setdefault(douban_id, []).append((vod_id, readable(titles[vod_id]["vod_name"])))
        return linked

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
        verdict = judge_found(video, found, records, self.profile, circumstances)
        verdict = respect_site(verdict, video, added, self.profile)
        if current is not None:
            status, explanation = current.recheck(verdict)
            if not (found.complete and found.source_healthy) and status != ReviewStatus.CONFIRMED:
                return self._search_again(task, video, "候选不完整，稍后再复查")
        else:
            status, explanation = respect_current_id(verdict, row["vod_douban_id"])
            status, explanation = respect_choice(status, explanation, circumstances.chosen, row["vod_douban_id"])
        if status == Status.UNDECIDED:
            return self._search_again(task, video, explanation)
        explanation = described.noted(explanation)
        doubted = self._doubted(found) if verdict.status is Status.NOT_FOUND else ""
        if doubted:
            return self._search_again(task, video, f"{word_for(SOURCE_NAMES, doubted)}的空结果暂不可信，稍后重新搜索")

        def store(connection: Connection) -> bool:
            if self._link_changed(connection, task, state):
                return False
            verdict_id = self._store(connection, task, row, found, described, verdict, status, explanation)
            if current is not None:
                self._close_recheck(connection, task, row, state, status, explanation)
            elif status == ReviewStatus.CONFIRMED:
                self.queue.advance(connection, task, TaskStage.SYNC, {**task.payload, "verdict_id": verdict_id})
            else:
                self._close(connection, task, row, status, explanation)
            return True

        if not run_transaction(self.services.engine, store):
            return None
        best = verdict.best
        return VerdictSummary(
            task.vod_id,
            task.shard,
            video.title,
            status,
            best.subject.douban_id if best else 0,
            verdict.score,
            verdict.lead,
            explanation,
            " ".join(f"{item.name} {item.points:g}" for item in best.items) if best else "",
            len(verdict.candidates),
            recheck=current is not None,
            with_evidence=added is not None,
        )

    def _doubted(self, found: FoundCandidates) -> str:
        """Return a source that named nothing while it was in doubt to find anything; "" if all are believed."""
        snapshot, gate = self.services.tables.snapshot, self.services.gate
        query = select(snapshot.c.source, snapshot.c.seen_at).where(snapshot.c.snapshot_id.in_(found.snapshots))
        with reading(self.services.engine) as connection:
            answers = connection.execute(query).tuples().all()
        return next((source for source, seen_at in answers if gate.doubts(source, seen_at)), "")

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
        row: RowMapping,
        found: FoundCandidates,
        video: DescribedVideo,
        verdict: Verdict,
        status: str,
        explanation: str,
    ) -> int:
        tables, now = self.services.tables, self.services.clock.now()
        best = verdict.candidates[0] if verdict.candidates else None
        writes = status == ReviewStatus.CONFIRMED and task.task_type is not TaskType.RECHECK
        connection.execute(self._supersede, {"of_vod_id": task.vod_id})
        stored = {
            "vod_id": task.vod_id,
            "shard": task.shard,
            "task_id": task.task_id,
            "verdict": status,
            "douban_id": verdict.douban_id or 0,
            "score": verdict.score,
            "lead": verdict.lead,
            "complete": found.complete,
            "source_healthy": found.source_healthy,
            "rejects": list(best.comparison.rejects) if best else [],
            "reasons": reasons_of(verdict, explanation),
            "explanation": explanation[:500],
            "facts": stored_facts(video.video, video.added, found.posters),
            "snapshots": [*found.snapshots, *(each.snapshot_id for each in found.subjects)],
            "fingerprint": fingerprint(row),
            "profile": verdict.profile,
            "strata": list(verdict.strata),
            "crowded": found.crowded,
            "rule_version": RULE_VERSION,
            "state": VerdictState.PENDING if writes else VerdictState.APPLIED,
            "run_id": self.run_id,
            "created_at": now,
        }
        key = connection.execute(self._keep, stored).inserted_primary_key
        assert key is not None
        verdict_id = int(key[0])
        snapshot_of = {each.douban_id: each.snapshot_id for each in found.subjects}
        rows: list[dict[str, Any]] = [
            {
                "verdict_id": verdict_id,
                "vod_id": task.vod_id,
                "rank": candidate.rank,
                "douban_id": candidate.subject.douban_id,
                "title": candidate.subject.title[:255],
                "year": candidate.subject.year,
                "score": candidate.score,
                "points": [item.to_json() for item in candidate.items],
                "rejects": list(candidate.comparison.rejects),
                "conflicts": {finding.code: finding.text for finding in candidate.comparison.findings},
                "facts": asdict(candidate.subject),
                "fetched": candidate.subject.fetched,
                "snapshot_id": snapshot_of.get(candidate.subject.douban_id),
                "created_at": now,
            }
            for candidate in verdict.candidates[:_KEPT_CANDIDATES]
        ]
        if rows:
            connection.execute(insert(tables.candidate), rows)
        return verdict_id

    def _close(self, connection: Connection, task: Task, row: RowMapping, status: str, explanation: str) -> None:
        """Close a task whose verdict writes nothing to the CMS: note it in our state, with the next visit."""
        now = self.services.clock.now()
        video = self.services.tables.video
        connection.execute(
            update(video)
            .where(video.c.vod_id == task.vod_id)
            .values(
                douban_review_status=status,
                douban_review_reason=explanation[:500],
                douban_last_sync_at=now,
                douban_next_sync_at=self.services.settings.tiers.next_visit_of(row, now),
                douban_sync_fail_count=0,
                douban_last_fail_reason="",
            )
        )
        self.queue.finish(connection, task.task_id, TaskStatus.SUCCESS, explanation)

    def _close_recheck(
        self, connection: Connection, task: Task, row: RowMapping, state: RowMapping, status: str, explanation: str
    ) -> None:
        """Close a recheck: a doubt is noted for a person, one that ended is noted too; the link stays as it is."""
        now = self.services.clock.now()
        video = self.services.tables.video
        values: dict[str, Any] = {"douban_sync_fail_count": 0, "douban_last_fail_reason": ""}
        if status != state["douban_review_status"] or status == ReviewStatus.REVIEW:
            values |= {"douban_review_status": status, "douban_review_reason": explanation[:500]}
            # Not every minute what a person has to settle; at once what may be synced again.
            again = now if status == ReviewStatus.CONFIRMED else self.services.settings.tiers.next_visit_of(row, now)
            values |= {"douban_next_sync_at": again}
        connection.execute(update(video).where(video.c.vod_id == task.vod_id).values(**values))
        note = explanation or "复查：关联仍然成立"
        self.queue.finish(connection, task.task_id, TaskStatus.SUCCESS, note)

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


def skip_task(services: Services, queue: TaskQueue, task: Task, row: RowMapping | None, refusal: Refusal) -> None:
    """Close ``task`` without a verdict, and move the video's next visit: every run would take on what stays due.

    A video that is linked by now stays due: its fields are to be synced. Nothing changes where the lease was lost.
    """
    video, now = services.tables.video, services.clock.now()
    locked = refusal.reason is Reason.LOCKED_IN_CMS
    visit = now + LOCKED_VISIT if locked or row is None else services.settings.tiers.next_visit_of(row, now)

    def close(connection: Connection) -> None:
        if not queue.finish(connection, task.task_id, TaskStatus.SKIP, refusal.sentence):
            return
        if row is None:
            note_gone(connection, services.tables, task.vod_id)
        elif refusal.reason is not Reason.LINKED_ALREADY:
            connection.execute(
                update(video)
                .where(video.c.vod_id == task.vod_id, video.c.douban_next_sync_at.is_not(None))
                .values(douban_next_sync_at=visit)
            )

    run_transaction(services.engine, close)
