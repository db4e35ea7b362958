"""Recording what reviewers decide. Later runs carry it out; nothing is written to the CMS here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.decisions.refusals import conflicts_of
from douban_pipeline.douban.review.recording.elsewhere import CONFIRM_ANYWAY
from douban_pipeline.douban.review.recording.launch import Launch, examine
from douban_pipeline.douban.review.recording.rows import Row
from douban_pipeline.douban.review.recording.storing import Signature, store
from douban_pipeline.douban.review.recording.wishes import (
    MOST_NOTE,
    MOST_REVIEWER,
    DecisionError,
    Recorded,
    Recording,
    Wish,
)
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.errors import SubjectMismatch, SubjectMissing
from douban_pipeline.douban.store.decisions import NAMING, Aspect, aspect_of
from douban_pipeline.douban.writes.changes import PIPELINE

__all__ = ["DecisionError", "Recorded", "Recording", "Wish", "record"]

AT_ONCE = 50
"""Rows that are recorded together: few, so that a launch that is killed while it waits for a source keeps the rest."""

MOST_TOLD = 50
"""Rows of which a launch that cannot be recorded at all says what is wrong with them."""

UNCHECKED = "条目尚未核对，执行时先核对"


def record(
    services: Services,
    wishes: Sequence[Wish],
    *,
    reviewer: str,
    note: str,
    run_id: str,
    dry_run: bool,
    progress: Callable[[int], None] = lambda done: None,
) -> Recording:
    """Record ``wishes`` for the next runs: the good ones, and with their reason those that are refused.

    The same decision twice is harmless, so that a launch that was killed may be launched again; a newer decision
    takes the place of older ones that it contradicts. Subjects that people name are asked for and compared as long
    as `Settings.run_seconds` lasts; what could not be asked is recorded unchecked.

    Args:
        services: Database, source and settings.
        wishes: What was decided.
        reviewer: Who decided; noted with every write that follows.
        note: Why, for the log.
        run_id: The Dagster run that records them.
        dry_run: Check everything, record nothing.
        progress: Told how many rows are settled so far.

    Raises:
        DecisionError: Nobody signs the launch, or it is empty. Nothing is recorded, and all problems are told.
    """
    wishes = [
        replace(wish, where=wish.where or f"decisions 第 {number} 条") for number, wish in enumerate(wishes, start=1)
    ]
    signature = Signature(reviewer.strip(), note.strip(), run_id)
    recorder = _Recorder(services, signature, examine(services, wishes), dry_run)
    problems = list(_problems(signature, wishes))
    if problems:
        raise DecisionError([*problems, *recorder.sentences()])
    recorder.record(progress)
    return Recording(signature.batch_id, tuple(row.told() for row in recorder.launch.rows))


def _problems(signature: Signature, wishes: Sequence[Wish]) -> Iterator[str]:
    reviewer, note = signature.reviewer, signature.note
    if not reviewer:
        yield "reviewer: 请填写审核员的名字"
    elif reviewer.casefold() == PIPELINE:
        yield f"reviewer: {PIPELINE} 代表自动写入，请填写审核员的名字"
    elif len(reviewer) > MOST_REVIEWER:
        yield f"reviewer: 最多 {MOST_REVIEWER} 字，现为 {len(reviewer)} 字"
    if len(note) > MOST_NOTE:
        yield f"note: 最多 {MOST_NOTE} 字，现为 {len(note)} 字"
    if not wishes:
        yield "decisions: 至少填写一条决定"


class _Recorder:
    """Settles the rows of one launch."""

    def __init__(self, services: Services, signature: Signature, launch: Launch, dry_run: bool) -> None:
        self.services = services
        self.signature = signature
        self.launch = launch
        self.dry_run = dry_run
        self.until = services.clock.now() + timedelta(seconds=services.settings.run_seconds)
        self.first: dict[str, Row] = {}

    def sentences(self) -> list[str]:
        """Return what is wrong with the rows, as far as it is known without asking anybody."""
        wrong = [row for row in self.launch.rows if row.problems]
        for row in wrong:
            row.refuse()
        more = [f"…… 另有 {len(wrong) - MOST_TOLD} 条有误"] if len(wrong) > MOST_TOLD else []
        return [row.told().sentence for row in wrong[:MOST_TOLD]] + more

    def record(self, progress: Callable[[int], None]) -> None:
        """Settle all rows, a chunk after the other."""
        done = 0
        for rows in self.launch.in_order():
            for start in range(0, len(rows), AT_ONCE):
                chunk = rows[start : start + AT_ONCE]
                for row in chunk:
                    progress(done)
                    self._check(row)
                    done += 1
                self._settle(chunk)
        progress(done)

    def _check(self, row: Row) -> None:
        """Ask the rest about a row that is still open, and refuse it if anything was found."""
        if row.open and aspect_of(row.wish.action) is not Aspect.LINK:
            why = self.launch.why_not(row, self.services)
            row.problems += [why] if why else []
        if row.open and row.wish.action in NAMING:
            self._check_subject(row)
        told = "；".join(row.conflicts)
        if row.open and told and not row.wish.accept_conflicts:
            row.problems.append(f"{told}；{CONFIRM_ANYWAY}")
        if row.problems:
            row.refuse()
        elif row.open:
            row.reason = "；".join(filter(None, [f"已接受：{told}" if told else "", row.unchecked]))

    def _check_subject(self, row: Row) -> None:
        if self.services.clock.now() >= self.until:
            row.unchecked = f"{UNCHECKED}：本次核对的时间已用完"
            return
        try:
            conflicts = conflicts_of(self.services, self.launch.standing.rows[row.vod_id], row.douban_id)
        except SubjectMissing:
            row.problems.append(f"豆瓣没有条目 {row.douban_id}，请核对 douban_id")
        except SubjectMismatch as error:
            told = f"核对条目 {row.douban_id} 时得到另一个条目（{error}）"
            row.problems.append(f"{told}，它可能已并入别的条目，请改用新的 ID")
        except SourceError as error:
            row.unchecked = f"{UNCHECKED}：{error}"
        else:
            row.checked_at = self.services.clock.now()
            # What the comparison says comes first: it is about this video.
            row.conflicts[:0] = [f"条目 {row.douban_id} {conflicts}"] if conflicts else []

    def _settle(self, rows: Sequence[Row]) -> None:
        """Record the rows of a chunk that are open, refused ones with their reason; the same twice is once."""
        again = []
        for row in rows:
            if row.open and self.first.setdefault(row.identity, row) is not row:
                again.append(row)
        once = [row for row in rows if row.outcome == "refused" or (row.open and self.first[row.identity] is row)]
        if self.dry_run:
            for row in once:
                if row.open:
                    row.settle("checked", row.reason)
        elif once:
            store(self.services, self.signature, once)
        for row in again:
            first = self.first[row.identity]
            if first.outcome == "refused":
                row.refuse(first.reason)
            else:
                row.settle("known", f"与 {first.wish.where} 相同")
