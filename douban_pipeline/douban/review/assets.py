"""Unpartitioned assets for reviewers. Reports on which people base decisions belong here."""

import dagster as dg
from pydantic import Field

from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.report_files import ReportFileError
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig
from douban_pipeline.dagster_kit.metadata import shown_place
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.review.imports.files import export_csv
from douban_pipeline.douban.review.worklist.completion import completed
from douban_pipeline.douban.review.worklist.queue import review_queue_of
from douban_pipeline.douban.review.worklist.queue_table import (
    candidates_table,
    holders_shown,
    pressing_table,
)
from douban_pipeline.douban.review.worklist.sheet import site_addresses
from douban_pipeline.douban.services import Services

CSV_NAME = "review_queue.csv"
MOST_SHOWN = 200
"""Default number of videos in the CSV file."""


class ReviewQueueConfig(LaunchpadConfig):
    """How much of the queue is shown, and how many candidates are fetched for it."""

    most_requests: int = Field(
        100,
        ge=0,
        le=2000,
        description=page_text(
            "Maximum number of candidates known only from a search to request from Douban now; a "
            "fifth of it while videos are due."
        ),
    )
    most: int = Field(MOST_SHOWN, ge=1, le=2000, description=page_text("Number of videos in the CSV."))


@dg.asset(
    deps=[synced_fields],
    group_name="reports",
    kinds={"mysql", "python"},
)
@page_docstring
def review_queue(
    context: dg.AssetExecutionContext, config: ReviewQueueConfig, services: dg.ResourceParam[Services]
) -> dg.MaterializeResult:
    """Videos that wait for a person: doubtful matches, doubtful ids in the CMS, and five failures in a row.

    The most valuable and most doubtful come first, seasons of one work together. Settle them with the links of
    `most_pressing`; on the review sheet of the service, with all known facts of both sides; or in the CSV file, which
    `import_decisions` reads. Videos with a decision that is not applied yet are left out here.
    """
    services.ready()
    queue, fetched = completed(services, review_queue_of(services, most=config.most), most=config.most_requests)
    context.log.info(
        f"{fetched.requests} subjects asked for, {fetched.known} known from the archive, {fetched.left} left"
    )
    try:
        services.reports.write(CSV_NAME, export_csv(queue.first))
    except ReportFileError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    holders, address = holders_shown(services, queue), services.settings.review_url
    # Links come first: the UI shows everything else further down.
    return dg.MaterializeResult(
        metadata={
            "most_pressing": dg.MetadataValue.md(
                pressing_table(queue, holders, services.location, site_addresses(services.settings))
            ),
            **({"sheet": dg.MetadataValue.url(address)} if address else {}),
            "csv": shown_place(services.reports, CSV_NAME),
            "waiting": queue.length,
            **{f"status_{status.lower()}": count for status, count in queue.by_status.items()},
            "decided": queue.decided,
            "shown": len(queue.first),
            "candidates_fetched": fetched.requests,
            "candidates_left": fetched.left,
            "candidates": dg.MetadataValue.md(candidates_table(queue, holders)),
        }
    )


assets = [review_queue]
