"""The comment system's part of the HTTP service; its libraries are imported only where it is installed."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from douban_pipeline.comments.settings import load_settings
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.core.system import installed_names


def mounts(guard: GuessGuard) -> Iterator[Mount]:
    """Yield the API below ``/comments`` and the pages below ``/demo``, if ``DOUBAN_PIPELINE_SYSTEMS`` names the system.

    Raises:
        DatabaseError: The tables are missing or of another version.
        ModuleNotFoundError: The libraries of the extra ``comments`` are not installed.
    """
    if "comments" not in installed_names():
        return
    from douban_pipeline.comments.api.routes import PUBLIC, comments_router
    from douban_pipeline.comments.services import open_services

    services = open_services(load_settings(), "service").ready()
    if services.lists is None:
        logging.getLogger(__name__).warning(services.settings.without_redis)
    router, context = comments_router(services, guard)
    yield Mount("comments", router, public=PUBLIC, origins=context.settings.allowed_origins, problem=context.problem)
