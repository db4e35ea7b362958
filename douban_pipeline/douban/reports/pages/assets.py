"""Unpartitioned reports for people. Assets that compare across shards and write nothing to the CMS belong here.

Other modules of this package read the data of a report and lay out its page. This module publishes it: numbers and
tables as metadata, and a page among the report files.
"""

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading
from douban_pipeline.core.ui.report_files import ReportFileError
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig
from douban_pipeline.douban.reports.assets import report_asset
from douban_pipeline.douban.reports.pages.duplicates import subject_groups, title_groups
from douban_pipeline.douban.reports.pages.duplicates_report import duplicates_report
from douban_pipeline.douban.reports.pages.intros import intros
from douban_pipeline.douban.reports.pages.intros_report import intros_report
from douban_pipeline.douban.reports.pages.keepers import Keeper
from douban_pipeline.douban.reports.pages.locked import locked_ids
from douban_pipeline.douban.reports.pages.locked_report import locked_report
from douban_pipeline.douban.reports.pages.missing import missing_ids
from douban_pipeline.douban.reports.pages.missing_report import missing_report
from douban_pipeline.douban.reports.pages.report_page import PageFrame, ReportPage, markdown, sheet
from douban_pipeline.douban.reports.pages.tasks_and_log import tasks_and_log_of
from douban_pipeline.douban.reports.pages.tasks_and_log_report import tasks_and_log_report
from douban_pipeline.douban.reports.video_site import VideoSite, posters_of
from douban_pipeline.douban.services import Services

_MOST = 5000
"""Most entries of a page; a phone can still open it."""


class MissingConfig(LaunchpadConfig):
    """How many videos are listed."""

    most: int = Field(
        500,
        ge=1,
        le=_MOST,
        description="报告中的影片数 · Number of videos in the report.",
    )


class DuplicatesConfig(LaunchpadConfig):
    """Which video of a group is proposed to be kept, and how many groups are listed."""

    keeper: Keeper = Field(
        Keeper.best_match,
        description="每组建议保留：best_match、earliest_link 或 popularity · Which video to propose to keep.",
    )
    most: int = Field(
        500,
        ge=1,
        le=_MOST,
        description="报告中每类的组数 · Number of groups of each kind in the report.",
    )


@report_asset(
    "没有确认豆瓣 ID 的影片：未找到的，以及有候选但没人确认的。最受关注的排在最前，每部附原因、最"
    "佳候选、豆瓣搜索链接，以及填 ID、忽略的启动页链接。"
)
def missing_douban_ids(config: MissingConfig, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Live videos without a confirmed Douban id: not found, or with candidates that nobody confirmed yet.

    The most watched and most recently updated come first (`review.ordering.value_of`), each with the reason, the best
    candidate so far, a link to Douban's own search, and links that open `record_decisions` to set the id or to ignore
    the video. Ignored videos and categories out of scope are left out.
    """
    services.ready()
    return _published(services, missing_report(missing_ids(services, most=config.most)))


@report_asset(
    "可能重复的影片：同一豆瓣 ID 的，以及片名、季数、年份、类型相同的。每组给出建议保留哪一部及理"
    "由，附处理链接（先试运行）。机器从不合并或删除影片。"
)
def duplicate_reports(config: DuplicatesConfig, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Groups of likely duplicate videos: by shared Douban id, and by equal name, number, year and kind.

    Each group shows which video is proposed to be kept, by the rule `keeper` of the config, and why; and a link that
    opens `record_batch_decisions` to clear the id of the others, or to ignore those without one. The link's batch is
    a dry run first. The pipeline never merges or deletes videos; locked videos are named.
    """
    services.ready()
    by_subject = subject_groups(services, config.keeper, most=config.most)
    by_title = title_groups(services, config.keeper, most=config.most)
    return _published(services, duplicates_report(by_subject, by_title, config.keeper, services.settings.zone))


@report_asset(
    "自动运行不会改动的豆瓣 ID：谁、何时、为何锁定。锁定后又在 CMS 里被改掉的排在最前。每条附解锁、改锁的启动页链接。"
)
def locked_douban_ids(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Douban ids that no automatic run may change: the source of each, since when it is locked, by whom and why.

    Ids that differ in the CMS come first: somebody changed them there after they were locked. Each has a link that
    opens `record_decisions` to unlock it, and one to lock the CMS's value instead.
    """
    services.ready()
    return _published(services, locked_report(locked_ids(services)))


@report_asset(
    "简介总览：哪些已锁定、哪些失败及原因、还有多少在等、核对拒绝了什么、花了多少钱（近 30 天）。"
    "每部附重写、锁定、解锁的启动页链接。"
)
def intro_reports(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Intros: which are locked, which fail and why, how many wait, what the fact guard refuses, what they cost.

    Failures, refusals and costs are of the last 30 days. Each video has links that open `record_decisions` to rewrite
    its intro, and to lock or unlock it.
    """
    services.ready()
    return _published(services, intros_report(intros(services)))


@report_asset(
    "任务、决定和变更：哪些没有进展及原因，哪些决定被拒绝，谁写了什么。未写入的变更附处理办法，最新变更附撤销链接。"
)
def tasks_and_log(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Tasks, decisions and changes: what makes no progress and why, what was not applied, what was written by whom.

    Open tasks by stage, which runs hold them, why they were deferred, and the failures of seven days by reason;
    decisions that wait or were refused; changes that were refused or are in conflict, each with what to do about it;
    the newest changes, each with a link that opens `revert_changes` for its batch; and the changes of 30 days by day,
    action and operator. `pipeline_health` shows throughput and failure rates.
    """
    services.ready()
    return _published(services, tasks_and_log_report(tasks_and_log_of(services)))


def _published(services: Services, report: ReportPage) -> dg.MaterializeResult:
    """Write the page of a report, and return its numbers and tables as metadata."""
    settings = services.settings
    with reading(services.engine) as connection:
        posters = posters_of(services, connection, report.videos)
    frame = PageFrame(settings.zone, settings.ui_url, services.location, VideoSite.of(settings), posters)
    try:
        services.reports.write(report.file, sheet(report, frame, services.clock.now()))
    except ReportFileError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
    address = services.reports.address(report.file)
    place = dg.MetadataValue.url(address) if settings.reports_url else dg.MetadataValue.path(address)
    tables = {chapter.key: dg.MetadataValue.md(markdown(chapter, frame)) for chapter in report.chapters}
    return dg.MaterializeResult(metadata={"sheet": place, **report.counts, **tables})


assets = [missing_douban_ids, duplicate_reports, locked_douban_ids, intro_reports, tasks_and_log]
