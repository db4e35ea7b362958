"""The table of daily reports: one per day, replaced whenever it is made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from douban_pipeline.digest.store.tables import daily_report
from douban_pipeline.digest.types import ReportState


def store(
    connection: Connection,
    day: date,
    *,
    state: ReportState,
    reason: str,
    digest_md: str,
    digest: Mapping[str, Any],
    slots_done: Sequence[str],
    stats: Mapping[str, Any],
    model: str,
    wire_model: str,
    now: datetime,
) -> None:
    """Store a day's report, replacing a previous one; a failure never replaces an existing report."""
    values = {
        "state": state.value,
        "reason": reason,
        "digest_md": digest_md,
        "digest_json": dict(digest),
        "slots_done": [*slots_done],
        "stats": dict(stats),
        "model": model,
        "wire_model": wire_model,
        "updated_at": now,
    }
    here = daily_report.c.report_date == day
    replaced = here if state is not ReportState.FAILED else here & (daily_report.c.state == state.value)
    if connection.execute(update(daily_report).where(replaced).values(**values)).rowcount:
        return
    if connection.execute(select(daily_report.c.report_id).where(here)).first() is not None:
        return
    try:
        with connection.begin_nested():
            connection.execute(insert(daily_report).values(report_date=day, created_at=now, **values))
    except IntegrityError:
        connection.execute(update(daily_report).where(replaced).values(**values))


def find(connection: Connection, day: date) -> Row[Any] | None:
    """Return a day's report, None if there is none."""
    return connection.execute(select(daily_report).where(daily_report.c.report_date == day)).one_or_none()


def newest(connection: Connection, most: int) -> list[Row[Any]]:
    """Return the newest reports."""
    return [*connection.execute(select(daily_report).order_by(daily_report.c.report_date.desc()).limit(most))]
