"""The systems' parts of the service. To add one: a function here that returns its `Mount`, and its name in `MOUNTS`.

A system's router is in its own ``api.py`` and does not handle tokens, cookies and headers; the service does that for
all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.digest.api import digest_router, messages_router
from douban_pipeline.digest.settings import load_settings as load_digest
from douban_pipeline.douban.api import reports_router
from douban_pipeline.douban.review.served.api import review_router
from douban_pipeline.douban.review.served.dagster_api import DagsterApi
from douban_pipeline.douban.review.served.desk import ReviewDesk
from douban_pipeline.douban.review.served.pictures import Pictures
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings as load_douban
from douban_pipeline.tmdb.settings import load_settings as load_tmdb


@dataclass(frozen=True, slots=True)
class Mount:
    """One system in the service.

    Attributes:
        name: The system, as ``/healthz`` names it.
        router: Its routes.
        prefix: Their common prefix; empty for the root.
        public: Prefixes of paths without login, because the system authenticates requests itself.
        problem: Returns its problem, for ``/healthz``; None or an empty text for none.
        close: Stops its background work when the service stops; None for nothing.
    """

    name: str
    router: APIRouter
    prefix: str = ""
    public: Sequence[str] = ()
    problem: Callable[[], str | None] | None = None
    close: Callable[[], None] | None = None


def _reports() -> Path:
    return load_digest().home.absolute() / "reports"


def digest_mount(_guard: GuessGuard) -> Mount:
    """The digest's pages: ``/digest/``, ``/digest/daily/DATE`` and ``/digest/analysis/ID``."""
    return Mount("digest", digest_router(_reports()), prefix="/digest")


def review_mount(_guard: GuessGuard) -> Mount:
    """The review sheet below ``/review/``; the library is not accessed before the page is opened."""
    settings = load_douban()
    services = open_services(settings)
    router = review_router(ReviewDesk(services, DagsterApi(settings.graphql_url)), Pictures(services))
    return Mount("review", router, prefix="/review")


def messages_mount(_guard: GuessGuard) -> Mount:
    """The addresses used in the digest's messages: ``/daily/DATE`` and ``/analysis/ID``."""
    return Mount("messages", messages_router("/digest"))


def front_mount(_guard: GuessGuard) -> Mount:
    """The front page ``/``, and the reports beside it."""
    router = reports_router(
        _reports(), instead={"review_queue.html": "/review/"}, ui_url=load_douban().ui_url.rstrip("/")
    )
    return Mount("reports", router)


def comments_mount(guard: GuessGuard) -> Mount | None:
    """The comments' API below ``/comments`` and pages below ``/demo``, if ``DOUBAN_PIPELINE_SYSTEMS`` names them.

    Raises:
        DatabaseError: Their tables are missing or of another version.
        ModuleNotFoundError: The libraries of the extra ``comments`` are not installed.
    """
    if "comments" not in load_douban().systems:
        return None
    from douban_pipeline.comments.api.routes import PUBLIC, comments_router
    from douban_pipeline.comments.services import open_services as open_comments
    from douban_pipeline.comments.settings import load_settings as load_comments

    router, context = comments_router(open_comments(load_comments(), "service").ready(), guard)
    return Mount("comments", router, public=PUBLIC, problem=context.problem)


def tmdb_mount(guard: GuessGuard) -> Mount | None:
    """Questions about films: ``/tmdb/…`` and ``/metrics``; None if no TMDB key is set.

    Raises:
        ProblemsError: The libraries of the extra are not installed.
    """
    settings = load_tmdb()
    if not (settings.api_key.get_secret_value() or settings.api_token.get_secret_value()):
        return None
    try:
        from douban_pipeline.tmdb.api import RateLimit, tmdb_router
        from douban_pipeline.tmdb.enrichment.opening import open_service, service_store
    except ImportError as error:
        raise ProblemsError([f"{error.name} is not installed: pip install 'douban_pipeline[tmdb]'"]) from error
    with ExitStack() as stack:
        store = service_store(settings)
        service = stack.enter_context(open_service(settings, store))
        limit = RateLimit(settings.questions_per_minute, guard.counters)
        router = tmdb_router(service, store, service.spool, limit)
        return Mount("tmdb", router, problem=service.problem, close=stack.pop_all().close)
    raise AssertionError("unreachable")


MOUNTS: Sequence[Callable[[GuessGuard], Mount | None]] = (
    digest_mount,
    review_mount,
    comments_mount,
    tmdb_mount,
    messages_mount,
    front_mount,
)
"""A function for every system that may have something to serve; it returns None if there is nothing.

Each gets the guard against guessing, whose counters all processes share, for tokens and limits of its own.

The front page's is last, because it accepts any name at the root.
"""
