"""Reviewers' decisions: one type from the launchpad to the log, what each action is about, which contradict each
other, and which subjects people chose for good.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from douban_pipeline.core.database import chunks
from douban_pipeline.douban.store.states import DecisionAction, DecisionState
from douban_pipeline.douban.store.tables import OwnTables

LINKING = frozenset(
    {DecisionAction.confirm_top1, DecisionAction.choose, DecisionAction.set_id, DecisionAction.replace_and_lock}
)
"""Actions that say which subject it is."""

FROM_CANDIDATES = frozenset({DecisionAction.confirm_top1, DecisionAction.choose})
"""Actions that take the subject from the candidates of a verdict."""

NAMING = frozenset({DecisionAction.set_id, DecisionAction.replace_and_lock})
"""Actions that name a subject whoever found it, so that it is asked for and compared first."""

_RELEASING = frozenset({DecisionAction.clear_id, DecisionAction.rematch, DecisionAction.unlock_id})
"""Actions after which an earlier choice of a subject no longer holds."""

WRITING = LINKING | {DecisionAction.clear_id, DecisionAction.sync_now, DecisionAction.redo_intro}
"""Actions that write to the CMS's row, which the CMS's own lock forbids."""

_ON_THE_CURRENT_ID = frozenset({DecisionAction.clear_id, DecisionAction.sync_now, DecisionAction.redo_intro})
UNLOCKING = frozenset({DecisionAction.unlock_id, DecisionAction.unlock_intro})
"""Actions that undo a lock: over many videos at once only for those who have the right."""

_UNLINKING = frozenset({DecisionAction.clear_id, DecisionAction.ignore, DecisionAction.rematch})

_APPLIED_BY: Mapping[DecisionAction, str] = {DecisionAction.sync_now: "sync", DecisionAction.redo_intro: "intro"}
"""Actions of the changes that apply a decision, where they are not the decision's own."""


SERVED_RUN = "review-"
"""How the name of the run begins that stands with what the served sheet recorded: no run of Dagster's has it."""


class Aspect(enum.IntEnum):
    """What an action is about. Decisions about one video are applied in this order, one of each at most."""

    LINK = 1
    ID_LOCK = 2
    INTRO_LOCK = 3
    SYNC = 4
    INTRO = 5


_ASPECTS: Mapping[DecisionAction, Aspect] = {
    DecisionAction.lock_id: Aspect.ID_LOCK,
    DecisionAction.unlock_id: Aspect.ID_LOCK,
    DecisionAction.lock_intro: Aspect.INTRO_LOCK,
    DecisionAction.unlock_intro: Aspect.INTRO_LOCK,
    DecisionAction.sync_now: Aspect.SYNC,
    DecisionAction.redo_intro: Aspect.INTRO,
}


def aspect_of(action: DecisionAction) -> Aspect:
    """Return what an action is about."""
    return _ASPECTS.get(action, Aspect.LINK)


def may_lock(action: DecisionAction) -> bool:
    """Return whether an action may lock the id too: one that unlocks, or has the subject searched anew, may not."""
    return action not in UNLOCKING and action is not DecisionAction.rematch


def locks_id(action: DecisionAction, lock: bool) -> bool:
    """Return whether a decision locks the id, by its action or in addition to it (``lock``)."""
    if action in (DecisionAction.lock_id, DecisionAction.replace_and_lock):
        return True
    return lock and may_lock(action) and aspect_of(action) in (Aspect.LINK, Aspect.SYNC)


def about_current_id(action: DecisionAction, lock: bool) -> bool:
    """Return whether a decision is about the id that the video had when it was made, and holds for no other."""
    return action in _ON_THE_CURRENT_ID or (action not in LINKING and locks_id(action, lock))


class DecisionStatus(enum.StrEnum):
    """How far a decision has come from the launchpad to the log."""

    REQUESTED = "requested"
    """As a person wrote it."""
    REFUSED = "refused"
    """Not recorded for execution, or not applied; `Decision.reason` says why."""
    CHECKED = "checked"
    """It could be recorded; the launch only checks."""
    KNOWN = "known"
    """The same decision is recorded already."""
    ALREADY = "already"
    """What it asks for is so already."""
    RECORDED = "recorded"
    """It waits for a run of its lane, or of its shard."""
    WAITING = "waiting"
    """A run could not apply it yet; `Decision.reason` says why, `Decision.run_after` until when."""
    QUEUED = "queued"
    """A task was queued for it, whose fate it shares."""
    APPLIED = "applied"
    REVERTED = "reverted"
    """It was applied, and reverted since."""


