"""The review sheet and the CSV file in HOME: written with the report, the sheet again when decisions are recorded."""

from __future__ import annotations

import logging

from douban_pipeline.core.ui.report_files import ReportFileError
from douban_pipeline.douban.review.imports.csv_files import export_csv
from douban_pipeline.douban.review.reading.page import SHEET_NAME, sheet_page
from douban_pipeline.douban.review.reading.queue import ReviewQueue, review_queue_of
from douban_pipeline.douban.review.reading.sheet import sheet_of
from douban_pipeline.douban.services import Services

CSV_NAME = "review_queue.csv"
MOST_SHOWN = 200
"""Videos on the sheet and in the CSV file, unless somebody asks for others."""


def write_sheet(services: Services, queue: ReviewQueue) -> None:
    """Write both files.

    Raises:
        ReportFileError: They cannot be written.
    """
    services.reports.write(SHEET_NAME, sheet_page(sheet_of(services, queue)))
    services.reports.write(CSV_NAME, export_csv(queue.first))


def rewrite_sheet(services: Services, log: logging.Logger) -> None:
    """Write the sheet anew where there is one, so that who opens it is not offered what was decided since.

    Not the CSV file: somebody may be filling it in. The decisions are recorded, whether the sheet can be written or
    not: then the log warns.
    """
    if not (services.reports.path / SHEET_NAME).exists():
        return
    try:
        page = sheet_page(sheet_of(services, review_queue_of(services, most=MOST_SHOWN)))
        services.reports.write(SHEET_NAME, page)
    except ReportFileError as error:
        log.warning(f"the review sheet still shows what was decided: {error}")
