"""The feeds system's part of the HTTP service: the pages, and the API of phones' readers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from douban_pipeline.core.database import outage
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.language import read_in
from douban_pipeline.core.mounts import Mount
from douban_pipeline.core.system import installed_names
from douban_pipeline.feeds.budget_plan import crowded_hosts
from douban_pipeline.feeds.services import open_services
from douban_pipeline.feeds.settings import load_settings

logger = logging.getLogger(__name__)


def mounts(guard: GuessGuard) -> Iterator[Mount]:
    """Yield the pages, and with a password the API of phones, if ``DOUBAN_PIPELINE_SYSTEMS`` names the system.

    Raises:
        DatabaseError: The tables are missing or of another version.
        ProblemsError: The libraries of the extra are not installed.
    """
    if "feeds" not in installed_names():
        return
    try:
        from douban_pipeline.feeds.api import google_reader, pages
        from douban_pipeline.feeds.api.access import ReaderAccess
    except ImportError as error:
        raise ProblemsError([missing_library(error.name, "service")]) from error
    settings = load_settings()
    services = open_services(settings).ready()
    with read_in("en"):
        for crowded in crowded_hosts(services.engine, settings):
            logger.warning(crowded)
    password = settings.reader_password.get_secret_value()
    if password:
        access = ReaderAccess(password, guard)
        reader, prefix = google_reader.google_reader_router(services, access), google_reader.PREFIX
        yield Mount("feeds greader", reader, prefix=prefix, public=[prefix])
    yield Mount(
        "feeds",
        pages.pages_router(services),
        prefix=pages.PREFIX,
        problem=lambda: outage(services.engine),
        close=services.close,
    )
