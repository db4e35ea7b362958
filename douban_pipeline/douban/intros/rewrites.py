"""Rewrites intros on a person's request: shown first, then written even over a lock, and locked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import RowMapping

from douban_pipeline.cms.values import readable
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError, SourceError
from douban_pipeline.douban.decisions.refusals import INTROS_OFF
from douban_pipeline.douban.intros.author import (
    Author,
    IntroDraft,
    intro_change,
    ledger_of,
    sheet_refusal,
)
from douban_pipeline.douban.intros.factguard import marks
from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.douban.intros.ledger import IntroLedger, Occasion, violation_texts
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.errors import SOURCE_DOWN
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.videos import state_rows
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.changes import PIPELINE
from douban_pipeline.douban.writes.refusals import OVERRIDE_CMS_LOCK, cms_lock_refusal, subject_refusal


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The outcome for the intro of one video.

    Attributes:
        result: ``written``, ``shown`` (dry run), ``refused`` (by the guard, twice), ``failed`` or ``skipped``.
        text: The model's text.
        reason: Why it was not written, or why the model was not called.
    """

    vod_id: int
    title: str
    result: str
    text: str = ""
    reason: str = ""
    change_id: int | None = None


class RewriteError(ProblemsError):
    """The request is invalid; ``problems`` holds a sentence for each reason."""


def rewrite_intros(
    services: Services,
    vod_ids: Sequence[int],
    *,
    reviewer: str,
    note: str,
    run_id: str,
    dry_run: bool,
    override_cms_lock: bool = False,
) -> list[RewriteResult]:
    """Rewrite the intros of ``vod_ids`` and return the outcomes.

    A text that passed the guard and was shown within a day is written unchanged if the facts are the same; otherwise
    the model is called.

    Args:
        services: Database, sources and settings.
        vod_ids: The videos.
        reviewer: Who requests it; logged with every write.
        note: The reason, for the log.
        run_id: The Dagster run.
        dry_run: Call the model and show its texts, but write nothing.
        override_cms_lock: Also write to rows that the site locked.

    Raises:
        RewriteError: The request is invalid; the error lists all problems, and the model was not called.
    """
    problems = list(_problems(services, vod_ids, reviewer, dry_run, override_cms_lock))
    if problems:
        raise RewriteError(problems)
    ledger = ledger_of(services)
    order = _RewriteOrder(
        services,
        services.change_log(run_id),
        ledger,
        Author(services, ledger),
        reviewer,
        note,
        dry_run,
        override_cms_lock,
    )
    results: list[RewriteResult] = []
    closed = ""
    for vod_id in vod_ids:
        if closed:
            results.append(RewriteResult(vod_id, "", "skipped", reason=closed))
            continue
        try:
            results.append(order.rewrite(vod_id))
        except SourceError as error:
            results.append(RewriteResult(vod_id, "", "failed", reason=str(error)))
            closed = str(error) if isinstance(error, SOURCE_DOWN) else ""
    return results


def _problems(
    services: Services, vod_ids: Sequence[int], reviewer: str, dry_run: bool, override_cms_lock: bool
) -> Iterator[str]:
    settings = services.settings
    if not settings.ai_intros:
        yield INTROS_OFF
    if settings.dry_run and not dry_run:
        yield "DOUBAN_PIPELINE_DRY_RUN=true 时不写入：请保留 dry_run: true，或关闭演练模式"
    if not reviewer.strip():
        yield "reviewer: 请填写你的名字"
    elif reviewer.strip().casefold() == PIPELINE:
        yield f"reviewer: {PIPELINE} 代表自动写入，请填写你的名字"
    if not vod_ids:
        yield "vod_ids: 至少填写一部影片"
    for vod_id, times in Counter(vod_ids).items():
        if times > 1:
            yield f"影片 {vod_id}：写了 {times} 次"
    with reading(services.engine) as connection:
        rows = services.cms.rows(connection, list(vod_ids))
        states = state_rows(connection, services.tables, vod_ids)
    for vod_id in dict.fromkeys(vod_ids):
        row, state = rows.get(vod_id), states.get(vod_id)
        refusal = subject_refusal(row, state)
        if row is None:
            yield f"影片 {vod_id}：没有这部影片，请填写真实的 vod_id"
        elif refusal is not None:
            yield f"影片 {vod_id}：{refusal.sentence}"
        elif not override_cms_lock:
            locked = cms_lock_refusal(row, respect_vod_lock=settings.respect_vod_lock)
            if locked is not None:
                yield f"影片 {vod_id}：{locked.sentence}，{OVERRIDE_CMS_LOCK}"


