"""A slot from its claim to its end: ingest, analyse, find, report; another run can repeat each part.

Errors of a source are stored in a row and never raised, so that no upstream failure prevents the report. A slot ends in
one transaction, which stores its status and the outbox messages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection

from douban_pipeline.core.database import reading, run_patiently
from douban_pipeline.core.owner import owner_name
from douban_pipeline.digest import findings
from douban_pipeline.digest.analysis import SLOT_MINUTES, Analyser, AnalysisReport
from douban_pipeline.digest.daily_report import MODEL_TIME, MadeReport, make_report
from douban_pipeline.digest.ingestion import Ingest, IngestReport
from douban_pipeline.digest.push.outbox import enqueue
from douban_pipeline.digest.rubrics import RubricError
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import SlotKey, early_refusal, newest_moment, push_refusal
from douban_pipeline.digest.store import analyses, items, slots
from douban_pipeline.digest.store.slots import ClaimedSlot, SlotClaim
from douban_pipeline.digest.types import Finding, SlotRow, SlotStatus

logger = logging.getLogger(__name__)

_RENEW_EVERY = 6
"""A lease is renewed after a sixth of its duration."""


class TooEarly(Exception):  # noqa: N818 (the name states the problem)
    """The slot is not due yet; running it now would suppress the real one."""


@dataclass(frozen=True, slots=True)
class EndedSlot:
    """How a slot ended: its status and reason, its findings, and the number of new messages."""

    status: SlotStatus
    error: str
    findings: Sequence[Finding]
    messages: int
    push_refusal: str


@dataclass
class SlotWork:
    """The work of one slot by one run.

    Attributes:
        services: The services.
        key: The slot.
        dagster_run_id: Id of the run.
        backfill: Whether the run belongs to a backfill, which never pushes.
    """

    services: DigestServices
    key: SlotKey
    dagster_run_id: str
    backfill: bool = False
    _claimed: ClaimedSlot | None = field(default=None, repr=False)
    _renewed: datetime | None = field(default=None, repr=False)

    @property
    def owner(self) -> str:
        """The name under which this run leases the slot."""
        return owner_name(self.dagster_run_id)[:160]

    @property
    def is_report(self) -> bool:
        """Whether it is the slot that ends the day."""
        return self.key.slot == self.services.settings.report_slot

    @property
    def run_id(self) -> int:
        """The id of the slot's row."""
        assert self._claimed is not None
        return self._claimed.run_id

    @property
    def _lease(self) -> timedelta:
        return self.services.lease

    @property
    def push_refusal(self) -> str:
        """Why the slot would send nothing if it ran now; empty if it would send."""
        services = self.services
        return push_refusal(self.key, services.now(), services.settings.zone, backfill=self.backfill) or ""

    @property
    def _until(self) -> datetime | None:
        settings, now = self.services.settings, self.services.now()
        pushes = self._claimed is not None and self._claimed.pushes
        return newest_moment(self.key, settings.schedule_slots, now, settings.zone, pushes=pushes)

    def begin(self) -> ClaimedSlot:
        """Claim the slot, or return why there is nothing to do.

        Raises:
            TooEarly: It is not due yet.
        """
        services, zone = self.services, self.services.settings.zone
        if refusal := early_refusal(self.key, services.now(), zone):
            raise TooEarly(refusal)

        def claim(connection: Connection) -> ClaimedSlot:
            claimed = slots.claim(
                connection,
                self.key.run_date,
                self.key.slot,
                scheduled_at=self.key.scheduled_at(zone),
                owner=self.owner,
                now=services.now(),
                lease=self._lease,
                pushes=not self.push_refusal,
                dagster_run_id=self.dagster_run_id[:64],
            )
            if claimed.died:
                items.release_all(connection, claimed.died, services.now())
            return claimed

        self._claimed = run_patiently(services.engine, claim, services.clock)
        return self._claimed

    # --- the parts

    def ingest(self) -> IngestReport:
        """Ingest articles."""
        begun = self.services.now()
        self._note("ingest", window_end=begun)
        report = Ingest(self.services, self.run_id, self._renew, self._until).run()
        start = report.window_start or begun - self.services.settings.window
        self._note("ingest", window_start=start, extended_accounts=len(report.extended))
        problems = {"ingest_failed": report.failed, "ingest_problems": report.problems[:20], "alert": report.alert}
        self._count({**report.counters(), **problems})
        return report

    def analyse(self) -> AnalysisReport:
        """Analyse waiting articles."""
        self._note("analyse")
        services = self.services
        deadline = services.now() + timedelta(minutes=SLOT_MINUTES)
        try:
            report = Analyser(services, self.run_id, self.owner, deadline, self._renew, self._until).run()
        except RubricError as error:
            report = AnalysisReport(ended=str(error), alert=True, refused=True)
        self._count(report.counters())
        problems = [f"{count} 篇：{why}" for why, count in report.problems.most_common(5)]
        self._count({"analysis_problems": problems, "calls_alert": report.ended if report.alert else ""})
        return report

    def end(self) -> EndedSlot:
        """End a slot of the day: its findings, its status, and the message about them, in one transaction."""
        return self._end(self._finding_message)

    def found(self) -> list[Finding]:
        """Return the slot's findings."""
        with reading(self.services.engine) as connection:
            rows = analyses.of_run(connection, self.run_id)
        return findings.reaching(rows, self.services.settings.push_score_threshold)

    def report(self) -> tuple[MadeReport, EndedSlot]:
        """End the day: its report, made and stored, then the slot's status and the message, in one transaction."""
        # The lease is not renewed while the model writes.
        self._note("report", longer=MODEL_TIME + self.services.longest_call)
        row = self._row()
        # A model that refuses all calls, or did not answer one in time, is not waited for again.
        unanswered = row.counters.get("calls_ended") and not row.counters.get("analysed")
        use_model = not row.counters.get("calls_refused") and not unanswered
        # The problems of this slot are not in its row yet.
        error = _error_of(row)
        made = make_report(
            self.services,
            self.key.run_date,
            use_model=use_model,
            problems=[f"{self.key.slot}：{error}"] if error else [],
            ending=self.key.slot if _status_of(row) is SlotStatus.SUCCESS else "",
        )
        return made, self._end(partial(self._report_message, made))

    # --- ending

    def _end(self, message: Callable[[Connection, Sequence[Finding], datetime], int]) -> EndedSlot:
        services = self.services
        threshold = services.settings.push_score_threshold

        def end(connection: Connection) -> EndedSlot:
            now = services.now()
            row = slots.find(connection, self.key.run_date, self.key.slot)
            assert row is not None
            found = findings.reaching(analyses.of_run(connection, self.run_id), threshold)
            error, status = _error_of(row), _status_of(row)
            best = max((each.score for each in analyses.of_run(connection, self.run_id)), default=None)
            counters = {"findings": len(found), "best_score": best}
            slots.add_counters(connection, self.run_id, self.owner, counters)
            slots.finish(connection, self.run_id, self.owner, status, error, now)
            sent = 0
            if row.pushes:
                sent += message(connection, found, now)
                sent += self._alert(connection, row, now)
            refusal = "" if row.pushes else self.push_refusal or "补跑或过晚，不推送"
            return EndedSlot(status, error, found, sent, refusal)

        return run_patiently(services.engine, end, services.clock)

    def _finding_message(self, connection: Connection, found: Sequence[Finding], now: datetime) -> int:
        if not found:
            return 0
        return self._enqueue(
            connection,
            "finding",
            self.services.analysis_address(found[0].analysis_id),
            findings.finding_title(self.key.slot, found),
            findings.finding_body(found),
            now,
        )

    def _report_message(
        self, made: MadeReport, connection: Connection, _found: Sequence[Finding], now: datetime
    ) -> int:
        url = self.services.daily_address(self.key.run_date)
        return self._enqueue(connection, "report", url, made.title, made.body, now)

    def _alert(self, connection: Connection, row: SlotRow, now: datetime) -> int:
        alert = row.counters.get("calls_alert") or row.counters.get("alert")
        if not alert and _status_of(row) is SlotStatus.FAILED:
            alert = f"{_what_failed(row)}：{_error_of(row) or '原因见运行日志'}"
        if not alert:
            return 0
        url = self.services.daily_address(self.key.run_date)
        title, operators = f"【告警】{self.key.slot} 需要处理", self.services.settings.operator_channels
        return self._enqueue(connection, "alert", url, title, str(alert), now, operators)

    def _enqueue(
        self,
        connection: Connection,
        push_type: str,
        url: str,
        title: str,
        body: str,
        now: datetime,
        channels: Sequence[str] | None = None,
    ) -> int:
        return enqueue(
            connection,
            report_date=self.key.run_date,
            slot=self.key.slot,
            push_type=push_type,
            target_url=url,
            title=title,
            body=body,
            channels=self.services.settings.channels if channels is None else channels,
            now=now,
        )

    # --- its row

    def _row(self) -> SlotRow:
        with reading(self.services.engine) as connection:
            row = slots.find(connection, self.key.run_date, self.key.slot)
        assert row is not None
        return row

    def _renew(self) -> None:
        now = self.services.now()
        if self._renewed is None or now >= self._renewed + self._lease / _RENEW_EVERY:
            self._note()

    def _note(self, stage: str = "", longer: timedelta = timedelta(0), **changes: Any) -> None:
        now, lease = self.services.now(), self._lease + longer
        self._renewed = now
        values = {**({"stage": stage} if stage else {}), **changes}
        run_patiently(
            self.services.engine,
            lambda connection: slots.renew(connection, self.run_id, self.owner, now, lease, **values),
            self.services.clock,
        )

    def _count(self, counters: dict[str, Any]) -> None:
        """Store counters; what a run before this one stored under other names stays, so empty values are stored too."""
        run_patiently(
            self.services.engine,
            lambda connection: slots.add_counters(connection, self.run_id, self.owner, counters),
            self.services.clock,
        )


