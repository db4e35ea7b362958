"""The pages as files in HOME/reports/digest, each written atomically; their paths, and their addresses in links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from douban_pipeline.core.ui.report_files import ReportFolder
from douban_pipeline.digest.pages.content import AnalysisView, DayEntry, DayView
from douban_pipeline.digest.pages.html import (
    SEARCH_SCRIPT,
    render_analysis,
    render_daily,
    render_index,
    search_script,
)

FOLDER = "digest"
"""The pages' folder within the reports."""


def daily_page(report_date: date) -> str:
    """Return the path of a day's page inside the folder, without suffix."""
    return f"daily/{report_date.isoformat()}"


def analysis_page(analysis_id: int) -> str:
    """Return the path of an analysis's page inside the folder, without suffix."""
    return f"analysis/{analysis_id}"


@dataclass(frozen=True, slots=True)
class PageAddresses:
    """Addresses for messages: of `douban-pipeline serve`, of a web server for the reports, or of the files.

    Attributes:
        public_url: Public address of `serve`; empty if it is not used.
        reports: The folder of all reports.
    """

    public_url: str
    reports: ReportFolder

    def daily(self, report_date: date) -> str:
        """Return the address of a day's page."""
        return self._address(daily_page(report_date))

    def analysis(self, analysis_id: int) -> str:
        """Return the address of an analysis's page."""
        return self._address(analysis_page(analysis_id))

    def _address(self, page: str) -> str:
        if self.public_url:
            return f"{self.public_url.rstrip('/')}/{page}"
        return self.reports.address(f"{FOLDER}/{page}.html")


INDEX_DAYS = 366
"""Days on the first page of the index; each year also has a page of its own."""


def write_pages(reports: ReportFolder, day: DayView, index: Sequence[DayEntry], zone: ZoneInfo) -> Path:
    """Write the pages of a day and of its analyses, then the index, and return the day's page.

    Pages are written before those that link to them. If a page cannot be written, it and the following pages keep
    their previous content.

    Args:
        reports: The folder of all reports.
        day: The day.
        index: All days that have a page, in any order.
        zone: Time zone of the times on the pages.

    Raises:
        ReportFileError: The disk is full, or the folder cannot be written.
    """
    write_analyses(reports, day.analyses, zone)
    path = _write(reports, f"{daily_page(day.report_date)}.html", render_daily(day, zone))
    _write_index(reports, index, day.report_date.year)
    return path


def write_analyses(reports: ReportFolder, analyses: Sequence[AnalysisView], zone: ZoneInfo) -> None:
    """Write the pages of analyses only, before a message links to one of them.

    Raises:
        ReportFileError: As for `write_pages`.
    """
    for each in analyses:
        _write(reports, f"{analysis_page(each.analysis_id)}.html", render_analysis(each, zone))


def _write_index(reports: ReportFolder, index: Sequence[DayEntry], current: int) -> None:
    days = sorted(index, key=lambda entry: entry.report_date, reverse=True)
    years = sorted({entry.report_date.year for entry in days}, reverse=True)
    _write(reports, SEARCH_SCRIPT, search_script())
    for year in years:
        name = f"days-{year}.html"
        if year == current or not (reports.path / FOLDER / name).exists():
            of_year = [entry for entry in days if entry.report_date.year == year]
            _write(reports, name, render_index(of_year, f"{year} 年的日报", years, f"{len(of_year)} 天"))
    shown = days[:INDEX_DAYS]
    about = f"最近 {len(shown)} 天，共 {len(days)} 天" if len(days) > len(shown) else f"共 {len(days)} 天"
    _write(reports, "index.html", render_index(shown, "日报", years, about))


def _write(reports: ReportFolder, name: str, content: str) -> Path:
    folder, _, file = f"{FOLDER}/{name}".rpartition("/")
    return replace(reports, path=reports.path / folder).write(file, content)
