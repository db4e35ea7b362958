"""The lists as an asset: pages with filter, sort and paging over all rows, and CSV files."""

from typing import Any

import dagster as dg
from pydantic import Field

from douban_pipeline.core.ui.language import described
from douban_pipeline.core.ui.report_files import ReportFileError
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig
from douban_pipeline.douban.reports.assets import report_asset
from douban_pipeline.douban.reports.lists.catalogue import LISTS, OVERVIEW, publish
from douban_pipeline.douban.reports.lists.overview import write_overview
from douban_pipeline.douban.services import Services


class ListsConfig(LaunchpadConfig):
    """Which lists are written."""

    names: list[str] = Field(default_factory=lambda: list(LISTS), description=f"列表 · Lists: {', '.join(LISTS)}.")


@report_asset(
    "所有要人处理的清单，每份都是全部行：待审核、无豆瓣 ID、豆瓣 ID 重复、已锁定豆瓣 ID、简介、任"
    "务、决定、变更日志。每份一个可筛选、排序、翻页的网页和一个 CSV 文件。"
)
def lists(
    context: dg.AssetExecutionContext, config: ListsConfig, services: dg.ResourceParam[Services]
) -> dg.MaterializeResult:
    """The lists that people work through, each with all its rows: review, videos without an id, duplicates, locked
    ids, intros, tasks, decisions, changes.

    Each is a page among the report files with filter, sort and paging, and a CSV file with all rows; the links of a
    page open filled-in launchpads. `douban-pipeline list NAME` reads the same from the database at any time.
    """
    services.ready()
    unknown = [name for name in config.names if name not in LISTS]
    if unknown:
        raise dg.Failure(f"没有列表 {'、'.join(unknown)}；可以写：{'、'.join(LISTS)}", allow_retries=False)
    metadata: dict[str, Any] = {}
    for name in config.names:
        try:
            metadata[name] = publish(services, name)
        except ReportFileError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        context.log.info(f"{name}: {metadata[name]} rows")
        address = services.reports.address(LISTS[name](services).page.file)
        place = dg.MetadataValue.url(address) if services.reports.url else dg.MetadataValue.path(address)
        metadata[f"{name}_page"] = place
    return dg.MaterializeResult(metadata=metadata)


@dg.asset(
    group_name="reports",
    kinds={"mysql", "python"},
    description=described(
        "首页（`index.html`）：是否一切正常、要处理什么、今天的数字、近 24 小时做了什么，以及到每份清"
        "单和报告的链接。`overview_sensor` 每两分钟重写网页；这里记录数字的变化。"
    ),
)
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
    address = services.reports.address(OVERVIEW[1])
    place = dg.MetadataValue.url(address) if services.reports.url else dg.MetadataValue.path(address)
    return dg.MaterializeResult(metadata={"page": place, **found.counts()})


assets = [lists, overview]
