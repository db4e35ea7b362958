"""Every list by its name, and publishing a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from douban_pipeline.core.system import SystemPart
from douban_pipeline.core.ui.lists.list_files import WrittenList, write_list
from douban_pipeline.core.ui.lists.shown_cells import PageFrame
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.named_list import TITLES, NamedList, file_of, rows_of
from douban_pipeline.douban.reports.video_site import VideoSite
from douban_pipeline.douban.services import Services


def _list(place: str) -> Callable[[Services], NamedList]:
    """Return what makes a list; its module is imported when the list is made, as a command shows one of them."""
    part = SystemPart[Callable[[Services], NamedList]](f"douban_pipeline.douban.reports.lists.{place}")
    return lambda services: part()(services)


LISTS: Mapping[str, Callable[[Services], NamedList]] = {
    "review": _list("videos:review_list"),
    "missing": _list("videos:missing_list"),
    "duplicates": _list("duplicates:duplicates_list"),
    "locked": _list("locked:locked_list"),
    "intros": _list("intros:intros_list"),
    "tasks": _list("records:tasks_list"),
    "decisions": _list("records:decisions_list"),
    "log": _list("change_list:log_list"),
}
"""What makes each list."""

OVERVIEW = ("首页", "index.html")
"""Title and file of the page with the statistics, which links to all others."""


_REPLACED = {
    "missing_douban_ids.html": "missing",
    "duplicate_reports.html": "duplicates",
    "locked_douban_ids.html": "locked",
    "intro_reports.html": "intros",
    "tasks_and_log.html": "tasks",
}
"""Pages of earlier versions, which people may have bookmarked, and the lists that took their place."""


def page_frame(services: Services) -> PageFrame:
    """Return what the pages of this site have in common."""
    site = VideoSite.of(services.settings)
    return PageFrame(
        services.settings.zone,
        services.settings.ui_url,
        [OVERVIEW, *((title, file_of(name)) for name, title in TITLES.items())],
        site.page_pattern,
        site.pictures,
        site.image_sources,
    )


def publish(services: Services, wanted: NamedList) -> WrittenList:
    """Write the page and the CSV file of a list.

    Raises:
        ReportFileError: They cannot be written.
    """
    rows = rows_of(services, wanted, ListFilter(), most=wanted.most)
    now = services.clock.now()
    written = write_list(services.reports, wanted.page, rows, page_frame(services), now, wanted.figures)
    for old, name in _REPLACED.items():
        if name == wanted.name:
            services.reports.lead_on(old, wanted.page.file)
    return written
