"""Checking a subject that a person named, if that was not done when the decision was recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, update

from douban_pipeline.core.database import run_statement
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.decisions.refusals import conflicts_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.errors import RETRY_AFTER, SOURCE_DOWN, SubjectMismatch, SubjectMissing, retry_time
from douban_pipeline.douban.store.decisions import NAMING, Decision

LONGEST_WAIT = timedelta(hours=6)
"""A decision whose subject cannot be asked for is tried at least this often."""


@dataclass(frozen=True, slots=True)
class Deferral:
    """A decision cannot be applied yet: until when, and why."""

    until: datetime
    reason: str


@dataclass(slots=True)
class SubjectChecks:
    """The checks of one run.

    Attributes:
        services: Database, source and settings.
        deadline: After this nobody is asked any more.
    """

    services: Services
    deadline: datetime
    _source_down: Deferral | None = field(default=None, init=False)

    def refusal(self, decision: Decision, row: RowMapping) -> str | Deferral | None:
        """Return why a subject must not be linked to a video, None if it may, a `Deferral` if that is not known yet.

        While the source is down nothing is concluded: the decision waits for it, and the run asks no more.
        """
        if decision.action not in NAMING or decision.checked_at is not None:
            return None
        now, douban_id = self.services.clock.now(), decision.douban_id
        if self._source_down is not None:
            return self._source_down
        if now >= self.deadline:
            # The next run goes on at once.
            return Deferral(now, "本次运行的时间已用完，下次运行核对条目")
        try:
            conflicts = conflicts_of(self.services, row, douban_id)
        except SubjectMissing:
            return f"豆瓣没有条目 {douban_id}"
        except SubjectMismatch as error:
            return f"核对条目 {douban_id} 时得到另一个条目（{error}），它可能已并入别的条目，请改用新的 ID"
        except SourceError as error:
            reason = f"暂时无法核对条目：{error}"
            if isinstance(error, SOURCE_DOWN):
                self._source_down = Deferral(retry_time(error, now), reason)
                return self._source_down
            # As long again as it waited already: a subject that keeps failing is not asked for every few minutes.
            return Deferral(now + min(max(now - (decision.created_at or now), RETRY_AFTER), LONGEST_WAIT), reason)
        if conflicts and not decision.accept_conflicts:
            return f"{conflicts}；确认无误时请设 accept_conflicts: true 重新决定"
        self._record_check(decision, now)
        return None

    def _record_check(self, decision: Decision, now: datetime) -> None:
        table = self.services.tables.decision
        checked = update(table).where(table.c.decision_id == decision.decision_id).values(checked_at=now)
        run_statement(self.services.engine, checked)
