"""The table of intros: every call of the language model with its cost, its text and its outcome.

A row is stored as soon as an answer is received, before anything is written to the CMS, so that no cost is lost if the
run dies. From then on its state follows the change that writes it (`writes.intro_changes`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Engine, RowMapping, delete, func, insert, or_, select, update

from douban_pipeline.core.clock import Clock, day_of, midnight
from douban_pipeline.core.database import reading, run_statement, run_transaction
from douban_pipeline.core.llm import Completion, ModelUsage
from douban_pipeline.douban.intros.factguard import Violation
from douban_pipeline.douban.intros.facts import FactSheet
from douban_pipeline.douban.intros.prompt import PROMPT_VERSION
from douban_pipeline.douban.intros.proofs import Reading
from douban_pipeline.douban.intros.second_reading import READING_VERSION
from douban_pipeline.douban.store.states import IntroState
from douban_pipeline.douban.store.tables import OwnTables
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.store.tasks import shard_of

UNJUDGED = "尚未核对"
"""Reason of an answer that the guard has not checked yet."""

UNWRITTEN = "通过核对，尚未写入"
"""Reason of a text that passed the guard and is not written yet."""

_SETTLED = (IntroState.WRITTEN, IntroState.WITHDRAWN)
"""States that only the change that wrote the text alters."""

PREVIEW_AGE = timedelta(days=1)
"""How long a text that was shown to a person may be written unchanged."""

_MOST_OTHERS = 20
"""Most other intros that a text is fully compared with: those that share the most marks."""


def reader_name(model: str) -> str:
    """Return what a reading is filed under: the version of its messages, and the model that answered."""
    return f"{READING_VERSION} {model}"[:160]


@dataclass(frozen=True, slots=True)
class Occasion:
    """The occasion of a call of the model: the video, its subject, the run, and the task if there is one."""

    vod_id: int
    douban_id: int
    run_id: str
    task_id: int | None = None


@dataclass(frozen=True, slots=True)
class IntroCosts:
    """Costs of texts, with their second readings: number of calls, US dollars, and prompt and completion tokens."""

    calls: int = 0
    cost_usd: float = 0.0
    tokens: int = 0


class IntroLedger:
    """The stored intros.

    Args:
        engine: Database of our tables.
        tables: Our tables.
        clock: Source of the current time.
        zone: The site's time zone, in which days begin.
        queue: The run's view of the tasks, if intros are written for tasks.
    """

    def __init__(
        self, engine: Engine, tables: OwnTables, clock: Clock, zone: ZoneInfo, queue: TaskQueue | None = None
    ) -> None:
        self.engine = engine
        self.intro = tables.intro
        self.mark = tables.intro_mark
        self.clock = clock
        self.zone = zone
        self.queue = queue

    def record(
        self,
        occasion: Occasion,
        sheet: FactSheet,
        usage: ModelUsage,
        *,
        reason: str = UNJUDGED,
        text: str | None = None,
        snapshot_id: int | None = None,
    ) -> int:
        """Store an answer of the model as unusable until it is judged, and return its id; the same one only once."""
        intro = self.intro

        def store(connection: Connection) -> int:
            if snapshot_id is not None:
                # A run died after it had paid: the archive returned the same answer again.
                known = (intro.c.vod_id == occasion.vod_id, intro.c.snapshot_id == snapshot_id)
                found = connection.execute(select(intro.c.intro_id).where(*known)).scalar()
                if found is not None:
                    return int(found)
            values = {
                "vod_id": occasion.vod_id,
                "shard": shard_of(occasion.vod_id),
                "douban_id": occasion.douban_id,
                "task_id": occasion.task_id,
                "run_id": occasion.run_id,
                "state": IntroState.FAILED,
                "reason": reason[:500],
                "intro_text": text,
                "model": usage.model[:128],
                "provider": usage.provider[:64],
                "prompt_version": PROMPT_VERSION,
                "fact_sheet": sheet.to_payload(),
                "fact_sheet_hash": sheet.hash,
                "cost_usd": usage.cost_usd,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "snapshot_id": snapshot_id,
                "created_at": self.clock.now(),
            }
            key = connection.execute(insert(intro).values(values)).inserted_primary_key
            assert key is not None
            return int(key[0])

        return run_transaction(self.engine, store)

    def add_reading(self, intro_id: int, answer: Completion, reading: Reading) -> None:
        """Record the second reading of a text, by whom it was, and its cost; safe to repeat."""
        intro = self.intro
        values = {
            "reading": reading.to_payload(),
            "reader": reader_name(answer.model),
            "reading_snapshot_id": answer.snapshot_id,
            "cost_usd": intro.c.cost_usd + answer.cost_usd,
            "prompt_tokens": intro.c.prompt_tokens + answer.prompt_tokens,
            "completion_tokens": intro.c.completion_tokens + answer.completion_tokens,
        }
        # After a run that died after it had paid, the archive returns the same answer again.
        unread = or_(intro.c.reading_snapshot_id.is_(None), intro.c.reading_snapshot_id != answer.snapshot_id)
        run_statement(self.engine, update(intro).where(intro.c.intro_id == intro_id, unread).values(**values))

    def judge(
        self,
        intro_id: int,
        text: str,
        violations: Sequence[Violation],
        *,
        cuts: Sequence[Violation] = (),
        task_id: int | None = None,
    ) -> bool:
        """Record the violations of the guard and the second reading in a text, in the form that the CMS would store.

        Nothing changes if the lease of the task was lost: the run that has it now gets the same answer from the
        archive, and may have written it already.

        Args:
            intro_id: The text's row.
            text: The text.
            violations: Its violations.
            cuts: What was cut from it, and why.
            task_id: The task that it was written for, if any.

        Returns:
            Whether the task was still this run's; true if there is none.
        """
        values = {
            "state": IntroState.REFUSED if violations else IntroState.PREVIEW,
            "reason": violation_texts(violations)[:500] or UNWRITTEN,
            "violations": [{"code": item.code, "text": item.text} for item in (*violations, *cuts)],
            "intro_text": text,
        }
        return self._set(intro_id, values, task_id)

    def refuse(self, intro_id: int, reason: str, *, task_id: int | None = None) -> bool:
        """Record that a text which passed the guard is not written, and why; see `judge`."""
        return self._set(intro_id, {"state": IntroState.REFUSED, "reason": reason[:500]}, task_id)

    def _set(self, intro_id: int, values: Mapping[str, Any], task_id: int | None) -> bool:
        def change(connection: Connection) -> bool:
            if task_id is not None and self.queue is not None and not self.queue.holds(connection, task_id):
                return False
            # A run that lost the task may have written the text since.
            this = (self.intro.c.intro_id == intro_id, self.intro.c.state.not_in(_SETTLED))
            connection.execute(update(self.intro).where(*this).values(**values))
            return True

        return run_transaction(self.engine, change)

    def keep_marks(self, marks: Mapping[int, Collection[int]]) -> None:
        """Store the marks of intros that are about to be written, by intro; safe to repeat."""
        rows = [{"mark": mark, "intro_id": intro_id} for intro_id, kept in marks.items() for mark in sorted(set(kept))]

        def replace(connection: Connection) -> None:
            connection.execute(delete(self.mark).where(self.mark.c.intro_id.in_(list(marks))))
            if rows:
                connection.execute(insert(self.mark), rows)

        run_transaction(self.engine, replace)

    def texts_near(self, marks: Collection[int], *, vod_id: int, before: int | None = None) -> list[str]:
        """Return other videos' written intros that share the most marks, at most `_MOST_OTHERS`.

        Args:
            marks: The marks of the text to compare.
            vod_id: Its video.
            before: Only intros with a smaller id than this.
        """
        intro, mark = self.intro, self.mark
        conditions = [
            mark.c.mark.in_(sorted(marks)),
            intro.c.state == IntroState.WRITTEN,
            intro.c.vod_id != vod_id,
        ]
        if before is not None:
            conditions.append(intro.c.intro_id < before)
        query = (
            select(intro.c.intro_id)
            .join(mark, mark.c.intro_id == intro.c.intro_id)
            .where(*conditions)
            .group_by(intro.c.intro_id)
            .order_by(func.count().desc(), intro.c.intro_id)
            .limit(_MOST_OTHERS)
        )
        with reading(self.engine) as connection:
            near = list(connection.execute(query).scalars())
            texts = connection.execute(select(intro.c.intro_text).where(intro.c.intro_id.in_(near)))
            return [text for text in texts.scalars() if text]

    def previewed(self, vod_id: int, sheet: FactSheet) -> RowMapping | None:
        """Return the newest text of `PREVIEW_AGE` if it passed the guard, was only shown, and has the same facts."""
        intro = self.intro
        query = (
            select(intro)
            .where(
                intro.c.vod_id == vod_id,
                intro.c.task_id.is_(None),
                intro.c.created_at >= self.clock.now() - PREVIEW_AGE,
            )
            .order_by(intro.c.intro_id.desc())
            .limit(1)
        )
        with reading(self.engine) as connection:
            row = connection.execute(query).mappings().one_or_none()
        same = row is not None and (row["fact_sheet_hash"], row["prompt_version"]) == (sheet.hash, PROMPT_VERSION)
        return row if row is not None and same and row["state"] == IntroState.PREVIEW else None

    def spent_today(self) -> float:
        """Return the US dollars spent since the site's day began, by all runs."""
        query = select(func.coalesce(func.sum(self.intro.c.cost_usd), 0.0)).where(
            self.intro.c.created_at >= self.day_began()
        )
        with reading(self.engine) as connection:
            return float(connection.execute(query).scalar_one())

    def day_began(self) -> datetime:
        """Return when the site's day began (UTC)."""
        return midnight(day_of(self.clock.now(), self.zone).date, self.zone)

    def day_ends(self) -> datetime:
        """Return when the site's next day begins (UTC)."""
        return day_of(self.clock.now(), self.zone).ends_at

    def of_run(self, run_id: str) -> list[RowMapping]:
        """Return the answers that a run got, the oldest first."""
        query = select(self.intro).where(
            self.intro.c.run_id == run_id, self.intro.c.created_at >= self.clock.now() - timedelta(days=2)
        )
        with reading(self.engine) as connection:
            return list(connection.execute(query.order_by(self.intro.c.intro_id)).mappings())


def violation_texts(violations: Iterable[Violation]) -> str:
    """Return violations as one line of text for people."""
    return "；".join(violation.text for violation in violations)


def costs_of(rows: Iterable[RowMapping]) -> IntroCosts:
    """Return the costs of the texts of ``rows``."""
    listed = list(rows)
    return IntroCosts(
        len(listed),
        sum(row["cost_usd"] for row in listed),
        sum(row["prompt_tokens"] + row["completion_tokens"] for row in listed),
    )
