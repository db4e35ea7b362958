"""What the pages show, read from the tables; `digest.pages` renders it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from douban_pipeline.digest import wording
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import missed_slots
from douban_pipeline.digest.store import analyses, reports, slots
from douban_pipeline.digest.store.tables import analysis_result, content_item, daily_report, slot_run
from douban_pipeline.digest.types import ReportState, SlotStatus

_TONES = {SlotStatus.SUCCESS: "good", SlotStatus.FAILED: "bad"}
_PROBLEMS = {ReportState.FAILED.value: "日报生成失败", ReportState.UNREAD.value: "没能读取或分析"}
_PLAIN = "日报由程序汇总，模型没有参与"
_MOST_TITLES = 20


@dataclass(frozen=True, slots=True)
class OpportunityView:
    """One opportunity named in an article."""

    type: str = ""
    title: str = ""
    targets: Sequence[str] = ()
    reason: str = ""
    risk: str = ""
    horizon: str = ""


@dataclass(frozen=True, slots=True)
class AnalysisView:
    """The analysis of an article.

    Attributes:
        analysis_id: Its id, part of its address.
        title: The article's title.
        mp_name: Name of the account.
        url: The article's page; only http and https become a link.
        published_at: When it was published; None if unknown.
        report_date: The day it belongs to.
        slot: The slot that analysed it.
        score: 0 to 100.
        is_finding: Whether the score reaches the threshold.
        summary: Summary of the article.
        opportunities: Opportunities named in it.
        suspicions: Reasons why a person should check it, such as sentences in its text that changed its score.
        truncated: Whether the model was given only a part of the text.
        model: Model that analysed it.
    """

    analysis_id: int
    title: str
    mp_name: str
    url: str
    published_at: datetime | None
    report_date: date
    slot: str
    score: int
    is_finding: bool
    summary: str
    opportunities: Sequence[OpportunityView] = ()
    suspicions: Sequence[str] = ()
    truncated: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class FailureView:
    """An article that could not be analysed, and why."""

    title: str
    mp_name: str
    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class TopView:
    """One of the day's best opportunities as named in the report; ``analysis_id`` is None if it refers to no
    analysis."""

    title: str
    score: int
    reason: str
    analysis_id: int | None = None
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot of the day: its result in Chinese, and ``good``, ``bad`` or empty."""

    slot: str
    state: str
    tone: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class DayView:
    """A day's report.

    Attributes:
        report_date: The day.
        made_at: When the view was created.
        failed: Whether the report could not be made; then `causes` says why, and the other data is shown nevertheless.
        unread: Whether nothing could be read or analysed; then `causes` says why.
        headline: What the day came to, in a few words.
        coverage: How much of the day was read and analysed.
        causes: Reasons, one sentence each.
        note: A sentence on how the report was made, for example that the model was not available.
        digest_md: The report as Markdown; links, pictures and HTML in it are shown as text.
        top: The day's best opportunities according to the report.
        watchlist: What to watch.
        analyses: All analyses of the day.
        failures: Articles that could not be analysed.
        slots: The day's slots, in order.
    """

    report_date: date
    made_at: datetime
    failed: bool = False
    unread: bool = False
    headline: str = ""
    coverage: str = ""
    causes: Sequence[str] = ()
    note: str = ""
    digest_md: str = ""
    top: Sequence[TopView] = ()
    watchlist: Sequence[str] = ()
    analyses: Sequence[AnalysisView] = ()
    failures: Sequence[FailureView] = ()
    slots: Sequence[SlotView] = ()


@dataclass(frozen=True, slots=True)
class DayEntry:
    """One day in the index.

    Attributes:
        report_date: The day.
        analyses: Number of analysed articles.
        findings: Titles of the findings by id, best first.
        best_score: The best score of the day; None for none.
        problem: Why there is no report that says something of the day; empty if there is one.
        counted: Whether articles were read and counted, so that none found is a statement.
    """

    report_date: date
    analyses: int
    findings: Mapping[int, str] = field(default_factory=dict)
    best_score: int | None = None
    problem: str = ""
    counted: bool = True


def analysis_view(services: DigestServices, connection: Connection, analysis_id: int) -> AnalysisView | None:
    """Return the content of an analysis's page; None if there is no such analysis."""
    found = _analyses(services, connection, analysis_result.c.analysis_id == analysis_id)
    return found[0] if found else None


def day_view(services: DigestServices, connection: Connection, day: date) -> DayView | None:
    """Return the content of a day's page; None if none of its slots has run."""
    report = reports.find(connection, day)
    runs = slots.of_day(connection, day)
    if report is None and not runs:
        return None
    digest: dict[str, Any] = (report.digest_json or {}) if report is not None else {}
    failed = report is None or report.state == ReportState.FAILED.value
    causes = [*digest.get("causes", ())] or ["日报还没有生成"] if failed else [*digest.get("problems", ())]
    doubtful = {each["analysis_id"] for each in digest.get("suspicious", ())}
    note = f"{_PLAIN}：{report.reason}" if report is not None and report.state == ReportState.PLAIN.value else ""
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
    """Return every day that has a report, for the index, newest first."""
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
        for row in connection.execute(query.order_by(daily_report.c.report_date.desc()))
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
