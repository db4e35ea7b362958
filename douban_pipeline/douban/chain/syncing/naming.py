"""Checking a subject that a person named, where that could not be done when the decision was recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, update

from douban_pipeline.core.database import transactions
from douban_pipeline.core.errors import SourceError
from douban_pipeline.douban.chain.attempts import ILL, PAUSE, worth_asking_at
from douban_pipeline.douban.chain.syncing.subject_check import conflicts_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.sources.errors import SubjectMismatch, SubjectMissing
from douban_pipeline.douban.store.decisions import NAMING

LONGEST_WAIT = timedelta(hours=6)
"""A decision whose subject cannot be asked for is tried at least this often."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A decision cannot be carried out yet: until when, and why."""

    until: datetime
    reason: str


@dataclass(slots=True)
class Naming:
    """The checks of one run.

    Attributes:
        services: Database, source and settings.
        deadline: After this nobody is asked any more.
    """

    services: Services
    deadline: datetime
    _ill: Wait | None = field(default=None, init=False)

    def why_not(self, decision: RowMapping, row: RowMapping) -> str | Wait:
        """Return why a subject must not be linked to a video, empty if it may; a `Wait` where nobody can tell yet.

        A source that is ill concludes nothing: the decision waits for it, and the run asks no more.
        """
        if decision["action"] not in NAMING or decision["checked_at"] is not None:
            return ""
        now, douban_id = self.services.clock.now(), decision["douban_id"]
        if self._ill is not None:
            return self._ill
        if now >= self.deadline:
            # The next run goes on at once.
            return Wait(now, "本次运行的时间已用完，下次运行核对条目")
        try:
            told = conflicts_of(self.services, row, douban_id)
        except SubjectMissing:
            return f"豆瓣没有条目 {douban_id}"
        except SubjectMismatch as error:
            return f"核对条目 {douban_id} 时得到另一个条目（{error}），它可能已并入别的条目，请改用新的 ID"
        except SourceError as error:
            reason = f"暂时无法核对条目：{error}"
            if isinstance(error, ILL):
                self._ill = Wait(worth_asking_at(error, now), reason)
                return self._ill
            # As long again as it waited already: a subject that keeps failing is not asked for every few minutes.
            return Wait(now + min(max(now - decision["created_at"], PAUSE), LONGEST_WAIT), reason)
        if told and not decision["accept_conflicts"]:
            return f"{told}；确认无误时请设 accept_conflicts: true 重新决定"
        self._note_checked(decision, now)
        return ""

    def _note_checked(self, decision: RowMapping, now: datetime) -> None:
        table = self.services.tables.decision
        for transaction in transactions(self.services.engine):
            with transaction as connection:
                connection.execute(
                    update(table).where(table.c.decision_id == decision["decision_id"]).values(checked_at=now)
                )