def run_slot(services: DigestServices, key: SlotKey, run_id: str, *, backfill: bool = False) -> EndedSlot | SlotClaim:
    """Run a whole slot in this process, without Dagster; return how it ended, or why there was nothing to do.

    Raises:
        TooEarly: It is not due yet.
    """
    work = SlotWork(services, key, run_id, backfill)
    claimed = work.begin()
    if claimed.claim is not SlotClaim.TAKEN:
        return claimed.claim
    work.ingest()
    work.analyse()
    return work.report()[1] if work.is_report else work.end()


def _status_of(row: SlotRow) -> SlotStatus:
    """Return how a slot ended: it failed if nothing could be read, or if every analysis failed, apart from those that
    nobody can mend."""
    counters = row.counters
    wanted, analysed = counters.get("analyses_wanted", 0) - counters.get("settled", 0), counters.get("analysed", 0)
    if counters.get("ingest_failed") or (wanted and not analysed):
        return SlotStatus.FAILED
    return SlotStatus.SUCCESS


def _what_failed(row: SlotRow) -> str:
    if row.counters.get("ingest_failed"):
        return "没有读到任何来源"
    return f"{row.counters.get('analyses_wanted', 0)} 篇文章都没能分析"


def _error_of(row: SlotRow) -> str:
    counters = row.counters
    parts = [*counters.get("ingest_problems", ())]
    if counters.get("calls_ended"):
        parts.append(f"模型调用停止：{counters['calls_ended']}（剩 {counters.get('left', 0)} 篇）")
    parts += counters.get("analysis_problems", ())
    return "；".join(dict.fromkeys(parts))
