"""The digest's part of the HTTP service."""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.core.database import outage
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.core.system import installed_names
from douban_pipeline.digest.api import digest_router, messages_router
from douban_pipeline.digest.services import open_services
from douban_pipeline.digest.settings import load_settings

_PREFIX = "/digest"


def mounts(_guard: GuessGuard) -> Iterator[Mount]:
    """Yield the pages, and the addresses used in messages, if ``DOUBAN_PIPELINE_SYSTEMS`` names the system.

    Raises:
        DatabaseError: The tables are missing or of another version.
    """
    if "digest" not in installed_names():
        return
    services = open_services(load_settings()).ready()
    yield Mount(
        "digest",
        digest_router(services),
        prefix=_PREFIX,
        problem=lambda: outage(services.engine),
        close=services.close,
    )
    yield Mount("messages", messages_router(_PREFIX))
