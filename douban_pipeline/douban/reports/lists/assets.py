"""The lists as assets: their figures, first rows and CSV files; the service shows them."""

from collections.abc import Callable
from typing import Any

import dagster as dg

from douban_pipeline.core.language import page_docstring
from douban_pipeline.core.ui.lists.list_table import write_csv
from douban_pipeline.core.ui.lists.shown_cells import IN_UI, preview
from douban_pipeline.core.ui.report_files import ReportFileError
from douban_pipeline.dagster_kit.metadata import shown_place
from douban_pipeline.douban.chain.sync.assets import synced_fields
from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.duplicates import store_same_titles
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.spec import batches_of, csv_file, list_path, page_of_rows
from douban_pipeline.douban.reports.lists.statistics import statistics
from douban_pipeline.douban.services import Services


def report_asset(function: Callable[..., Any]) -> dg.AssetsDefinition:
    """Decorate the function of a report asset: it depends on `synced_fields` and reads the library's database."""
    return dg.asset(deps=[synced_fields], group_name="reports", kinds={"mysql", "python"})(page_docstring(function))


@report_asset
def review_list(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The list of videos that wait for a person: doubtful matches and ids, and repeated failures.

    Like every list it is a page of the service, read when it is opened, with filter, sort and paging over all rows and
    links that open filled-in launchpads. The asset records figures and first rows, and writes all rows as a CSV file.
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
def duplicate_reports(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """The list of likely duplicate videos: by shared Douban id, and below it by equal name, number, year and kind.

    Each group says which video is proposed to be kept, and why; and has a link that opens `record_batch_decisions` to
    clear the id of the others, or to ignore those without one. The link's batch is a dry run first. The pipeline never
    merges or deletes videos; locked videos are named.
    """
    services.ready()
    try:
        store_same_titles(services)
    except ReportFileError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    return _published(services, "duplicates")


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
    """The figures of the front page: videos with and without an id, in review, conflicts, locked, due and done today,
    failures; Dagster plots them over time.
    """
    return dg.MaterializeResult(metadata={"page": _served(services, ""), **statistics(services.ready()).counts()})


def _published(services: Services, *names: str) -> dg.MaterializeResult:
    """Write the CSV files of the lists of these names; return their figures, first rows and places as metadata."""
    services.ready()
    metadata: dict[str, Any] = {}
    for name in names:
        spec, file, zone = LISTS[name](services), csv_file(name), services.settings.zone
        rows = batches_of(services, spec, ListFilter(), most=spec.most)
        try:
            count = write_csv(services.reports.path / file, spec.columns, rows, zone, services.reports.problem)
        except ReportFileError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        first, _ = page_of_rows(services, spec, ListFilter(), size=IN_UI)
        metadata |= {
            f"{name}_page": _served(services, list_path(name)),
            f"{name}_csv": shown_place(services.reports, file),
            f"{name}_rows": count,
            **spec.figures().counts,
            f"{name}_first": dg.MetadataValue.md(preview(spec.columns, first, zone)),
        }
    return dg.MaterializeResult(metadata=metadata)


def _served(services: Services, path: str) -> dg.MetadataValue:
    """Return where the service has a page: its address, or its path if no address is set."""
    base = services.settings.public_url.rstrip("/")
    return dg.MetadataValue.url(f"{base}/{path}") if base else dg.MetadataValue.text(f"/{path}")


assets = [
    review_list,
    missing_douban_ids,
    duplicate_reports,
    locked_douban_ids,
    intro_reports,
    tasks_and_log,
    overview,
]
