"""Writes the review sheet and the CSV file in HOME: both with the report, the sheet also after recording decisions."""

from __future__ import annotations

import logging

from douban_pipeline.core.ui.report_files import ReportFileError
from douban_pipeline.douban.links import REVIEW_SHEET
from douban_pipeline.douban.review.imports.csv_files import export_csv
from douban_pipeline.douban.review.worklist.page import sheet_page
from douban_pipeline.douban.review.worklist.queue import ReviewQueue, review_queue_of
from douban_pipeline.douban.review.worklist.sheet import sheet_of
from douban_pipeline.douban.services import Services

CSV_NAME = "review_queue.csv"
MOST_SHOWN = 200
"""Default number of videos on the sheet and in the CSV file."""


def write_sheet(services: Services, queue: ReviewQueue) -> None:
    """Write both files.

    Raises:
        ReportFileError: They cannot be written.
    """
    services.reports.write(REVIEW_SHEET, sheet_page(sheet_of(services, queue)))
    services.reports.write(CSV_NAME, export_csv(queue.first))


def rewrite_sheet(services: Services, log: logging.Logger) -> None:
    """Rewrite the sheet if there is one, so that it does not show videos that were decided since.

    The CSV file is not rewritten: somebody may be filling it in. If the sheet cannot be written, the log warns; the
    decisions are recorded in any case.
    """
    if not (services.reports.path / REVIEW_SHEET).exists():
        return
    try:
        page = sheet_page(sheet_of(services, review_queue_of(services, most=MOST_SHOWN)))
        services.reports.write(REVIEW_SHEET, page)
    except ReportFileError as error:
        log.warning(f"the review sheet still shows what was decided: {error}")