@dataclass(frozen=True, slots=True)
class _RewriteOrder:
    """One launch of the job."""

    services: Services
    change_log: ChangeLog
    ledger: IntroLedger
    author: Author
    reviewer: str
    note: str
    dry_run: bool
    override_cms_lock: bool

    def rewrite(self, vod_id: int) -> RewriteResult:
        row, state = self._read_rows(vod_id)
        refusal = subject_refusal(row, state)
        if refusal is not None:
            return RewriteResult(vod_id, "", "skipped", reason=refusal.sentence)
        assert row is not None
        assert state is not None
        title = readable(row["vod_name"])
        sheet = self.author.facts(row, state["vod_douban_id"])
        unwritable = sheet_refusal(sheet, self.services.settings)
        if unwritable:
            return RewriteResult(vod_id, title, "skipped", reason=unwritable)
        draft = self._draft(vod_id, sheet, state["vod_douban_id"])
        if draft.violations:
            return RewriteResult(vod_id, title, "refused", draft.text, violation_texts(draft.violations))
        if self.dry_run:
            return RewriteResult(vod_id, title, "shown", draft.text)
        return self._write(row, draft, title, state["vod_douban_id"])

    def _draft(self, vod_id: int, sheet: FactSheet, douban_id: int) -> IntroDraft:
        shown = None if self.dry_run else self.ledger.previewed(vod_id, sheet)
        if shown is not None:
            # A text that passed when it was shown may be similar to an intro that was written since.
            text, violations = self.author.check(vod_id, sheet, shown["intro_text"])
            draft = IntroDraft(shown["intro_id"], text, violations, sheet, shown["model"], shown["snapshot_id"])
            if not violations:
                return draft
            self.ledger.refuse(draft.intro_id, violation_texts(violations))
        occasion = Occasion(vod_id, douban_id, self.change_log.run_id)
        return self.author.write(occasion, sheet, max_age=None)

    def _write(self, row: RowMapping, draft: IntroDraft, title: str, douban_id: int) -> RewriteResult:
        vod_id = row["vod_id"]
        refusal = subject_refusal(*self._read_rows(vod_id), douban_id=douban_id)
        if refusal is not None:
            self.ledger.refuse(draft.intro_id, refusal.sentence)
            return RewriteResult(vod_id, title, "skipped", draft.text, refusal.sentence)
        self.ledger.keep_marks({draft.intro_id: marks(draft.text, draft.sheet)})
        change = intro_change(
            row,
            draft,
            self.services.cms,
            self.services.clock.now(),
            reason=self.note.strip()[:200] or "重写简介",
            operator=self.reviewer.strip()[:64],
            automatic=False,
            override_cms_lock=self.override_cms_lock,
        )
        [outcome] = self.change_log.write([change])
        if outcome.state is ChangeState.APPLIED:
            return RewriteResult(vod_id, title, "written", draft.text, change_id=outcome.change_id)
        return RewriteResult(vod_id, title, "skipped", draft.text, outcome.reason)

    def _read_rows(self, vod_id: int) -> tuple[RowMapping | None, RowMapping | None]:
        with reading(self.services.engine) as connection:
            row = self.services.cms.rows(connection, [vod_id]).get(vod_id)
            return row, state_rows(connection, self.services.tables, [vod_id]).get(vod_id)