_STATUSES: Mapping[DecisionState, DecisionStatus] = {
    DecisionState.QUEUED: DecisionStatus.QUEUED,
    DecisionState.APPLIED: DecisionStatus.APPLIED,
    DecisionState.REFUSED: DecisionStatus.REFUSED,
    DecisionState.REVERTED: DecisionStatus.REVERTED,
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about a video, and how far it has come. 0 and empty are fields left out.

    The fields up to ``note`` are what people write; the others are added on the way. Use `dataclasses.replace`.

    Attributes:
        douban_id: The subject: as written at first, then the one that the decision comes to, or is about.
        rank: Place of the candidate, from 1, for ``choose``.
        days: Days to be ignored, for ``ignore``; 0 for ever.
        lock: Whether the id is locked too.
        accept_conflicts: Whether the reviewer knows what speaks against the subject, and means it.
        override_cms_lock: Whether it is meant although the site locked the row (``vod_lock = 1``).
        verdict_id: The verdict the reviewer looked at.
        imported: Whether it came in a spreadsheet.
        note: Why; while requested empty where the launch's note says it.
        where: How messages name it, such as ``decisions 第 1 条``.
        title: The video's title; empty where there is no such video, or nobody asked.
        seen_id: The id in the video's CMS row as its card showed it, 0 for none; None where no card was looked at.
        fingerprint: That of the video's CMS row when the decision was recorded, or its beginning.
        checked_at: When the subject was asked for and compared; None where that is still to be done.
        reason: Why it was refused or waits, or what else is to be known of it.
        run_after: It is not applied before this; None for at once.
    """

    vod_id: int
    action: DecisionAction
    douban_id: int = 0
    rank: int = 0
    days: int = 0
    lock: bool = False
    accept_conflicts: bool = False
    override_cms_lock: bool = False
    verdict_id: int = 0
    note: str = ""
    imported: bool = False
    where: str = ""
    title: str = ""
    seen_id: int | None = None
    fingerprint: str = ""
    checked_at: datetime | None = None
    status: DecisionStatus = DecisionStatus.REQUESTED
    reason: str = ""
    decision_id: int = 0
    shard: int = 0
    reviewer: str = ""
    batch_id: str = ""
    created_at: datetime | None = None
    run_after: datetime | None = None

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> Decision:
        """Return a decision as it is recorded in the table."""
        waiting = DecisionStatus.WAITING if row["run_after"] is not None else DecisionStatus.RECORDED
        seen_id, marked, judged = row["fingerprint"].rpartition(":")
        return cls(
            vod_id=row["vod_id"],
            action=DecisionAction(row["action"]),
            douban_id=row["douban_id"],
            days=row["days"],
            lock=row["lock"],
            accept_conflicts=row["accept_conflicts"],
            override_cms_lock=row["override_cms_lock"],
            verdict_id=row["verdict_id"] or 0,
            imported=row["imported"],
            note=row["note"],
            seen_id=int(seen_id) if marked else None,
            fingerprint=judged,
            checked_at=row["checked_at"],
            status=_STATUSES.get(DecisionState(row["state"]), waiting),
            reason=row["state_reason"],
            decision_id=row["decision_id"],
            shard=row["shard"],
            reviewer=row["reviewer"],
            batch_id=row["batch_id"],
            created_at=row["created_at"],
            run_after=row["run_after"],
        )

    @property
    def stored_fingerprint(self) -> str:
        """The fingerprint as it is stored, after the id that was seen."""
        return f"{self.seen_id}:{self.fingerprint}"[:32] if self.seen_id is not None else self.fingerprint

    @property
    def aspect(self) -> Aspect:
        """What it is about."""
        return aspect_of(self.action)

    @property
    def linking(self) -> bool:
        """Whether it says which subject the video is."""
        return self.action in LINKING

    @property
    def locks_id(self) -> bool:
        """Whether it locks the id, by its action or in addition to it."""
        return locks_id(self.action, self.lock)

    @property
    def about_current_id(self) -> bool:
        """Whether it is about the id that the video had when it was made, and holds for no other."""
        return about_current_id(self.action, self.lock)

    @property
    def pending(self) -> bool:
        """Whether it is recorded and no run has begun to apply it."""
        return self.status in (DecisionStatus.RECORDED, DecisionStatus.WAITING)

    @property
    def unchecked(self) -> bool:
        """Whether the run that applies it still has to fetch the named subject and compare it."""
        open_still = self.pending or self.status is DecisionStatus.CHECKED
        return open_still and self.action in NAMING and self.checked_at is None

    @property
    def identity(self) -> str:
        """What two decisions have in common that say the same; what means nothing for an action makes no difference.

        A candidate that is chosen by its place has no subject before the place was looked up: then the place counts.
        """
        numbers = (
            self.douban_id,
            self.locks_id,
            self.days if self.action is DecisionAction.ignore else 0,
            self.accept_conflicts and self.linking,
        )
        same = ":".join([str(self.vod_id), str(self.action), *(str(int(number)) for number in numbers)])
        same += "!" if self.override_cms_lock and self.action in WRITING else ""
        return same if self.douban_id or not self.rank else f"{same}#{self.rank}"

    def contradicts(self, other: Decision) -> bool:
        """Return whether this and another, different decision about the same video contradict each other."""
        return contradict((self.action, self.lock), (other.action, other.lock))

    @property
    def sentence(self) -> str:
        """Its reason, with where it was written and the video that it is about."""
        title = f"《{self.title}》" if self.title else ""
        return f"{self.where}（影片 {self.vod_id}{title}）：{self.reason}"


def contradict(one: tuple[DecisionAction, bool], other: tuple[DecisionAction, bool]) -> bool:
    """Return whether two different decisions about one video contradict each other; each is its action and its lock."""
    actions = {one[0], other[0]}
    if aspect_of(one[0]) is aspect_of(other[0]):
        return True
    if DecisionAction.unlock_id in actions and (locks_id(*one) or locks_id(*other)):
        return True
    if actions >= {DecisionAction.unlock_intro, DecisionAction.redo_intro}:
        return True
    return bool(actions & _UNLINKING) and bool(actions & {DecisionAction.sync_now, DecisionAction.redo_intro})


@dataclass(frozen=True, slots=True)
class CurrentChoice:
    """The subject that a person chose for a video, and whether its conflicts were accepted."""

    douban_id: int
    accepted: bool


def chosen_subjects(connection: Connection, tables: OwnTables, vod_ids: Collection[int]) -> dict[int, int]:
    """Return the subjects of `current_choices`."""
    choices = current_choices(connection, tables, vod_ids)
    return {vod_id: choice.douban_id for vod_id, choice in choices.items()}


def current_choices(connection: Connection, tables: OwnTables, vod_ids: Collection[int]) -> dict[int, CurrentChoice]:
    """Return the choices of people, of the videos for which one chose and nobody released it since.

    No automatic run may link such a video to anything else. Clearing the id, unlocking it, a rematch and reverting the
    decision release it.
    """
    decision = tables.decision
    chosen: dict[int, CurrentChoice] = {}
    for chunk in chunks(sorted(vod_ids)):
        query = (
            select(decision.c.vod_id, decision.c.action, decision.c.douban_id, decision.c.accept_conflicts)
            .where(
                decision.c.vod_id.in_(chunk),
                decision.c.state == DecisionState.APPLIED,
                decision.c.action.in_(LINKING | _RELEASING),
            )
            .order_by(decision.c.decision_id)
        )
        for vod_id, action, douban_id, accepted in connection.execute(query):
            if action in LINKING:
                chosen[vod_id] = CurrentChoice(douban_id, accepted)
            else:
                chosen.pop(vod_id, None)
    return chosen


def mark_reverted(
    connection: Connection, tables: OwnTables, decision_id: int, change_action: str, *, again: bool
) -> None:
    """Mark a decision as reverted because the change that applied it was, or with ``again`` as applied once more.

    Args:
        connection: The transaction in which the change is reverted.
        tables: Our tables.
        decision_id: The decision.
        change_action: Action of the change. A sync that merely followed a decision did not apply it.
        again: Whether the change was written once more because its revert was reverted.
    """
    decision = tables.decision
    applied_by = [action for action in DecisionAction if _APPLIED_BY.get(action, action) == change_action]
    before, after = (DecisionState.REVERTED, DecisionState.APPLIED)[:: 1 if again else -1]
    connection.execute(
        update(decision)
        .where(decision.c.decision_id == decision_id, decision.c.action.in_(applied_by), decision.c.state == before)
        .values(state=after)
    )
