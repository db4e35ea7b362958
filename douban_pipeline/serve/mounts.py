"""What systems hang into the service. To add one: a function here that returns its `Mount`, and its name in `MOUNTS`.

A system's router stands in its own ``api.py`` and knows nothing of tokens, cookies and headers: the service sees to
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import APIRouter

from douban_pipeline.digest.api import digest_router
from douban_pipeline.digest.settings import load_settings as load_digest


@dataclass(frozen=True, slots=True)
class Mount:
    """One system in the service.

    Attributes:
        name: The system, as ``/healthz`` names it.
        router: Its paths.
        prefix: What they begin with; empty for the root.
        public: Beginnings of paths that ask for no login, because the system sees to that itself.
        problem: Says what is wrong with it, for ``/healthz``; None or an empty text for nothing.
    """

    name: str
    router: APIRouter
    prefix: str = ""
    public: Sequence[str] = ()
    problem: Callable[[], str | None] | None = None


def digest_mount() -> Mount:
    """The digest's pages: ``/``, ``/daily/DATE`` and ``/analysis/ID``."""
    folder = load_digest().home.absolute() / "reports"
    return Mount("digest", digest_router(folder))


MOUNTS: Sequence[Callable[[], Mount]] = (digest_mount,)
"""Of every system that has something to serve."""
