"""The TMDB system's part of the HTTP service; its libraries are imported only where a key or a server is set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.tmdb.settings import load_settings


def mounts(guard: GuessGuard) -> Iterator[Mount]:
    """Yield questions about films, the pages ``/tmdb/`` and ``/metrics``, if a key or a server of the store is set.

    Raises:
        ProblemsError: The libraries of the extra are not installed.
    """
    settings = load_settings()
    if not settings.has_key and not settings.database_url.get_secret_value():
        return
    try:
        from douban_pipeline.tmdb.api import RateLimit, tmdb_router
        from douban_pipeline.tmdb.enrichment.factory import open_service, service_store
        from douban_pipeline.tmdb.pages.pages import TmdbPages, pages_router
    except ImportError as error:
        raise ProblemsError([missing_library(error.name, "tmdb")]) from error
    with ExitStack() as stack:
        store = service_store(settings)
        service = stack.enter_context(open_service(settings, store))
        limit = RateLimit(settings.questions_per_minute, guard.counters)
        router = tmdb_router(service, store, service.spool, limit)
        if store is not None:
            router.include_router(pages_router(TmdbPages(store, SystemClock())))
        yield Mount("tmdb", router, worry=service.problem, close=stack.pop_all().close)
