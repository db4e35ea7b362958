"""Every list by its name, and publishing a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from douban_pipeline.core.ui.lists.list_files import ListFrame, write_list
from douban_pipeline.douban.reports.lists.duplicates import duplicates_list
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.named_list import NamedList, rows_of
from douban_pipeline.douban.reports.lists.records import decisions_list, log_list, tasks_list
from douban_pipeline.douban.reports.lists.videos import intros_list, locked_list, missing_list, review_list
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services

LISTS: Mapping[str, Callable[[Services], NamedList]] = {
    "review": review_list,
    "missing": missing_list,
    "duplicates": duplicates_list,
    "locked": locked_list,
    "intros": intros_list,
    "tasks": tasks_list,
    "decisions": decisions_list,
    "log": log_list,
}
"""The lists in the order in which pages link to them."""

OVERVIEW = ("首页", "index.html")
"""Title and file of the page with the statistics, which links to all others."""


def siblings(services: Services) -> list[tuple[str, str]]:
    """Return the title and the file of the overview and of every list."""
    return [OVERVIEW, *((make(services).page.title, make(services).page.file) for make in LISTS.values())]


def publish(services: Services, name: str) -> int:
    """Write the page and the CSV file of a list; return how many rows it has.

    Raises:
        ReportFileError: They cannot be written.
    """
    wanted = LISTS[name](services)
    site = VideoSite.of(services.settings)
    frame = ListFrame(
        services.settings.zone,
        services.settings.ui_url,
        siblings(services),
        site.page_pattern,
        site.pictures,
        site.image_sources,
    )
    rows = rows_of(services, wanted, ListFilter(), most=wanted.most)
    return write_list(services.reports, wanted.page, rows, frame, services.clock.now())
