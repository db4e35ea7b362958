"""Ensures that a day's report is sent, even if its slot failed, and alerts if no channel accepts it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import Connection, func, select

from douban_pipeline.core.database import reading, run_patiently
from douban_pipeline.digest.daily_report import MadeReport, failed_report, make_report
from douban_pipeline.digest.guards import DigestBreach, undelivered_reports
from douban_pipeline.digest.push.outbox import enqueue
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import days_to_watch
from douban_pipeline.digest.store import reports, slots
from douban_pipeline.digest.store.tables import notification_log
from douban_pipeline.digest.types import ReportState, SlotStatus

logger = logging.getLogger(__name__)

GRACE = timedelta(minutes=30)
"""How long after its hour a day's report must be in the outbox."""
_REMEDY = "请用 douban-pipeline digest push --test all 检查渠道；渠道恢复后日报会自动重发"


@dataclass(frozen=True, slots=True)
class Ensured:
    """Result for a day's report: it existed (``was_there``) or was made now; and the number of new messages."""

    day: date
    was_there: bool
    made: MadeReport | None = None
    messages: int = 0


def ensure_reports(services: DigestServices, grace: timedelta = GRACE, reason: str = "") -> list[Ensured]:
    """Ensure every report that should be in the outbox by now; safe to repeat at any time."""
    settings = services.settings
    days = days_to_watch(services.now(), settings.report_slot, grace, settings.zone)
    return [ensure_report(services, day, reason) for day in days]


def ensure_report(services: DigestServices, day: date, reason: str = "") -> Ensured:
    """Ensure that a day's report is in the outbox: the existing one, one made now, or a failure with its reason."""
    settings = services.settings
    slot = settings.report_slot
    if _is_there(services, day):
        _make_up_for(services, day)
        return Ensured(day, was_there=True)
    cause = reason or f"{slot} 时段没有按时结束"
    try:
        made = make_report(services, day, use_model=False, problems=[f"{slot}：{cause}（由看门狗补发）"])
    except Exception as error:
        # Any error: people are notified that the report failed, and why.
        logger.exception("the report of %s cannot be made", day)
        made = failed_report(services, day, [cause, f"{type(error).__name__}: {str(error)[:300]}"])

    def put_out(connection: Connection) -> int:
        now = services.now()
        slots.fail_abandoned(connection, day, slot, cause, now)
        return enqueue(
            connection,
            report_date=day,
            slot=slot,
            push_type="report",
            target_url=services.daily_address(day),
            title=made.title,
            body=made.body,
            channels=settings.channels,
            now=now,
        )

    return Ensured(day, False, made, run_patiently(services.engine, put_out, services.clock))


def _make_up_for(services: DigestServices, day: date) -> None:
    """Make a report that could not be made when it was due, since its page says to come back; no message is sent."""
    with reading(services.engine) as connection:
        report = reports.find(connection, day)
    if report is None or report.state != ReportState.FAILED.value:
        return
    try:
        make_report(services, day, use_model=False, problems=[f"{services.settings.report_slot}：日报补做于推送之后"])
    except Exception:
        logger.exception("the report of %s still cannot be made", day)
        return


def alert_undelivered(services: DigestServices) -> tuple[list[DigestBreach], int]:
    """Alert the operators of overdue reports that no channel accepted; safe to repeat at any time.

    The alert is a message of the outbox, so that it is retried and sent once a day's report. It goes to the webhook of
    the alerts alone: every other channel is one that did not accept the report.

    Returns:
        The overdue reports, and the number of new messages: 0 without a webhook.
    """
    settings = services.settings
    with reading(services.engine) as connection:
        found = list(undelivered_reports(services, connection))

    def put_out(connection: Connection) -> int:
        return sum(
            enqueue(
                connection,
                report_date=date.fromisoformat(breach.day),
                slot=breach.what,
                push_type="undelivered",
                target_url=services.daily_address(date.fromisoformat(breach.day)),
                title=f"【告警】{breach.day} 的日报没有送达",
                body=f"{breach.problem}。{_REMEDY}",
                channels=settings.operator_channels,
                now=services.now(),
            )
            for breach in found
        )

    return found, run_patiently(services.engine, put_out, services.clock) if found else 0


def _is_there(services: DigestServices, day: date) -> bool:
    """Return whether a day's report is in the outbox, or its slot succeeded if there is no channel."""
    log = notification_log
    slot = services.settings.report_slot
    here = (log.c.report_date == day) & (log.c.slot == slot) & (log.c.push_type == "report")
    with reading(services.engine) as connection:
        if services.settings.channels:
            return bool(connection.execute(select(func.count()).where(here)).scalar_one())
        run = slots.find(connection, day, slot)
    return run is not None and run.status is not SlotStatus.RUNNING
