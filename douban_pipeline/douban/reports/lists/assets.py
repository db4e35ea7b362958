"""The lists as assets: pages with filter, sort and paging over all rows, CSV files, and their numbers.

Each report asset publishes its list: the page, and as metadata its numbers, its first rows and what stands around it.
"""

from collections.abc import Callable
from typing import Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.lists.list_page import Table
from douban_pipeline.core.ui.lists.shown_cells import markdown
from douban_pipeline.core.ui.report_files import ReportFileError
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig
from douban_pipeline.dagster_kit.metadata import shown_place
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.reports.lists.catalogue import LISTS, OVERVIEW, page_frame, publish
from douban_pipeline.douban.reports.lists.duplicates import MOST_GROUPS, duplicates_list
from douban_pipeline.douban.reports.lists.keepers import KeeperRule
from douban_pipeline.douban.reports.lists.named_list import NamedList
from douban_pipeline.douban.reports.lists.overview import write_overview
from douban_pipeline.douban.services import Services


def report_asset(function: Callable[..., Any]) -> dg.AssetsDefinition:
    """Decorate the function of a report asset: it depends on `synced_fields` and reads the library's database."""
    return dg.asset(deps=[synced_fields], group_name="reports", kinds={"mysql", "python"})(page_docstring(function))


class DuplicatesConfig(LaunchpadConfig):
    """Which video of a group is proposed to be kept, and how many groups by name are listed."""

    keeper: KeeperRule = Field(
        KeeperRule.best_match,
        description=page_text("Which video to propose to keep."),
    )
    most: int = Field(
        MOST_GROUPS,
        ge=1,
        le=5000,  # a phone can still open it
        description=page_text("Number of listed groups by name."),
    )


@report_asset
def review_list(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The list of videos that wait for a person: doubtful matches and ids, and repeated failures; each with links
    that open filled-in launchpads.

    Like every list it is a page among the report files with filter, sort and paging over all rows, and a CSV file;
    `douban-pipeline list review` reads the same from the database at any time.
    """
    return _published(services, "review")


@report_asset
def missing_douban_ids(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The list of live videos without a confirmed Douban id: not found, or with candidates that nobody confirmed yet.

    Each has the reason, the best candidate so far, its value (`review.ordering.value_of`: watched, and updated
    recently), a link to Douban's own search, and links that open `record_decisions` to set the id or to ignore the
    video. Ignored videos are left out, categories out of scope are marked.
    """
    return _published(services, "missing")


@report_asset
def duplicate_reports(config: DuplicatesConfig, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The list of likely duplicate videos: by shared Douban id, and below it by equal name, number, year and kind.

    Each group says which video is proposed to be kept, by the rule `keeper` of the config, and why; and has a link that
    opens `record_batch_decisions` to clear the id of the others, or to ignore those without one. The link's batch is
    a dry run first. The pipeline never merges or deletes videos; locked videos are named.
    """
    return _published(services, "duplicates", wanted=duplicates_list(services.ready(), config.keeper, most=config.most))


@report_asset
def locked_douban_ids(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The list of Douban ids that no automatic run may change: the source of each, since when it is locked, by whom
    and why.

    It says which differ in the CMS: somebody changed them there after they were locked. Each has a link that opens
    `record_decisions` to unlock it, and one to lock the CMS's value instead.
    """
    return _published(services, "locked")


@report_asset
def intro_reports(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The list of intros: which are locked, which fail and why; how many wait, what the fact guard refuses, and what
    they cost.

    Refusals and costs are of the last 30 days. Each video has links that open `record_decisions` to rewrite its intro,
    and to lock or unlock it.
    """
    return _published(services, "intros")


@report_asset
def tasks_and_log(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The lists of tasks, decisions and changes: what makes no progress and why, what was not applied, what was
    written by whom.

    Open tasks by stage, which runs hold them, why they were deferred, and the failures of seven days by reason;
    decisions that wait or were refused; what to do about changes that were refused or are in conflict; links that
    open `revert_changes` for a change or its batch; and the changes of 30 days by day, action and operator.
    `pipeline_health` shows throughput and failure rates.
    """
    return _published(services, "tasks", "decisions", "log")


@dg.asset(
    group_name="reports",
    kinds={"mysql", "python"},
)
@page_docstring
def overview(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The home page (`index.html`): videos with and without an id, in review, conflicts, locked, due and done today,
    failures; with links to every list and report.

    The sensor `overview_sensor` writes the page every two minutes without a run; here the numbers are plotted over
    time.
    """
    services.ready()
    try:
        found = write_overview(services)
    except ReportFileError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    return dg.MaterializeResult(metadata={"page": shown_place(services.reports, OVERVIEW[1]), **found.counts()})


def _published(services: Services, *names: str, wanted: NamedList | None = None) -> dg.MaterializeResult:
    """Write the lists of these names; return their numbers and tables as metadata."""
    services.ready()
    metadata: dict[str, Any] = {}
    for name in names:
        made = wanted or LISTS[name](services)
        try:
            written = publish(services, made)
        except ReportFileError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        metadata |= {
            f"{name}_page": shown_place(services.reports, made.page.file),
            f"{name}_rows": written.rows,
            **written.figures.counts,
            f"{name}_first": _table(services, written.first),
            **{table.key: _table(services, table) for table in written.figures.tables},
        }
    return dg.MaterializeResult(metadata=metadata)


def _table(services: Services, table: Table) -> dg.MarkdownMetadataValue:
    return dg.MetadataValue.md(markdown(table, page_frame(services)))


assets = [
    review_list,
    missing_douban_ids,
    duplicate_reports,
    locked_douban_ids,
    intro_reports,
    tasks_and_log,
    overview,
]
