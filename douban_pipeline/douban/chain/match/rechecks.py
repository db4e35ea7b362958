"""What becomes of a verdict on a video that has an id already: automation replaces none, doubts are for people.

A recheck judges a link that is there: whether it would be made today. Rechecks are queued by a person's job, and for
locked ids that turned out doubtful, which get their candidates that way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from douban_pipeline.core.archive import LONGEST_CACHE
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline.douban.sources.douban_php import parse_subject
from douban_pipeline.douban.store.states import ReviewStatus, TaskType
from douban_pipeline.douban.store.videos import left_to_the_site
from douban_pipeline.douban.writes.refusals import Reason, Refusal, match_refusal, recheck_refusal
from douban_pipeline.matching import Code, Status, Verdict
from douban_pipeline.matching.codes import LABELS

LOCK_LABEL = LABELS[Code.ID_LOCKED]
"""The plan's label for a doubt that is not acted on because the id is locked."""


@dataclass(frozen=True, slots=True)
class CurrentLink:
    """The link that is judged again.

    Attributes:
        douban_id: The subject.
        locked: Whether the id is locked.
        chosen: Whether a person chose the subject.
        accepted: Whether that person knew what speaks against it.
        title: The subject's title as it was last known; empty where it never was.
        unproven: Whether no verdict ever confirmed it and nobody asks now: only evidence questions it.
        why: Why it is judged again, in words; empty where a person ordered it.
    """

    douban_id: int
    locked: bool = False
    chosen: bool = False
    accepted: bool = False
    title: str = ""
    unproven: bool = False
    why: str = ""

    def recheck(self, verdict: Verdict) -> tuple[str, str]:
        """Return status and explanation of the link after ``verdict``: CONFIRMED and nothing, or REVIEW and the doubt.

        A link of automation must be confirmed again; so must an id that was in the CMS, if a person asks; else that is
        questioned if the subject is gone or ruled out, or if another one is confirmed. What a person locked or chose
        is questioned only if the subject is gone, or if something rules it out that the person did not accept.
        """
        if verdict.status is Status.UNDECIDED:
            return verdict.status, verdict.explanation
        if verdict.status is Status.CONFIRMED and verdict.douban_id == self.douban_id:
            return ReviewStatus.CONFIRMED, ""
        doubt = self._doubt(verdict)
        if not doubt:
            return ReviewStatus.CONFIRMED, ""
        told = f"（{self.why}）" if self.why else ""
        label = f"{LOCK_LABEL}：锁定的豆瓣 ID" if self.locked else f"复查{told}：豆瓣 ID"
        name = f"（{self.title}）" if self.title else ""
        return ReviewStatus.REVIEW, f"{label} {self.douban_id}{name} {doubt}；{verdict.explanation}"

    def _doubt(self, verdict: Verdict) -> str:
        this = next((each for each in verdict.candidates if each.subject.douban_id == self.douban_id), None)
        if this is None or not this.subject.fetched:
            return "已不存在"
        against = [each.text for each in this.comparison.exclusions]
        if against:
            return "" if self.accepted else f"与影片不符（{'、'.join(against)}）"
        if self.locked or self.chosen:
            return ""
        if self.unproven:
            other = verdict.status is Status.CONFIRMED
            return f"存疑，按现在的规则应为 {verdict.douban_id}" if other else ""
        return "按现在的规则不再确认"


def search_refusal(
    task_type: TaskType,
    row: Mapping[Any, Any] | None,
    state: Mapping[Any, Any] | None,
    *,
    respect_vod_lock: bool = False,
) -> Refusal | None:
    """Return why a task's video is not searched for, None if it is.

    Args:
        task_type: What the task is for.
        row: The CMS row, None if there is none any more.
        state: Our state row.
        respect_vod_lock: Whether a row that the site locked is left alone: not where a person ordered the task.
    """
    refusal = recheck_refusal(row, state) if task_type is TaskType.RECHECK else match_refusal(row, state)
    if refusal is None and respect_vod_lock and row is not None and state is not None and left_to_the_site(row, state):
        return Refusal.of(Reason.LOCKED_IN_CMS)
    return refusal


def reasons_of(verdict: Verdict, explanation: str) -> list[str]:
    """Return the codes of a verdict, with the one of a lock where that is what keeps it from being acted on."""
    return [*verdict.codes, *([str(Code.ID_LOCKED)] if explanation.startswith(LOCK_LABEL) else [])]


def respect_current_id(verdict: Verdict, current: int) -> tuple[str, str]:
    """Return status and explanation of a verdict on a video that has an id in the CMS, 0 if it has none.

    Automation fills an empty id. Another one was put there by somebody, and only a person replaces it; a video that
    has one is matched because it is in doubt, and finding nothing does not end the doubt.
    """
    if not current or verdict.status is Status.UNDECIDED or verdict.douban_id == current:
        return verdict.status, verdict.explanation
    if verdict.status is Status.CONFIRMED:
        return ReviewStatus.REVIEW, f"CMS 中已有豆瓣 ID {current}，匹配结果为 {verdict.douban_id}，需人工确认"
    return ReviewStatus.REVIEW, f"CMS 中的豆瓣 ID {current} 存疑；{verdict.explanation}"


def respect_choice(status: str, explanation: str, chosen: int | None, current: int) -> tuple[str, str]:
    """Return status and explanation of a verdict on a video for which a person chose a subject, if one did.

    Such a video is matched again because somebody else changed the id, or because the subject is gone. Unless the
    match agrees with the person, a person is asked; the status is never NOT_FOUND.
    """
    if chosen is None or status in (Status.UNDECIDED, ReviewStatus.CONFIRMED):
        return status, explanation
    if chosen == current:
        return ReviewStatus.REVIEW, explanation
    return ReviewStatus.REVIEW, f"审核员选定的是 {chosen}，CMS 中现为 {current or '空'}；{explanation}"


def last_known_title(services: Services, douban_id: int) -> str:
    """Return the title of a subject as the newest archived answer that has one; empty where there is none."""
    for snapshot in services.archive.recent(DOUBAN, f"subject:{douban_id}", LONGEST_CACHE):
        try:
            return parse_subject(snapshot.body, douban_id).title
        except SourceError:
            continue
    return ""
