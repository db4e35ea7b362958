"""Paths of the pages' files, and their addresses in links."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from douban_pipeline.core.ui.report_files import ReportFolder

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
