"""The digest's part of the HTTP service."""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.digest.api import digest_router, messages_router
from douban_pipeline.digest.settings import load_settings

_PREFIX = "/digest"


def mounts(_guard: GuessGuard) -> Iterator[Mount]:
    """Yield the pages below ``/digest/``, and the addresses used in messages: ``/daily/DATE`` and ``/analysis/ID``."""
    yield Mount("digest", digest_router(load_settings().home.absolute() / "reports"), prefix=_PREFIX)
    yield Mount("messages", messages_router(_PREFIX))
