"""Writes an intro: facts, model, guard, second reading, and a second try that names the violations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from sqlalchemy import RowMapping

from douban_pipeline.cms.maccms import Cms
from douban_pipeline.cms.values import blurb, content_html, content_text, storable
from douban_pipeline.core.errors import QuotaSpent
from douban_pipeline.core.llm import SOURCE, Completion, ModelAnswerUnusable, ModelUsage
from douban_pipeline.douban.intros import second_reading
from douban_pipeline.douban.intros.factguard import (
    LengthLimits,
    Violation,
    candidates_for_people,
    count_han,
    inspect,
    marks,
)
from douban_pipeline.douban.intros.facts import FactSheet, fact_sheet
from douban_pipeline.douban.intros.ledger import IntroLedger, Occasion
from douban_pipeline.douban.intros.prompt import PROMPT_VERSION, SCHEMA, SCHEMA_NAME, messages
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.writes.changes import Change
from douban_pipeline.douban.writes.intro_changes import INTRO
from douban_pipeline.matching.site_videos import video_facts

FACTS_AGE = timedelta(days=30)
"""Greatest age of Douban's answer for facts; that of a synced video is nearly always younger."""

TRIES = 2
"""Number of tries: a text that the guard refused is written once more, with its violations named."""

_BLURB_WIDTH = 255


@dataclass(frozen=True, slots=True)
class IntroDraft:
    """A text that the model wrote, with the guard's result.

    Attributes:
        intro_id: Its row in the ledger.
        text: The text as it is read back from the CMS.
        violations: The guard's violations; empty if it passed.
        sheet: The facts it was written from.
        model: The model that wrote it.
        snapshot_id: The archived answer.
    """

    intro_id: int
    text: str
    violations: tuple[Violation, ...]
    sheet: FactSheet
    model: str
    snapshot_id: int | None


NO_SOURCE = "原简介太短，没有可改写的内容"
"""Beginning of the reason of every video that got no intro because its source text is too short."""


def sheet_refusal(sheet: FactSheet, settings: Settings) -> str:
    """Return why no intro is written from a fact sheet, in Chinese; "" if one may be written.

    A model that gets a title and a cast but no plot invents one.
    """
    if not sheet.enough:
        return "资料不足：至少需要片名和类型"
    length, least = count_han(sheet.synopsis), settings.intro_min_source_han
    if length < least:
        return f"{NO_SOURCE}：豆瓣简介共 {length} 个汉字，至少 {least} 个（DOUBAN_PIPELINE_INTRO_MIN_SOURCE_HAN）"
    return ""


def limits_of(settings: Settings) -> LengthLimits:
    """Return the length limits of an intro."""
    return LengthLimits(settings.intro_min_han, settings.intro_max_han)


def ledger_of(services: Services, queue: TaskQueue | None = None) -> IntroLedger:
    """Return the ledger of this site; ``queue`` is the run's view of the tasks, if intros are written for tasks."""
    return IntroLedger(services.engine, services.tables, services.clock, services.settings.zone, queue)


