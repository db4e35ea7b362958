"""Reads the content of the pages from the tables; `digest.pages` writes the pages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from sqlalchemy import Connection, Row, select

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.report_files import ReportFileError
from douban_pipeline.digest import wording
from douban_pipeline.digest.pages.content import (
    AnalysisView,
    DayEntry,
    DayView,
    FailureView,
    OpportunityView,
    SlotView,
    TopView,
)
from douban_pipeline.digest.pages.files import PageAddresses, write_analyses, write_pages
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import missed_slots
from douban_pipeline.digest.store import analyses, reports, slots
from douban_pipeline.digest.store.tables import analysis_result, content_item, daily_report, slot_run
from douban_pipeline.digest.types import ReportState, SlotStatus

logger = logging.getLogger(__name__)

_TONES = {SlotStatus.SUCCESS: "good", SlotStatus.FAILED: "bad"}
_PROBLEMS = {ReportState.FAILED.value: "日报生成失败", ReportState.UNREAD.value: "没能读取或分析"}
_PLAIN = "日报由程序汇总，模型没有参与"
_MOST_TITLES = 20


def addresses(services: DigestServices) -> PageAddresses:
    """Return the addresses of the pages, for messages."""
    return PageAddresses(services.settings.public_url, services.reports)


def write_day(services: DigestServices, day: date) -> str:
    """Write the pages of a day, of its analyses, and the index; return the problem, empty for none.

    Neither a full disk nor a page that cannot be made may hold back a message: the page is rewritten when the day's
    next slot ends, or by the watchdog.
    """

    def write() -> None:
        with reading(services.engine) as connection:
            view, index = day_view(services, connection, day), day_entries(services, connection)
        write_pages(services.reports, view, index, services.settings.zone)

    return _problem(write, "日报页", f"the page of {day}")


def write_slot(services: DigestServices, run_id: int) -> str:
    """Write the pages of a slot's analyses; return the problem, empty for none."""

    def write() -> None:
        with reading(services.engine) as connection:
            views = _analyses(services, connection, analysis_result.c.run_id == run_id)
        write_analyses(services.reports, views, services.settings.zone)

    return _problem(write, "分析页", f"the pages of slot run {run_id}")


def _problem(write: Callable[[], None], page: str, logged: str) -> str:
    """Write pages; return why they are not written, empty if they are."""
    try:
        write()
    except ReportFileError as error:
        return f"{page}没有写成：{error}"
    except Exception as error:
        logger.exception("%s cannot be made", logged)
        return f"{page}没有写成：{type(error).__name__}，见日志"
    return ""


def day_view(services: DigestServices, connection: Connection, day: date) -> DayView:
    """Return the content of a day's page."""
    report = reports.find(connection, day)
    digest: dict[str, Any] = (report.digest_json or {}) if report is not None else {}
    failed = report is None or report.state == ReportState.FAILED.value
    causes = [*digest.get("causes", ())] or ["日报还没有生成"] if failed else [*digest.get("problems", ())]
    doubtful = {each["analysis_id"] for each in digest.get("suspicious", ())}
    note = f"{_PLAIN}：{report.reason}" if report is not None and report.state == ReportState.PLAIN.value else ""
    runs = slots.of_day(connection, day)
    settings = services.settings
    missed = missed_slots(day, settings.schedule_slots, [run.slot for run in runs], services.now(), settings.zone)
    views = [
        SlotView(run.slot, wording.SLOT_STATUSES[run.status], _TONES.get(run.status, ""), run.error) for run in runs
    ]
    views += [SlotView(slot, "没有运行", "bad") for slot in missed]
    return DayView(
        report_date=day,
        made_at=report.updated_at if report is not None else services.now(),
        failed=failed,
        unread=report is not None and report.state == ReportState.UNREAD.value,
        headline=digest.get("headline", ""),
        coverage=digest.get("coverage", ""),
        causes=causes,
        note=note,
        digest_md=report.digest_md if report is not None else "",
        top=[
            TopView(
                str(each["title"]),
                int(each["score"]),
                str(each.get("reason", "")),
                each.get("analysis_id"),
                each.get("analysis_id") in doubtful,
            )
            for each in digest.get("top_opportunities", ())
        ],
        watchlist=[*digest.get("watchlist", ())],
        analyses=_analyses(services, connection, slot_run.c.run_date == day),
        failures=[
            FailureView(str(each["title"]), str(each["mp_name"]), str(each["url"]), str(each["error"]))
            for each in digest.get("failures", ())
        ],
        slots=sorted(views, key=lambda each: each.slot),
    )


def day_entries(services: DigestServices, connection: Connection) -> list[DayEntry]:
    """Return every day that has a report, for the index."""
    query = select(daily_report.c.report_date, daily_report.c.state, daily_report.c.stats)
    threshold = services.settings.push_score_threshold
    best = (
        select(slot_run.c.run_date, analysis_result.c.analysis_id, content_item.c.title)
        .join_from(analysis_result, slot_run, slot_run.c.run_id == analysis_result.c.run_id)
        .join(content_item, content_item.c.content_item_id == analysis_result.c.content_item_id)
        .where(analysis_result.c.score >= threshold)
        .order_by(slot_run.c.run_date, analysis_result.c.score.desc(), analysis_result.c.analysis_id)
    )
    found: dict[date, dict[int, str]] = {}
    for row in connection.execute(best):
        titles = found.setdefault(row.run_date, {})
        if len(titles) < _MOST_TITLES:
            titles[row.analysis_id] = row.title
    return [
        DayEntry(
            row.report_date,
            int(row.stats.get("analyses") or 0),
            found.get(row.report_date, {}),
            row.stats.get("best_score"),
            _PROBLEMS.get(row.state, ""),
            row.state not in _PROBLEMS,
        )
        for row in connection.execute(query)
    ]


def _analyses(services: DigestServices, connection: Connection, which: Any) -> list[AnalysisView]:
    columns = (
        analysis_result,
        content_item.c.title,
        content_item.c.mp_name,
        content_item.c.url,
        content_item.c.published_at,
        slot_run.c.run_date,
        slot_run.c.slot,
    )
    query = (
        select(*columns)
        .join_from(analysis_result, content_item, analysis_result.c.content_item_id == content_item.c.content_item_id)
        .join(slot_run, slot_run.c.run_id == analysis_result.c.run_id)
        .where(which)
        .order_by(analysis_result.c.score.desc(), analysis_result.c.analysis_id)
    )
    rows = connection.execute(query).all()
    told = analyses.opportunities_of(connection, [row.analysis_id for row in rows])
    threshold = services.settings.push_score_threshold
    return [_analysis(row, told.get(row.analysis_id, ()), threshold) for row in rows]


def _analysis(row: Row[Any], opportunities: Sequence[Row[Any]], threshold: int) -> AnalysisView:
    return AnalysisView(
        analysis_id=row.analysis_id,
        title=row.title,
        mp_name=row.mp_name,
        url=row.url,
        published_at=row.published_at,
        report_date=row.run_date,
        slot=row.slot,
        score=row.score,
        is_finding=row.score >= threshold,
        summary=row.summary,
        opportunities=[
            OpportunityView(each.type, each.title, tuple(each.targets), each.reason, each.risk, each.horizon)
            for each in opportunities
        ],
        suspicions=tuple(row.suspicions),
        truncated=row.truncated,
        model=row.wire_model or row.model,
    )
