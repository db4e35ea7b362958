"""Checks the decisions of one launch against the library and against each other, without a call to a source."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from douban_pipeline.core.database import reading
from douban_pipeline.douban.review.records import rules
from douban_pipeline.douban.review.records.snapshot import (
    LibrarySnapshot,
    PendingDecisions,
    holders_of,
    read_pending,
    read_snapshot,
    titles_of,
)
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import FROM_CANDIDATES, Aspect, Decision, DecisionStatus
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.videos import fingerprint
from douban_pipeline.douban.wording import ACTIONS

ALREADY = "已经如此，无需记录"
CONFIRM_ANYWAY = "请核对；确认无误请加 accept_conflicts: true"
"""The remedy for every conflict with a subject."""

_NAMED = 3


@dataclass(slots=True)
class DecisionDraft:
    """A decision while it is examined and recorded.

    Attributes:
        decision: The decision in its current state: with its subject, and its status once that is known.
        verdict_id: The verdict the reviewer looked at, or else the newest.
        problems: Why it is refused.
        conflicts: Objections to the subject, which a reviewer may accept.
        unchecked: Why the subject could not be fetched.
    """

    decision: Decision
    verdict_id: int | None = None
    problems: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    unchecked: str = ""

    @property
    def vod_id(self) -> int:
        """The video."""
        return self.decision.vod_id

    @property
    def open(self) -> bool:
        """Whether it has no final status yet and no problem."""
        return self.decision.status is DecisionStatus.REQUESTED and not self.problems

    @property
    def linking(self) -> bool:
        """Whether it may still link its video to a subject."""
        return self.open and self.decision.linking

    @property
    def refused(self) -> bool:
        """Whether it was refused."""
        return self.decision.status is DecisionStatus.REFUSED

    def settle(self, status: DecisionStatus, reason: str = "") -> None:
        """Set its status and the reason."""
        self.decision = replace(self.decision, status=status, reason=reason)

    def refuse(self, *problems: str) -> None:
        """Refuse it with these problems and those found before."""
        self.problems += problems
        self.settle(DecisionStatus.REFUSED, "；".join(dict.fromkeys(self.problems)))

    def add_problem(self, problem: str | None) -> None:
        """Add a problem, if there is one."""
        if problem:
            self.problems.append(problem)


@dataclass(frozen=True, slots=True)
class Examination:
    """The decisions of a launch in the given order and by video, with the data about their videos."""

    services: Services
    drafts: tuple[DecisionDraft, ...]
    by_video: Mapping[int, Sequence[DecisionDraft]]
    snapshot: LibrarySnapshot
    pending: PendingDecisions

    def in_order(self) -> tuple[list[DecisionDraft], list[DecisionDraft]]:
        """Return the decisions about links, and the others, which are settled later because some need a link."""
        links = [draft for draft in self.drafts if draft.decision.aspect is Aspect.LINK]
        return links, [draft for draft in self.drafts if draft.decision.aspect is not Aspect.LINK]

    def apply_refusal(self, draft: DecisionDraft) -> str | None:
        """Return why a decision could not be applied after the decision about its video's link; None if it could.

        Also sets the id that the decision is about.
        """
        links = (each.decision for each in self.by_video[draft.vod_id] if each.decision.aspect is Aspect.LINK)
        no_link = (DecisionStatus.REQUESTED, DecisionStatus.REFUSED)
        meant = next((each for each in links if each.status not in no_link), None)
        link = meant or self.pending.link_left(draft.decision)
        now = self.services.clock.now()
        draft.decision = replace(draft.decision, douban_id=rules.current_id(draft.decision, self.snapshot, link, now))
        return rules.apply_refusal(draft.decision, self.snapshot, link, self.services.settings, now)


def examine(services: Services, decisions: Sequence[Decision]) -> Examination:
    """Return the drafts of ``decisions`` with all problems that can be found without a call to a source."""
    snapshot = read_snapshot(services, decisions)
    drafts = tuple(_begin(services, decision, snapshot) for decision in decisions)
    by_video: dict[int, list[DecisionDraft]] = {}
    for draft in drafts:
        by_video.setdefault(draft.vod_id, []).append(draft)
    for about in by_video.values():
        _note_contradictions(about)
    sound = [draft for draft in drafts if draft.open]
    subjects = {draft.decision.douban_id for draft in sound if draft.linking}
    with reading(services.engine) as connection:
        pending = read_pending(services.tables, connection, {draft.vod_id for draft in sound}, subjects)
    for draft in sound:
        _compare(services, draft, snapshot, pending)
    _note_other_videos(services, drafts, snapshot, pending)
    return Examination(services, drafts, by_video, snapshot, pending)


def _begin(services: Services, decision: Decision, snapshot: LibrarySnapshot) -> DecisionDraft:
    draft = DecisionDraft(replace(decision, title=snapshot.title(decision.vod_id)))
    draft.problems += rules.faults(decision, ai_intros=services.settings.ai_intros)
    missing = rules.video_refusal(decision, snapshot)
    if missing:
        draft.problems.append(missing)
        return draft
    row, seen = snapshot.rows[decision.vod_id], decision.seen_id
    if seen is None:
        # Who chooses from a sheet saw the id that was known; who names a subject without one means it as things are.
        on_sheet = decision.verdict_id or decision.action in FROM_CANDIDATES
        seen = (snapshot.states[decision.vod_id] if on_sheet else row)["vod_douban_id"]
    draft.decision = replace(draft.decision, seen_id=seen, fingerprint=fingerprint(row))
    if not decision.linking:
        if not draft.problems:
            about = rules.current_id(decision, snapshot, None, services.clock.now())
            draft.decision = replace(draft.decision, douban_id=about)
        return draft
    verdict = snapshot.verdicts.get(decision.vod_id)
    draft.verdict_id = decision.verdict_id or (verdict["verdict_id"] if verdict is not None else None)
    if not draft.problems:
        subject, unknown = rules.subject_of(decision, snapshot)
        draft.decision = replace(draft.decision, douban_id=subject)
        draft.add_problem(unknown)
    return draft


def _note_contradictions(drafts: Sequence[DecisionDraft]) -> None:
    """Add a problem to each decision about one video that another one contradicts: both are refused."""
    different = {draft.decision.identity: draft.decision for draft in drafts}
    if len(different) == 1:
        return
    for draft in drafts:
        for other in different.values():
            if other.identity != draft.decision.identity and draft.decision.contradicts(other):
                draft.problems.append(f"与 {other.where}（{ACTIONS[other.action]}）矛盾，请只留下一条")
                break


def _compare(services: Services, draft: DecisionDraft, snapshot: LibrarySnapshot, pending: PendingDecisions) -> None:
    """Compare a decision without problems with pending decisions about its video and with the current state."""
    decision = draft.decision
    same = pending.same(decision)
    if same is not None:
        draft.settle(DecisionStatus.KNOWN, known_sentence(same))
        return
    refusal = rules.stale_refusal(decision, snapshot)
    if not refusal and not pending.replaced_by(decision) and rules.is_already_so(decision, snapshot):
        draft.settle(DecisionStatus.ALREADY, ALREADY)
    elif not refusal and decision.aspect is Aspect.LINK:
        refusal = rules.apply_refusal(decision, snapshot, None, services.settings, services.clock.now())
    draft.add_problem(refusal)


def _note_other_videos(
    services: Services, drafts: Sequence[DecisionDraft], snapshot: LibrarySnapshot, pending: PendingDecisions
) -> None:
    """Add a conflict to every open decision whose subject other videos have: by a link, a pending decision or a row.

    That is seldom intended, so a reviewer has to accept it explicitly.
    """
    linking = [draft for draft in drafts if draft.linking]
    holders = holders_of(services, {draft.decision.douban_id for draft in linking})
    rivals: dict[int, list[Decision]] = {}
    for draft in linking:
        rivals.setdefault(draft.decision.douban_id, []).append(draft.decision)
    carried: dict[int, tuple[int, tuple[int, ...]]] = {}
    for draft in linking:
        subject = draft.decision.douban_id
        if subject in holders:
            state = snapshot.states[draft.vod_id]
            carries = (state["vod_douban_id"], state["douban_review_status"]) == (subject, ReviewStatus.CONFIRMED)
            carried[id(draft)] = holders[subject].others(draft.vod_id, carries=carries)
    given = {id(draft): pending.given_to_others(draft.decision) for draft in linking}
    titles = titles_of(services, {each for _, ends in carried.values() for each in ends} | set().union(*given.values()))
    for draft in linking:
        subject = draft.decision.douban_id
        count, ends = carried.get(id(draft), (0, ()))
        if count:
            draft.conflicts.append(f"条目 {subject} 已关联到{named(ends, titles, count)}")
        if given[id(draft)]:
            draft.conflicts.append(given_sentence(subject, given[id(draft)], titles))
        # Only one other row is named: searching for all would be slow where all rows name one subject.
        other = next((each for each in rivals[subject] if each.vod_id != draft.vod_id), None)
        if other is not None:
            draft.conflicts.append(f"{other.where} 把条目 {subject} 给了影片 {other.vod_id}《{other.title}》")


def known_sentence(decision: Decision) -> str:
    """Return a sentence that names the equal decision that exists already."""
    batch = f"，批次 {decision.batch_id}" if decision.batch_id else ""
    return f"已有相同的决定（{decision.reviewer}{batch}）"


def given_sentence(douban_id: int, vod_ids: Collection[int], titles: Mapping[int, str]) -> str:
    """Return a sentence that says that pending decisions give a subject to other videos."""
    return f"待执行的决定把条目 {douban_id} 给了{named(vod_ids, titles, len(vod_ids))}"


def named(vod_ids: Collection[int], titles: Mapping[int, str], count: int) -> str:
    """Return the first videos as text for a sentence, with their number if these are not all."""
    names = [f"影片 {each}" + (f"《{titles[each]}》" if titles.get(each) else "") for each in sorted(vod_ids)[:_NAMED]]
    return "、".join(names) + (f" 等 {count} 部影片" if count > len(names) else "")