@dataclass(slots=True)
class Author:
    """Gets intros from the model and checks them with the guard. Safe to share between threads.

    Attributes:
        services: Database, sources and settings.
        ledger: Records every answer.
    """

    services: Services
    ledger: IntroLedger
    _accepted: dict[int, tuple[frozenset[int], str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def facts(self, row: RowMapping, douban_id: int) -> FactSheet:
        """Return the fact sheet of a linked video, and store its people as known.

        Raises:
            SourceError: Douban's answer is not in the archive any more, and a new request failed.
        """
        services = self.services
        answer = services.douban.subject(douban_id, max_age=FACTS_AGE)
        sheet = fact_sheet(video_facts(row, services.cms, services.categories), answer.record, douban_id)
        services.people.remember(sheet.people)
        return sheet

    def write(self, occasion: Occasion, sheet: FactSheet, *, max_age: timedelta | None) -> IntroDraft:
        """Request an intro, and once more if the guard refuses it; return the last draft.

        Args:
            occasion: What it is for.
            sheet: The facts.
            max_age: Greatest age of an archived answer for this occasion, so that after a killed run nothing is paid
                for twice.

        Raises:
            QuotaSpent: The day's budget is spent.
            SourceError: There was no usable answer; its cost is recorded.
        """
        key = f"intro:{occasion.vod_id}:{occasion.task_id or occasion.run_id}:{sheet.hash}:{PROMPT_VERSION}"
        violations: tuple[Violation, ...] = ()
        for number in range(1, TRIES + 1):
            completion = self._ask(occasion, sheet, violations, f"{key}:{number}", max_age)
            written = str(completion.content["intro"])
            intro_id = self.ledger.record(
                occasion, sheet, _usage(completion), text=written, snapshot_id=completion.snapshot_id
            )
            text, violations = self.check(occasion.vod_id, sheet, written)
            cuts: tuple[Violation, ...] = ()
            if not violations:
                text, violations, cuts = self._read_again(occasion, intro_id, sheet, text, f"{key}:{number}", max_age)
            ours = self.ledger.judge(intro_id, text, violations, cuts=cuts, task_id=occasion.task_id)
            draft = IntroDraft(intro_id, text, violations, sheet, completion.model, completion.snapshot_id)
            if not violations or not ours:
                # Without the task, the second try is left to the run that has it.
                break
        return draft

    def check(self, vod_id: int, sheet: FactSheet, text: str) -> tuple[str, tuple[Violation, ...]]:
        """Return a text as the CMS would store it, and the guard's violations in the original and the stored form."""
        stored = as_stored(text, self.services.cms)
        # One at a time: of two similar texts the second must be compared with the first.
        with self._lock:
            for form in dict.fromkeys((text.strip(), stored)):
                violations = self._violations(vod_id, sheet, form)
                if violations:
                    return stored, violations
            self._accepted[vod_id] = (frozenset(marks(stored, sheet)), stored)
        return stored, ()

    def _read_again(
        self, occasion: Occasion, intro_id: int, sheet: FactSheet, text: str, key: str, max_age: timedelta | None
    ) -> tuple[str, tuple[Violation, ...], tuple[Violation, ...]]:
        """Return what the second reading leaves of a text that passed the guard, its violations, and what was cut.

        What is not backed is cut if the rest stands by itself and passes the guard; else the text is refused. The
        answer and its cost are recorded. A text that was paid for is read even if the day's budget is spent, which only
        new texts wait for.
        """
        asked = second_reading.messages(text, sheet)
        key = f"{key}:{second_reading.READING_VERSION}"
        cuts: tuple[Violation, ...] = ()
        try:
            answer = self._complete(
                occasion,
                sheet,
                asked,
                second_reading.SCHEMA,
                second_reading.SCHEMA_NAME,
                key,
                max_age,
                problem_of=second_reading.problem_of,
            )
            reading = second_reading.read(text, sheet, answer.content)
            violations = reading.violations
            if violations and reading.shortened:
                shorter, refused = self.check(occasion.vod_id, sheet, reading.shortened)
                if not refused:
                    cuts, reading = reading.after_cutting()
                    text, violations = shorter, ()
            self.ledger.add_reading(intro_id, answer, reading)
        except BaseException:
            self._forget(occasion.vod_id)
            raise
        if violations:
            self._forget(occasion.vod_id)
        return text, violations, cuts

    def _forget(self, vod_id: int) -> None:
        """Remove a text that passed the guard but will not be written, so that others are not compared with it."""
        with self._lock:
            self._accepted.pop(vod_id, None)

    def _violations(self, vod_id: int, sheet: FactSheet, text: str) -> tuple[Violation, ...]:
        found = frozenset(marks(text, sheet))
        unwritten = [
            other for other_id, (shared, other) in self._accepted.items() if other_id != vod_id and shared & found
        ]
        others = [*self.ledger.texts_near(found, vod_id=vod_id), *unwritten]
        known = self.services.people.known(candidates_for_people(text))
        return tuple(inspect(text, sheet, known_people=known, others=others, limits=limits_of(self.services.settings)))

    def _ask(
        self,
        occasion: Occasion,
        sheet: FactSheet,
        violations: tuple[Violation, ...],
        key: str,
        max_age: timedelta | None,
    ) -> Completion:
        budget = self.services.settings.llm_budget_usd_per_day
        if self.ledger.spent_today() >= budget:
            raise QuotaSpent(SOURCE, f"今日预算 {budget:g} 美元已用完", self.ledger.day_ends())
        asked = messages(sheet, limits_of(self.services.settings), violations)
        return self._complete(occasion, sheet, asked, SCHEMA, SCHEMA_NAME, key, max_age)

    def _complete(
        self,
        occasion: Occasion,
        sheet: FactSheet,
        asked: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any],
        name: str,
        key: str,
        max_age: timedelta | None,
        problem_of: Callable[[dict[str, Any]], str] | None = None,
    ) -> Completion:
        """Call the model; the cost of an unusable answer is recorded."""
        try:
            return self.services.llm.complete(asked, schema, name=name, key=key, max_age=max_age, problem_of=problem_of)
        except ModelAnswerUnusable as error:
            self.ledger.record(occasion, sheet, error.usage, reason=str(error))
            raise


def as_stored(text: str, cms: Cms) -> str:
    """Return a text as it would be read back from ``vod_content`` of this site."""
    return content_text(content_html(_storable(text, cms)))


def intro_change(row: RowMapping, draft: IntroDraft, cms: Cms, now: datetime, **given: Any) -> Change:
    """Return the change that replaces the texts of ``row`` by a draft, and locks it.

    Args:
        row: The CMS row as it was read before the draft was written.
        draft: A draft that passed the guard.
        cms: Character sets and widths of this site.
        now: When it is written and locked.
        given: Further fields of the change; ``reason`` is put before the text about the model.
    """
    new = {
        "vod_content": content_html(_storable(draft.text, cms)),
        "vod_blurb": blurb(_storable(draft.text, cms, "vod_blurb"), column=cms.widths.get("vod_blurb", _BLURB_WIDTH)),
    }
    source = f"AI 简介：模型 {draft.model}，提示词 {PROMPT_VERSION}，事实表 {draft.sheet.hash}"
    why = "；".join(filter(None, (given.pop("reason", ""), source)))
    return Change(
        vod_id=row["vod_id"],
        action=INTRO,
        old={column: row[column] for column in new},
        new=new,
        state={
            "intro_locked": True,
            "intro_lock_time": now,
            "intro_ai_source": draft.model[:64],
            "intro_ai_last_at": now,
            "intro_ai_fail_count": 0,
            "intro_ai_last_fail_reason": "",
        },
        reason=why,
        snapshot_id=draft.snapshot_id,
        intro_id=draft.intro_id,
        **given,
    )


def _storable(text: str, cms: Cms, column: str = "vod_content") -> str:
    return storable(text, "utf8mb3" if column in cms.utf8mb3 else "utf8mb4").text


def _usage(completion: Completion) -> ModelUsage:
    return ModelUsage(
        completion.model,
        completion.provider,
        completion.cost_usd,
        completion.prompt_tokens,
        completion.completion_tokens,
    )
